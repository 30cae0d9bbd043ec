"""The curator's own table as a public list with a secret: read by its public columns, refused without quoting it."""

import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from tacit.errors import InvalidParameter
from tacit_classroom.attacks import read_people
from tacit_classroom.attacks.people import PLACES

CANARY = "canary-cell"


@pytest.fixture
def path(tmp_path):
    """90 people in three postcodes; ages tell them apart but for two of the first."""
    number = list(range(90))
    columns = {
        "postcode": [f"P{n // 30}" for n in number],
        "age": [20 + n % 30 if n != 1 else 20 for n in number],
        "ill": [n % 2 == 0 for n in number],
        "flag": [n % 2 for n in number],
        "diagnosis": [CANARY if n % 3 == 0 else "flu" for n in number],
        "maybe": [None if n % 2 else "YES" for n in number],
    }
    pq.write_table(pa.table(columns), tmp_path / "people.parquet")
    pc.write_csv(pa.table(columns), tmp_path / "people.csv")
    return tmp_path / "people.parquet"


def test_public_columns_make_the_list_and_tell_people_apart(path):
    people = read_people(path, secret="ill", by=["postcode", "age"])
    assert len(people) == 90
    assert people.sizes.max() == 2  # the two who share a postcode and an age
    assert people.told_apart == pytest.approx(88 / 90)
    assert people.blocks == -(-89 // PLACES)
    assert people.exact_yes.sum() == 45


@pytest.mark.parametrize(
    ("secret", "yeses"), [("ill", 45), ("flag", 45), ("maybe", 45), (f"diagnosis={CANARY}", 30), ("diagnosis=none", 0)]
)
def test_a_secret_is_a_column_of_yes_and_no_or_one_value_of_a_column(path, secret, yeses):
    assert read_people(path, secret=secret, by=["postcode", "age"]).exact_secret.sum() == yeses


def test_a_csv_is_read_the_same_way(path):
    people = read_people(path.with_suffix(".csv"), secret="ill", by=["postcode", "age"])
    assert (len(people), people.exact_secret.sum()) == (90, 45)


def test_only_the_first_rows_of_the_list_are_taken_when_asked(path):
    assert len(read_people(path, secret="ill", by=["postcode", "age"], rows=50)) == 50


def test_whole_blocks_are_kept_in_a_part(path):
    people = read_people(path, secret="ill", by=["postcode", "age"])
    assert len(people.first(50)) == 41  # two blocks of twenty places, one place of them shared
    assert people.first(90) is people


def test_people_print_without_their_secrets(path):
    assert repr(read_people(path, secret="ill", by=["postcode"])).endswith("their secrets are withheld>")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"secret": "diagnosis"}, "name the value that means yes"),
        ({"secret": "nothing"}, "the columns are postcode, age"),
        ({"by": ["nothing"]}, "no column 'nothing'"),
        ({"by": ["ill"]}, "not the secret column"),
        ({"by": []}, "not the secret column"),
        ({"rows": 3}, "rows"),
        ({"path": "nowhere.parquet"}, "no Parquet or CSV file"),
        ({"path": "people.txt"}, "no Parquet or CSV file"),
    ],
)
def test_what_cannot_be_read_is_refused_without_quoting_a_cell(path, words, message):
    asked = {"path": path, "secret": "ill", "by": ["postcode", "age"]} | words
    with pytest.raises(InvalidParameter, match=message) as refusal:
        read_people(asked.pop("path"), **asked)
    assert CANARY not in str(refusal.value)


def test_a_file_that_is_not_what_its_ending_says_is_refused_without_quoting_it(tmp_path):
    broken = tmp_path / "people.parquet"
    broken.write_text(CANARY * 100)
    with pytest.raises(InvalidParameter, match="cannot be read") as refusal:
        read_people(broken, secret="ill", by=["age"])
    assert CANARY not in str(refusal.value)


def test_an_empty_table_is_refused(tmp_path):
    empty = tmp_path / "people.parquet"
    pq.write_table(pa.table({"ill": pa.array([], pa.bool_()), "age": pa.array([], pa.int64())}), empty)
    with pytest.raises(InvalidParameter, match="the table is empty"):
        read_people(empty, secret="ill", by=["age"])
