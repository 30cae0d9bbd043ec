"""Files at s3:// and http:// addresses are read as local ones are, in one version, and fail in the fixed words."""

import io
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from moto.server import ThreadedMotoServer

import tacit
from tacit.catalog_file import without_password
from tacit.errors import EngineError, InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit.tables import remote_files
from tacit_gauntlet.stage.table import bounded_table, protected

ROWS = pa.table(
    {
        "id": [1, 1, 2, 3, 3, 3, None],
        "ward": ["a", "b", "a", "é", "b", None, "a"],
        "cost": pa.array([None, 2.5, 1.0, 4.0, float("nan"), 6.0, 7.0]),
        "price": pa.array([1, 2, 3, 4, 5, 6, 7], pa.decimal128(9, 2)),
    }
)
BOUNDS = {"rows_per_unit": 9, "groups_per_unit": 9, "most_rows_per_unit": 9}
CSV_LINES = b'id,ward,cost\n1,a,\n1,b,2.5\n2,"a, b",1\n3,a\n3,b,4\n'


def parquet(rows=ROWS, **options):
    written = io.BytesIO()
    pq.write_table(rows, written, **options)
    return written.getvalue()


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    yield f"http://{host}:{port}"
    moto.stop()


@pytest.fixture
def bucket(server, monkeypatch):
    """A function that puts an object into an empty bucket, or takes it away, and what the environment says of it."""
    words = {"ACCESS_KEY_ID": "x", "SECRET_ACCESS_KEY": "y", "REGION": "us-east-1", "ALLOW_HTTP": "true"}
    for name, value in {**words, "ENDPOINT_URL": server}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    client = boto3.client("s3", endpoint_url=server)
    client.create_bucket(Bucket="care")
    for each in client.list_objects_v2(Bucket="care").get("Contents", []):
        client.delete_object(Bucket="care", Key=each["Key"])

    def put(key, body):
        if body is None:
            client.delete_object(Bucket="care", Key=key)
        else:
            client.put_object(Bucket="care", Key=key, Body=body)

    return put


class Files(BaseHTTPRequestHandler):
    """A server of one file by ranges, with an ETag."""

    body = b""

    def do_HEAD(self) -> None:
        self._reply(200, b"", len(self.body))

    def do_GET(self) -> None:
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        part = self.body[int(found[1]) : int(found[2]) + 1] if found else self.body
        self._reply(206 if found else 200, part, len(part), found)

    def _reply(self, status, part, size, found=None) -> None:
        self.send_response(status)
        self.send_header("ETag", f'"{hash(self.body):x}"')
        self.send_header("Content-Length", str(size))
        if found:
            self.send_header("Content-Range", f"bytes {found[1]}-{found[2]}/{len(self.body)}")
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served(body):
    with ThreadingHTTPServer(("127.0.0.1", 0), type("Served", (Files,), {"body": body})) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{httpd.server_port}"
        httpd.shutdown()


def asked(table):
    return [
        table.count(),
        table.group_by("ward", keys=["a", "b", "é", None]).sum("cost", between=(0, 9)),
        table.where("ward = 'a'").agg(n=tacit.count(), people=tacit.count_units()),
    ]


def test_parquet_in_a_bucket_has_the_integers_of_a_local_file(bucket, tmp_path):
    body = parquet(row_group_size=2)
    bucket("y 2026/visits.parquet", body)
    (tmp_path / "visits.parquet").write_bytes(body)
    there = protected("s3://care/y 2026/visits.parquet", **BOUNDS)
    here = protected(str(tmp_path / "visits.parquet"), **BOUNDS)
    for mine, theirs in zip(asked(there), asked(here), strict=True):
        assert bounded_table(mine).sums == bounded_table(theirs).sums
    price = [bounded_table(each.sum("price", between=(0, 9))).sums for each in (there, here)]
    assert price[0] == price[1]
    assert there.frame.declaration.columns == here.frame.declaration.columns


def test_csv_in_a_bucket_has_the_integers_of_a_local_file(bucket, tmp_path):
    bucket("visits.csv", CSV_LINES)
    (tmp_path / "visits.csv").write_bytes(CSV_LINES)
    facts = {"columns": {"cost": {"type": "float"}}, **BOUNDS}
    tables = protected("s3://care/visits.csv", **facts), protected(str(tmp_path / "visits.csv"), **facts)
    for mine, theirs in zip(*map(asked, tables), strict=True):
        assert bounded_table(mine).sums == bounded_table(theirs).sums


@pytest.mark.parametrize(("name", "body"), [("visits.parquet", parquet()), ("visits.csv", CSV_LINES)])
def test_a_file_on_a_server_of_the_web_is_read_in_ranges(name, body):
    with served(body) as address:
        table = protected(f"{address}/{name}", columns={"cost": {"type": "float"}}, **BOUNDS)
        assert bounded_table(table.count()).sums["rows"] == [6 if name.endswith("parquet") else 4]


def test_a_delta_table_in_a_bucket_has_the_integers_of_its_rows(bucket, tmp_path):
    write_deltalake(str(tmp_path / "visits"), ROWS, partition_by=["ward"])
    for file in (tmp_path / "visits").rglob("*.*"):
        bucket(str(file.relative_to(tmp_path)), file.read_bytes())
    there, here = protected("s3://care/visits", **BOUNDS), protected(ROWS, **BOUNDS)
    for mine, theirs in zip(asked(there), asked(here), strict=True):
        assert bounded_table(mine).sums == bounded_table(theirs).sums


def test_a_glob_reads_the_objects_of_its_folder_and_new_ones_are_new_rows(bucket):
    for key in ("v/1.parquet", "v/2.parquet", "v/deep/3.parquet", "other/4.parquet", "v/5.txt"):
        bucket(key, parquet())
    table = protected("s3://care/v/*.parquet", **BOUNDS)
    assert bounded_table(table.count()).sums["rows"] == [2 * 6]
    bucket("v/6.parquet", parquet())
    assert bounded_table(table.count()).sums["rows"] == [3 * 6]


def test_two_tables_at_addresses_are_joined_and_own_each_other(bucket):
    orders = pa.table({"order": [1, 2, 3], "id": ["p", "p", "q"]})
    bucket("orders.parquet", parquet(orders))
    bucket("lines.parquet", parquet(pa.table({"order": [1, 1, 3, 4], "x": [1, 2, 4, 8]})))
    owners = protected("s3://care/orders.parquet", name="orders", **BOUNDS)
    lines = {"name": "lines", "unit": owners, "via": "order", "budget": None, "ledger": None}
    table = protected("s3://care/lines.parquet", **lines, **BOUNDS)
    assert bounded_table(table.join(owners, on="order").sum("x", between=(0, 9))).sums["total_0"] == [7]


def test_the_ledger_knows_an_address_again(bucket):
    bucket("visits.parquet", parquet())
    ledger = open_ledger(":memory:")
    words = {"unit": "id", "budget": tacit.epsilon(1), "ledger": ledger}
    tacit.table("s3://care/visits.parquet", **words)
    with pytest.raises(InvalidParameter, match="is already known as 'visits'"):
        tacit.table("S3://CARE/visits.parquet", name="fresh", **words)


def test_a_file_that_is_gone_or_has_other_columns_is_not_charged_for(bucket):
    bucket("visits.parquet", parquet())
    table = tacit.table("s3://care/visits.parquet", unit="id", budget=tacit.epsilon(1), ledger=tacit.TRYOUT)
    for body, said in (
        (parquet(ROWS.drop(["ward"])), "no longer has the columns"),
        (None, "is gone or cannot be read"),
    ):
        bucket("visits.parquet", body)
        with pytest.raises(QueryRefused, match=said):
            table.count().answer(epsilon=1)
    assert table.left.laplace == 1


def test_rows_that_were_added_are_counted(bucket):
    bucket("visits.parquet", parquet())
    table = protected("s3://care/visits.parquet", **BOUNDS)
    assert bounded_table(table.count()).sums["rows"] == [6]
    bucket("visits.parquet", parquet(pa.concat_tables([ROWS, ROWS])))
    table.session.engine.refuse_changes()
    assert bounded_table(table.count()).sums["rows"] == [12]


@pytest.mark.parametrize(("key", "body"), [("visits.parquet", parquet()), ("visits.csv", CSV_LINES)])
def test_a_file_that_is_replaced_while_it_is_read_ends_in_the_fixed_words(bucket, monkeypatch, key, body):
    bucket(key, body)
    table = tacit.table(f"s3://care/{key}", unit="id", budget=tacit.epsilon(1), ledger=tacit.TRYOUT, **BOUNDS)
    get = remote_files.obstore.get

    def replaced(*given, **words):
        bucket(key, body + b"\n4,a,5\n")
        return get(*given, **words)

    question = table.count()
    monkeypatch.setattr(remote_files.obstore, "get", replaced)
    with pytest.raises(EngineError, match="the charge stands") as failed:
        question.answer(epsilon=1, accept_noise=True)
    assert "care" not in str(failed.value)
    assert table.left.laplace == 0


def test_every_read_of_one_moment_is_of_one_version(bucket):
    bucket("visits.parquet", parquet())
    source = protected("s3://care/visits.parquet", **BOUNDS).session.engine.source
    counted = source.table.agg(n=source.table.count())
    with source.moment():
        assert source.fetch(counted).to_pylist() == [{"n": 7}]
        bucket("visits.parquet", parquet(pa.concat_tables([ROWS, ROWS])))
        with pytest.raises(Exception, match=r"."):  # the version of this moment is gone
            source.fetch(counted)
    with source.moment():
        assert source.fetch(counted).to_pylist() == [{"n": 14}]


def test_no_rows_at_all_are_a_file_like_another(bucket):
    bucket("visits.parquet", parquet(ROWS.slice(0, 0)))
    bucket("visits.csv", b"id,ward\n")
    for name in ("visits.parquet", "visits.csv"):
        assert bounded_table(protected(f"s3://care/{name}", **BOUNDS).count()).sums["rows"] == [0]


REFUSED = {
    "s3://care/none.parquet": "no file exists at",
    "s3://care/none*.parquet": "no file exists at",
    "s3://care/broken.parquet": "cannot be read as the format of its ending",
    "s3://care/visits": "the Delta table at 's3://care/visits' cannot be read",
    "http://example.org/visits.parquet": "rows would travel unprotected",
    "https://example.org/visits.parquet?key=secret": "is of one file, without",
    "https://me:secret@example.org/visits.parquet": "is of one file, without",
    "mysql://me:secret@host/db?table=t": "addresses of mysql:// are not read",
    "sqlite:///rows.db": "addresses of sqlite:// are not read",
}


@pytest.mark.parametrize(("address", "said"), REFUSED.items())
def test_what_cannot_be_read_is_refused_in_words_without_its_secrets(bucket, address, said):
    bucket("broken.parquet", b"PAR1 no")
    with pytest.raises((QueryRefused, InvalidParameter), match=said) as refused:
        tacit.table(address, unit="id", budget=tacit.epsilon(1), ledger=tacit.TRYOUT)
    assert "secret" not in str(refused.value)
    assert "secret" not in without_password("https://me:secret@example.org/v.parquet")


def test_files_of_other_columns_at_one_address_are_refused(bucket):
    bucket("v/1.parquet", parquet())
    bucket("v/2.parquet", parquet(ROWS.drop(["ward"])))
    with pytest.raises(QueryRefused, match="do not have the same columns"):
        protected("s3://care/v/*.parquet")


def test_without_the_package_the_refusal_names_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "tacit.tables.remote_files", None)
    monkeypatch.delattr("tacit.tables.remote_files")
    with pytest.raises(QueryRefused, match=re.escape("pip install 'tacit[remote]'")):
        protected("s3://care/visits.parquet")
