"""A file that is gone, or is another, is refused before anything is charged; one with new rows is asked as before."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import QueryRefused

PEOPLE = {"id": [1, 2, 3], "age": [30, 40, 50]}


def write(path, columns):
    if path.suffix == ".csv":
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        path.write_text("\n".join(lines) + "\n")
    else:
        pq.write_table(pa.table(columns), path)


@pytest.fixture(params=["people.parquet", "people.csv"])
def path(request, tmp_path):
    write(tmp_path / request.param, PEOPLE)
    return tmp_path / request.param


def opened(path):
    return tacit.table(
        path, unit="id", rows_per_unit=1, most_rows_per_unit=1, budget=tacit.epsilon(10), ledger=":memory:"
    )


def spent(table):
    return [entry for entry in table.session.ledger.entries() if entry.kind == "charge"]


def test_a_file_that_is_gone_is_not_charged_for(path):
    table = opened(path)
    path.unlink()
    with pytest.raises(QueryRefused, match=r"the file at .* is gone, so no charge was made"):
        table.count().answer(epsilon=1)
    assert spent(table) == []


@pytest.mark.parametrize("columns", [{"id": [1], "years": [1]}, {"id": [1]}, {"id": [1], "age": [1], "more": [1]}])
def test_nor_is_one_with_other_columns(path, columns):
    table = opened(path)
    write(path, columns)
    with pytest.raises(QueryRefused, match="no longer has the columns it was opened with"):
        table.count().answer(epsilon=1)
    assert spent(table) == []


def test_nor_is_one_that_is_no_table_any_more(path):
    table = opened(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(QueryRefused, match="no longer has the columns"):
        table.count().answer(epsilon=1)
    assert spent(table) == []


def test_one_column_of_another_type_is_another_schema(tmp_path):
    path = tmp_path / "people.parquet"
    write(path, PEOPLE)
    table = opened(path)
    write(path, {"id": [1], "age": ["thirty"]})
    with pytest.raises(QueryRefused, match="no longer has the columns"):
        table.count().answer(epsilon=1)


def test_new_rows_are_asked_about(path):
    table = opened(path)
    write(path, {"id": list(range(5000)), "age": [1] * 5000})
    assert table.count().answer(epsilon=5).to_dicts()[0]["count"] > 4900
    assert len(spent(table)) == 1


def test_the_check_looks_at_every_file_of_a_glob(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        write(tmp_path / name, PEOPLE)
    table = opened(str(tmp_path / "*.parquet"))
    (tmp_path / "b.parquet").unlink()
    with pytest.raises(QueryRefused, match=r"b\.parquet"):
        table.count().answer(epsilon=1)
