"""Every line of a CSV file is a row by itself, whatever is in it and in the lines around it."""

import csv
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.errors import QueryRefused
from tacit.tables.formats import LINE_BYTES_MAX, NEVER, read_header
from tacit_gauntlet.stage.table import bounded_plan, exact_cells, protected

PIECES = [b"a", b"1", b",", b",", b'"', b'""', b"\n", b"\n", b"\r\n", b"\r", b"\x00", b"\xff", b"\xc3\xa9", b"\xc3"]
PIECES += [b"'", b"\\", b"#", b" ", b"NULL", b"\x1a", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b'"x,y"', NEVER.encode()]
PIECES += [NEVER[:3].encode(), b"\r\r\n"]


def rows_of(content, folder, columns=("id", "g")):
    (folder / "t.csv").write_bytes(content)
    connection = protected(str(folder / "t.csv")).session.engine._source.backend.con
    return connection.execute(f"SELECT {', '.join(columns)} FROM protected").fetchall()


def read_by_hand(content):
    """One line after another, with no thought of the others."""
    found = []
    for line in re.split(rb"\r\n|\r|\n", content)[1:]:
        try:
            text = line.split(NEVER.encode())[0].decode()
        except UnicodeDecodeError:
            continue
        if text and re.fullmatch(r'("([^"]|"")*"|[^",][^,]*|),("([^"]|"")*"|[^",][^,]*|)', text):
            found.append(tuple(field or None for field in next(csv.reader([text]))))
    return found


@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=60), end=st.sampled_from([b"\n", b"\r\n"]))
@example(pieces=[b"1,x", b"\r\r\n", b"2,y", b"\r\n"], end=b"\r\n")
def test_a_file_is_read_line_by_line_however_the_first_one_ends(pieces, end, tmp_path_factory):
    content = b"id,g" + end + b"".join(pieces)
    assert rows_of(content, tmp_path_factory.mktemp("csv")) == read_by_hand(content)


@pytest.mark.parametrize(
    ("line", "row"),
    [
        (b"7,a", ("7", "a")),
        (b'7,"a, ""b"""', ("7", 'a, "b"')),
        (b'7,a "quoted" word', ("7", 'a "quoted" word')),
        (b"7,", ("7", None)),
        (b'7,""', ("7", None)),
        (b"7", None),
        (b"7,a,b", None),
        (b'7,"a', None),
        (b'7,"a"b', None),
        (b"7,\xff", None),
        (b"7," + b"x" * LINE_BYTES_MAX, None),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_a_line_counts_where_it_is_whole_and_never_changes_its_neighbours(line, row, end, tmp_path):
    around = [("1", "x"), ("2", "y")]
    found = rows_of(b"id,g\n1,x\n2,y\n" + line + end, tmp_path)
    assert found == (around if row is None else [*around, row])
    if end:
        assert rows_of(b"id,g" + end + line + end + b"1,x" + end + b"2,y" + end, tmp_path) == (
            around if row is None else [row, *around]
        )


def test_lines_of_many_megabytes_are_read_alike_in_parallel(tmp_path):
    lines = [b'%d,"g, %d"' % (place, place % 7) if place % 3 else b"%d,h" % place for place in range(300_000)]
    odd = dict.fromkeys(range(0, 300000, 1009), b'9,"never closed')
    (tmp_path / "t.csv").write_bytes(b"id,g\n" + b"\n".join(odd.get(place, each) for place, each in enumerate(lines)))
    asked = protected(str(tmp_path / "t.csv")).sql("SELECT COUNT(*) AS n FROM t")
    (cells,) = exact_cells(asked, plan=bounded_plan(asked))
    assert cells == {("rows",): 300_000 - len(odd)}


@pytest.mark.parametrize("header", [b"", b"\n", b"id,g\r1,a\r", b"\xff,g\n", b"id,,g\n"])
def test_a_file_without_a_line_of_names_is_refused(header, tmp_path):
    (tmp_path / "t.csv").write_bytes(header)
    with pytest.raises(QueryRefused, match=r"line of column names|lacks a name"):
        read_header(str(tmp_path / "t.csv"))


def test_a_mark_at_the_beginning_is_no_part_of_the_first_name(tmp_path):
    assert rows_of(b"\xef\xbb\xbfid,g\r\n1,a\r\n", tmp_path) == [("1", "a")]


def test_names_may_be_anything_that_the_first_line_quotes(tmp_path):
    content = b'id,"a ""b"", c",select\n1,x,y\n'
    assert rows_of(content, tmp_path, ('"a ""b"", c"', '"select"')) == [("x", "y")]
