"""Delta and Iceberg tables, written by their own libraries, are read as their snapshot is, without deleted rows."""

import json
import re
import shutil
import struct
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestEntry, ManifestEntryStatus
from pyiceberg.schema import Schema
from pyiceberg.table import StaticTable
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap

import tacit
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.tables import lakes
from tacit_gauntlet.stage.table import bounded_table, protected

ROWS = pa.table(
    {
        "id": [1, 1, 2, 3, 3, 3, None],
        "ward": ["a b", "é/x", "a b", "é/x", "c", None, "a b"],
        "cost": pa.array([None, 2.5, 1.0, 4.0, float("nan"), 6.0, 7.0]),
        "price": pa.array([1, 2, 3, 4, 5, 6, 7], pa.decimal128(9, 2)),
        "day": pa.array([0, 1, 2, 3, 4, 5, 6], pa.date32()),
        "at": pa.array([0, 1, 2, 3, 4, 5, 6], pa.timestamp("us", "UTC")),
    }
)
BOUNDS = {"rows_per_unit": 9, "groups_per_unit": 9, "most_rows_per_unit": 9}
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


@pytest.fixture
def catalog(tmp_path):
    made = InMemoryCatalog("care", warehouse=f"file://{tmp_path}/warehouse")
    made.create_namespace("care")
    return made


class Delta:
    def __init__(self, folder, catalog):
        self.place = str(folder / "visits")

    def append(self, rows, **options):
        write_deltalake(self.place, rows, mode="append", schema_mode="merge", **options)

    def newest(self):
        return self.place

    def oldest(self):
        return DeltaTable(self.place, version=0)


class Iceberg:
    def __init__(self, folder, catalog):
        self.catalog, self.first = catalog, None

    def append(self, rows, partition_by=()):
        if self.first is None:
            table = self.catalog.create_table("care.visits", rows.schema)
            with table.update_spec() as spec:
                for name in partition_by:
                    spec.add_identity(name)
        table = self.newest()
        with table.update_schema() as update:
            update.union_by_name(rows.schema)
        table.append(rows)
        self.first = self.first or table.metadata_location

    def newest(self):
        return self.catalog.load_table("care.visits")

    def oldest(self):
        return StaticTable.from_metadata(self.first)


@pytest.fixture(params=[Delta, Iceberg])
def stored(request, tmp_path, catalog):
    return request.param(tmp_path, catalog)


def asked(table):
    return [
        table.count(),
        table.group_by("ward", keys=["a b", "é/x", "c", None]).sum("cost", between=(0, 9)),
        table.where("ward = 'a b' OR day > DATE '1970-01-04'").agg(n=tacit.count(), people=tacit.count_units()),
        table.where("at >= TIMESTAMP '1970-01-01 00:00:00.000003'").sum("price", between=(0, 9)),
    ]


def sums(table):
    return [bounded_table(each).sums for each in asked(table)]


def fresh(source, **options):
    usual = {"unit": "id", "budget": tacit.epsilon(2), "ledger": tacit.TRYOUT}
    return tacit.table(source, **{**usual, **BOUNDS, **options})


@pytest.mark.parametrize("partition_by", [[], ["ward"], ["ward", "day"]], ids=len)
def test_a_snapshot_has_the_integers_of_the_rows(stored, partition_by):
    stored.append(ROWS, partition_by=partition_by)
    assert sums(protected(stored.newest(), **BOUNDS)) == sums(protected(ROWS, **BOUNDS))


def test_rows_from_before_a_column_was_added_are_null_in_it(stored):
    later = ROWS.append_column("height", pa.array([1, 2, 3, 4, 5, 6, 7], pa.int32()))
    stored.append(ROWS)
    stored.append(later)
    table = protected(stored.newest(), **BOUNDS)
    assert bounded_table(table.where("height IS NULL").count()).sums["rows"] == [6]
    assert bounded_table(table.sum("height", between=(0, 9))).sums["total_0"] == [21]


@pytest.mark.parametrize(("day", "kind"), [(3_000_000, pa.date32()), (4 * 10**17, pa.timestamp("us"))])
def test_a_partition_of_a_day_beyond_pythons_opens_as_any_other(tmp_path, day, kind):
    """Whether a table opens would tell of one row; its cell is NULL, as in a file."""
    rows = ROWS.set_column(4, "day", pa.array([0, 0, 0, 1, 1, 1, 1], kind))
    one_more = ROWS.slice(0, 1).set_column(4, "day", pa.array([day], kind))
    write_deltalake(str(tmp_path / "visits"), pa.concat_tables([rows, one_more]), partition_by=["day"])
    table = protected(str(tmp_path / "visits"), **BOUNDS)
    assert bounded_table(table.count()).sums["rows"] == [7]
    assert bounded_table(table.where("day IS NOT NULL").count()).sums["rows"] == [6]


def test_an_empty_table_is_a_table_like_another(tmp_path, catalog):
    write_deltalake(str(tmp_path / "visits"), ROWS.slice(0, 0))
    for source in (str(tmp_path / "visits"), catalog.create_table("care.visits", ROWS.schema)):
        assert bounded_table(protected(source, **BOUNDS).count()).sums["rows"] == [0]


def test_only_a_column_of_a_partition_or_no_column_can_be_asked_for(stored):
    stored.append(ROWS, partition_by=["ward"])
    table = protected(stored.newest(), unit=tacit.ROW, **BOUNDS)
    counts = bounded_table(table.group_by("ward", keys=["a b", "é/x", "c", None]).count())
    assert counts.sums["rows"] == [3, 2, 1, 1]


def test_cells_that_are_not_of_their_type_are_null_and_stop_no_question(tmp_path, catalog):
    odd = pa.table({"id": [1, 2], "ward": pa.array([b"\xff", b"a"]).view(pa.string())})
    write_deltalake(str(tmp_path / "visits"), pa.table({"id": [1, 2], "ward": ["x", "a"]}))
    (file,) = (tmp_path / "visits").glob("*.parquet")
    size = file.stat().st_size
    pq.write_table(odd, file)
    log = tmp_path / "visits" / "_delta_log" / f"{0:020}.json"
    log.write_text(log.read_text().replace(f'"size":{size}', f'"size":{file.stat().st_size}'))
    table = protected(str(tmp_path / "visits"), **BOUNDS)
    assert bounded_table(table.group_by("ward", keys=["a", None]).count()).sums["rows"] == [1, 1]


# --- rows that are deleted ---


def test_rows_that_were_deleted_by_the_library_are_not_read(tmp_path, catalog):
    write_deltalake(str(tmp_path / "visits"), ROWS)
    DeltaTable(tmp_path / "visits").delete("id = 3")
    iceberg = catalog.create_table("care.visits", ROWS.schema)
    iceberg.append(ROWS)
    iceberg.delete("id = 3")
    for source in (str(tmp_path / "visits"), iceberg):
        assert bounded_table(protected(source, **BOUNDS).count()).sums["rows"] == [3]


def vector(rows):
    """Return a deletion vector of these rows as text, as the protocol of Delta writes it inside its log."""
    bitmap = BitMap(rows).serialize()
    raw = struct.pack("<iqi", 1681511377, 1, 0) + bitmap
    raw += b"\0" * (-len(raw) % 4)
    words = struct.unpack(f">{len(raw) // 4}I", raw)
    return "".join(Z85[word // 85**power % 85] for word in words for power in (4, 3, 2, 1, 0)), len(raw)


def with_vectors(place, rows, features=("deletionVectors",)):
    """Delete rows of a Delta table's one file by a deletion vector; its own library writes none."""
    log = Path(place) / "_delta_log"
    (add,) = (json.loads(line)["add"] for line in (log / f"{0:020}.json").read_text().splitlines() if '"add"' in line)
    words, size = vector(rows)
    kept = {"storageType": "i", "pathOrInlineDv": words, "sizeInBytes": size, "cardinality": len(rows)}
    features = list(features)
    actions = [
        {
            "protocol": {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        },
        {"remove": {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}},
        {"add": {**add, "dataChange": True, "deletionVector": kept}},
    ]
    (log / f"{1:020}.json").write_text("\n".join(map(json.dumps, actions)))


@pytest.mark.parametrize("partition_by", [[], ["place"]], ids=len)
def test_rows_of_a_deletion_vector_of_delta_are_not_read(tmp_path, partition_by):
    place = str(tmp_path / "visits")
    write_deltalake(place, ROWS.append_column("place", pa.array(["ü b"] * 7)), partition_by=partition_by)
    with_vectors(place, [2, 5])
    kept = ROWS.take([0, 1, 3, 4, 6])
    assert sums(protected(place, **BOUNDS)) == sums(protected(kept, **BOUNDS))


def test_a_reader_of_delta_that_knows_less_than_the_table_refuses_it(tmp_path):
    place = str(tmp_path / "visits")
    write_deltalake(place, ROWS)
    with_vectors(place, [2], features=("columnMapping", "deletionVectors"))
    with pytest.raises(QueryRefused, match=r"needs a reader that knows columnMapping|cannot be read"):
        fresh(place)


def with_deletes(table, rows, content=DataFileContent.POSITION_DELETES):
    """Delete rows of an Iceberg table's data file by a file of positions; its own library writes none."""
    (task,) = table.scan().plan_files()
    place = f"{table.location()}/data/deletes.parquet"
    ids = {"file_path": 2147483546, "pos": 2147483545}
    schema = Schema(
        NestedField(ids["file_path"], "file_path", StringType(), required=True),
        NestedField(ids["pos"], "pos", LongType(), required=True),
    )
    deletes = pa.table({"file_path": [task.file.file_path] * len(rows), "pos": rows}, schema_to_pyarrow(schema))
    pq.write_table(deletes, place.removeprefix("file://"))
    size = Path(place.removeprefix("file://")).stat().st_size
    deleting = DataFile.from_args(
        content=content,
        file_path=place,
        file_format=FileFormat.PARQUET,
        partition=task.file.partition,
        record_count=len(rows),
        file_size_in_bytes=size,
        equality_ids=[1] if content == DataFileContent.EQUALITY_DELETES else None,
        spec_id=0,
    )
    deleting.spec_id = 0
    return deleting


def planned(monkeypatch, deleting):
    """Have the table's library plan a file of deletes beside its data file."""
    from pyiceberg.table import ManifestGroupPlanner

    entries = ManifestGroupPlanner.plan_manifest_entries

    def with_one_more(self, manifests):
        yield from entries(self, manifests)
        yield [
            ManifestEntry.from_args(
                status=ManifestEntryStatus.ADDED, snapshot_id=1, sequence_number=99, data_file=deleting
            )
        ]

    monkeypatch.setattr(ManifestGroupPlanner, "plan_manifest_entries", with_one_more)


def test_rows_of_positional_deletes_of_iceberg_are_not_read(catalog, monkeypatch):
    table = catalog.create_table("care.visits", ROWS.schema)
    table.append(ROWS)
    planned(monkeypatch, with_deletes(table, [2, 5]))
    kept = ROWS.take([0, 1, 3, 4, 6])
    assert sums(protected(table, **BOUNDS)) == sums(protected(kept, **BOUNDS))


def test_deletes_by_equality_are_refused(catalog, monkeypatch):
    table = catalog.create_table("care.visits", ROWS.schema)
    table.append(ROWS)
    planned(monkeypatch, with_deletes(table, [2], DataFileContent.EQUALITY_DELETES))
    with pytest.raises(QueryRefused, match="deletes rows by equality"):
        fresh(table)


def test_the_files_of_a_table_are_not_read_past_it(tmp_path, catalog):
    write_deltalake(str(tmp_path / "visits"), ROWS, partition_by=["ward"])
    catalog.create_table("care.visits", ROWS.schema).append(ROWS)
    for files in ("visits/*/*.parquet", "warehouse/care/visits/data/*.parquet"):
        assert list(tmp_path.glob(files))
        with pytest.raises(QueryRefused, match="rows that it has deleted are among them"):
            fresh(str(tmp_path / files))


# --- snapshots ---


def test_a_snapshot_is_the_version_and_another_one_spends_the_same_budget(stored):
    ledger = open_ledger(":memory:")
    stored.append(ROWS)
    table = fresh(stored.newest(), name="visits", ledger=ledger)
    table.count().answer(epsilon=1, accept_noise=True)
    stored.append(ROWS)
    later = fresh(stored.newest(), name="visits", ledger=ledger)
    assert later.session.declaration.version == table.session.declaration.version + 1
    assert later.left.laplace == 1
    assert bounded_table(later.count()).sums["rows"] == [12]
    assert bounded_table(table.count()).sums["rows"] == [6]  # a handle keeps its snapshot
    with pytest.raises(QueryRefused, match="snapshots are asked in their order"):
        fresh(stored.oldest(), name="visits", ledger=ledger)
    with pytest.raises(InvalidParameter, match="is already known as 'visits'"):
        fresh(stored.oldest(), name="fresh", ledger=ledger)
    before = fresh(stored.oldest(), name="before", budget=None, same_people_as="visits", ledger=ledger)
    assert before.left.laplace == 1
    stored.append(ROWS)
    with pytest.raises(InvalidParameter, match="is already known as '"):
        fresh(stored.newest(), name="fresh", ledger=ledger)


def test_a_version_is_not_given_beside_the_snapshots_own(stored):
    stored.append(ROWS)
    with pytest.raises(InvalidParameter, match="leave out version="):
        fresh(stored.newest(), version=2)


def test_a_copied_and_a_moved_table_are_the_same_table(tmp_path):
    ledger = open_ledger(":memory:")
    write_deltalake(str(tmp_path / "visits"), ROWS)
    fresh(str(tmp_path / "visits"), ledger=ledger)
    shutil.copytree(tmp_path / "visits", tmp_path / "copy")
    with pytest.raises(InvalidParameter, match="is already known as 'visits'"):
        fresh(str(tmp_path / "copy"), ledger=ledger)


# --- failures ---


def test_files_that_are_gone_are_not_charged_for(stored, tmp_path):
    stored.append(ROWS)
    table = fresh(stored.newest())
    for file in [*tmp_path.glob("visits/*.parquet"), *tmp_path.glob("warehouse/**/*.parquet")]:
        file.unlink()
    with pytest.raises(QueryRefused, match="are gone or cannot be read"):
        table.count().answer(epsilon=1)
    assert table.left.laplace == 2


def test_a_file_that_breaks_after_the_charge_ends_in_the_fixed_words(stored, tmp_path):
    stored.append(ROWS)
    table = fresh(stored.newest())
    for file in [*tmp_path.glob("visits/*.parquet"), *tmp_path.glob("warehouse/**/*.parquet")]:
        file.write_bytes(file.read_bytes()[:99])
    with pytest.raises(EngineError, match="the charge stands") as failed:
        table.count().answer(epsilon=1, accept_noise=True)
    assert str(tmp_path) not in str(failed.value)
    assert table.left.laplace == 1


def test_what_is_not_there_is_refused_in_words(tmp_path):
    for source, said in (
        ("iceberg://nowhere?table=care.visits", "the Iceberg table 'iceberg://nowhere.*cannot be read"),
        ("iceberg://nowhere", "names no table"),
    ):
        with pytest.raises(QueryRefused, match=said):
            fresh(source)
    (tmp_path / "visits" / "_delta_log").mkdir(parents=True)
    with pytest.raises(QueryRefused, match=r"the Delta table at .* cannot be read"):
        fresh(str(tmp_path / "visits"))


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_without_the_package_the_refusal_names_what_to_install(monkeypatch, tmp_path, kind):
    (tmp_path / "visits" / "_delta_log").mkdir(parents=True)
    monkeypatch.setattr("tacit.tables.lakes.find_spec", lambda package: None)
    with pytest.raises(QueryRefused, match=re.escape(f"pip install 'tacit[{kind}]'")):
        fresh(str(tmp_path / "visits") if kind == "delta" else "iceberg://care?table=visits")


# --- planted faults ---


def fails(test, *given, **named):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test(*given, **named)


def test_a_reader_that_keeps_deleted_rows_would_be_seen(tmp_path, catalog, monkeypatch):
    monkeypatch.setattr(lakes, "_kept", lambda deleted, first, rows: pa.repeat(True, rows))
    fails(test_rows_of_a_deletion_vector_of_delta_are_not_read, tmp_path, [])
    fails(test_rows_of_positional_deletes_of_iceberg_are_not_read, catalog, monkeypatch)


def test_a_snapshot_that_is_a_table_of_its_own_would_be_seen(tmp_path, catalog, monkeypatch):
    into = lakes.into

    def own(table, *given):
        return into(replace(table, identity=f"{table.identity}:{table.version}", place=str(table.version)), *given)

    monkeypatch.setattr(lakes, "into", own)
    for number, kind in enumerate((Delta, Iceberg)):
        fails(
            test_a_snapshot_is_the_version_and_another_one_spends_the_same_budget, kind(tmp_path / str(number), catalog)
        )


def test_a_column_that_was_renamed_or_widened_is_one_column(catalog):
    table = catalog.create_table("care.visits", ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())).schema)
    table.append(ROWS.set_column(0, "id", ROWS["id"].cast(pa.int32())))
    with table.update_schema() as update:
        update.update_column("id", LongType())
        update.rename_column("ward", "station")
        update.delete_column("price")
    later = ROWS.rename_columns({"ward": "station"}).drop(["price"])
    table.append(later)
    counted = protected(table, **BOUNDS).group_by("station", keys=["a b", "é/x", "c", None]).count()
    both = protected(pa.concat_tables([later, later]), **BOUNDS).group_by("station", keys=["a b", "é/x", "c", None])
    assert bounded_table(counted).sums == bounded_table(both.count()).sums
