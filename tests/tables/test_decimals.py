"""A decimal with more digits than its type has reads as NULL, whoever holds it, and so do numbers of 128 bits."""

from dataclasses import dataclass

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.errors import QueryRefused
from tacit.tables import parquet_files
from tacit.tables.cells import sound_decimals
from tacit_gauntlet.stage.odd_cells import decimals, too_long
from tacit_gauntlet.stage.table import bounded_plan, bounded_table, exact_cells, exact_table, protected

USES = ["c", "-c", "c * 2", "CEIL(c)", "CAST(c AS TEXT)"]


def table_of(kind, *odd):
    cells = [5, 5, None, 7, *odd]
    return pa.table({"id": range(len(cells)), "c": decimals(cells, kind)})


def assert_only_known_cells_count(source):
    table = protected(source)
    for use in USES:
        try:
            found = bounded_table(table.derive(d=use).count("d"))
        except QueryRefused as refused:
            assert "can need" in str(refused)  # noqa: PT017 - by its type, and not by a row
            continue
        assert found.sums["counted_0"] == [3], use
        asked = table.derive(d=use).where("d IS NOT NULL").group_by("d").count()
        assert sum(exact_cells(asked, plan=bounded_plan(asked))[0].values()) == 3, use
    assert bounded_table(protected(source).count()).sums["rows"][0] >= 4  # the connection is still alive


@pytest.mark.parametrize(
    "kind", [pa.decimal32(5, 2), pa.decimal64(12, 0), pa.decimal128(5, 2), pa.decimal128(36, 2), pa.decimal128(38, 0)]
)
def test_a_decimal_beyond_its_digits_is_null_in_a_frame(kind):
    most = 2 ** (8 * kind.byte_width - 1)
    assert_only_known_cells_count(table_of(kind, most - 1, -most, 10**kind.precision, -(10**kind.precision)))


@pytest.mark.parametrize("precision", [4, 18, 38])
@pytest.mark.parametrize("as_integer", [False, True])
def test_a_decimal_beyond_its_digits_is_null_in_parquet(precision, as_integer, tmp_path):
    odd = [-(2**31) if precision < 10 else -(2**63)] if as_integer and precision < 19 else too_long(precision)
    pq.write_table(
        table_of(pa.decimal128(precision, 2), *odd), tmp_path / "t.parquet", store_decimal_as_integer=as_integer
    )
    assert_only_known_cells_count(str(tmp_path / "t.parquet"))


@dataclass(frozen=True)
class Leaf:
    """A column as a Parquet schema describes it."""

    physical_type: str
    length: int = 0
    precision: int = 20

    @property
    def logical_type(self):
        return self

    def to_json(self):
        return '{"Type": "Decimal"}'


def test_decimals_in_bytes_of_any_length_are_not_read_at_all():
    assert parquet_files._is_loose_decimal(Leaf("BYTE_ARRAY"))
    assert parquet_files._is_loose_decimal(Leaf("FIXED_LEN_BYTE_ARRAY", 17))
    assert not parquet_files._is_loose_decimal(Leaf("FIXED_LEN_BYTE_ARRAY", 16))
    assert not parquet_files._is_loose_decimal(Leaf("INT64"))


@pytest.mark.parametrize("precision", [1, 18, 19, 20, 37, 38])
def test_every_decimal_of_just_enough_digits_is_kept(precision):
    kind, most = pa.decimal128(precision, 0), 10**precision - 1
    fine = decimals([most, None, -most, 0, -1], kind)
    assert sound_decimals(fine, kind).equals(fine)
    odd = decimals([7, 0, most + 1, most, None, -most - 1, -most], kind).slice(1)
    assert sound_decimals(odd, kind).equals(decimals([0, None, most, None, None, -most], kind))
    assert len(sound_decimals(fine.slice(2, 0), kind)) == 0


def test_a_scale_below_zero_is_known_by_name_and_not_read():
    rows = pa.table({"id": [1], "c": decimals([5], pa.decimal128(5, -2))})
    table = protected(rows)
    assert table.session.declaration.columns["c"].type == "other"
    assert bounded_table(table.count()).sums["rows"] == [1]


def huge(*cells):
    connection = duckdb.connect()
    connection.execute("CREATE TABLE t AS SELECT range AS id, range::HUGEINT AS c, range::UHUGEINT AS u FROM range(5)")
    for place, cell in enumerate(cells):
        connection.execute(f"INSERT INTO t VALUES ({9 + place}, ({cell})::HUGEINT, ({2**128 - 1 - place})::UHUGEINT)")
    return connection, "t"


ASKED = {
    "opposite": lambda table: table.where("-c < -3").count(),
    "opposites": lambda table: table.derive(d="-c").sum("d", between=(-9, 0)),
    "size": lambda table: table.derive(d="ABS(c)").sum("d", between=(0, 9)),
    "keys": lambda table: table.group_by("c", keys=[1, 2]).count(),
    "bins": lambda table: table.histogram("c", [0, 2, 9]),
    "rounded": lambda table: table.derive(d="ROUND(c)").sum("d", between=(0, 9)),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("cell", [-(2**127), 2**127 - 1, 10**38, -(10**38)])
def test_a_number_of_128_bits_that_no_decimal_holds_is_null(name, cell):
    asked = ASKED[name]
    assert exact_cells(asked(protected(huge(cell)))) == exact_cells(asked(protected(huge("NULL"))))


@pytest.mark.parametrize("declared", [{}, {"columns": {"c": {"type": "text"}, "u": {"type": "text"}}}])
@pytest.mark.parametrize("unit", ["c", "u"])
def test_ids_of_128_bits_are_all_different_people(unit, declared):
    table = protected(huge(2**127 - 1, 2**127 - 2, -(2**127)), unit=unit, **declared)
    assert exact_table(table.count_units()).sums["units"] == [8]
