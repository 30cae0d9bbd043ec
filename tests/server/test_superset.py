"""Superset, as it is: it lists tables, asks in its SQL Lab, draws a chart with intervals; browsing spends nothing.

It has an environment of its own in .peers/superset, which the first run makes (some minutes), so it is not in the
tests of every commit: `make slow`, or `pytest -m slow tests/server/test_superset.py`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from tests.changes import PROJECT
from tests.server.test_postgres_tools import Tools, tools  # noqa: F401 - a fixture

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tools of PostgreSQL")]

# what the wheel of this version does not name, or names without the limit that it needs
PACKAGES = ("apache-superset==6.1.0", "flask-caching<2.4", "psycopg2-binary", "rich", "cachetools")
CONFIGURATION = """
SECRET_KEY = "{secret}"
SQLALCHEMY_DATABASE_URI = "sqlite:///{folder}/superset.db"
WTF_CSRF_ENABLED = False
"""
SETTING_UP = (
    ("db", "upgrade"),
    ("fab", "create-admin", "--username", "ada", "--firstname", "a", "--lastname", "a", "--email", "a@example.org"),
    ("init",),
)
# It runs in Superset's own Python: the requests that its pages send, through the application in that process.
SCRIPT = r"""
import json, sys
from superset.app import create_app

address = sys.argv[1]
client, head, found = create_app().test_client(), {}, {}

def call(method, path, body=None):
    reply = client.open("/api/v1/" + path, method=method, json=body, headers=head)
    assert reply.status_code < 300, (path, reply.status_code, reply.data)
    return reply.get_json()

entry = {"username": "ada", "password": "ada", "provider": "db"}
head["Authorization"] = "Bearer " + call("POST", "security/login", entry)["access_token"]
made = {"database_name": "tacit", "sqlalchemy_uri": address, "expose_in_sqllab": True}
database = call("POST", "database/", made)["id"]
listed = call("GET", f"database/{database}/tables/?q=(schema_name:public)")["result"]
found["tables"] = [each["value"] for each in listed]
made = {"database": database, "schema": "public", "table_name": "visits"}
dataset = call("POST", "dataset/", made)["id"]
columns = call("GET", f"dataset/{dataset}")["result"]["columns"]
found["columns"] = {each["column_name"]: each["type"] for each in columns}
call("GET", f"database/{database}/table_metadata/?name=visits&schema=public")
preview = {"database_id": database, "schema": "public", "client_id": "b", "sql": "SELECT * FROM visits LIMIT 100"}
refused = client.post("/api/v1/sqllab/execute/", json=preview, headers=head)
found["preview"] = refused.get_data(as_text=True)
print("found " + json.dumps(found), flush=True)
sys.stdin.readline()
asked = {**preview, "client_id": "a", "sql": "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"}
found["lab"] = call("POST", "sqllab/execute/", asked)["data"]
metrics = [
    {"expressionType": "SQL", "sqlExpression": sql, "label": label}
    for sql, label in (("COUNT(*)", "n"), ("n_low", "from"), ("n_high", "to"))
]
query = {"columns": ["ward"], "metrics": metrics, "orderby": [[metrics[0], False]], "row_limit": 1000}
chart = {"datasource": {"id": dataset, "type": "table"}, "queries": [query], "force": True}
found["chart"] = call("POST", "chart/data", chart)["result"][0]["data"]
found["again"] = call("POST", "chart/data", chart)["result"][0]["data"]
print("found " + json.dumps(found), flush=True)
"""


def own_python(name: str, packages: tuple[str, ...]) -> Path:
    """The Python of an environment of a tool's own; the test is skipped where it cannot be installed."""
    home = PROJECT / ".peers" / name
    python, stamp = home / "bin" / "python", home / "installed.txt"
    if not stamp.exists() or stamp.read_text() != repr(packages):
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(home)], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
        done = subprocess.run(pip, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"{name} cannot be installed here, so it was not tried: {done.stderr[-300:]}")
        stamp.write_text(repr(packages))
    return python


@pytest.fixture(scope="module")
def superset(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Superset's Python and the variables that it needs, with a metadata database of this test's own."""
    python = own_python("superset", PACKAGES)
    folder = tmp_path_factory.mktemp("superset")
    (folder / "superset_config.py").write_text(CONFIGURATION.format(folder=folder, secret=os.urandom(32).hex()))
    own = {"SUPERSET_CONFIG_PATH": str(folder / "superset_config.py"), "SUPERSET_HOME": str(folder)}
    variables = {**os.environ, "FLASK_APP": "superset", **own}
    for words in SETTING_UP:
        more = ["--password", "ada"] if "create-admin" in words else []
        done = subprocess.run(
            [str(python.with_name("superset")), *words, *more],
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
    return python, variables


def found_line(lines: IO[str]) -> str:
    """The next line of the script's own; Superset prints others. Empty if the script has ended."""
    return next((line.removeprefix("found ") for line in lines if line.startswith("found ")), "")


def test_superset_draws_a_chart_with_intervals_and_spends_nothing_by_browsing(
    tools: Tools,  # noqa: F811
    superset: tuple[Path, dict[str, str]],
) -> None:
    python, variables = superset
    address = f"postgresql+psycopg2://curator:{tools.token}@127.0.0.1:{tools.port}/tacit?options=-c%20tacit.epsilon%3D1"
    words = [str(python), "-c", SCRIPT, address]
    errors = Path(variables["SUPERSET_HOME"]) / "errors.txt"
    with (
        errors.open("w") as problems,
        subprocess.Popen(
            words, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=problems, text=True
        ) as process,
    ):
        assert process.stdout is not None
        assert process.stdin is not None
        first = found_line(process.stdout)
        assert first, errors.read_text()[-3000:]
        assert tools.charges() == 0
        process.stdin.write("\n")
        process.stdin.flush()
        last = found_line(process.stdout)
        assert last, errors.read_text()[-3000:]
    browsed, found = json.loads(first), json.loads(last)
    assert sorted(browsed["tables"]) == ["pay", "visits"]
    assert browsed["columns"] == {"patient": "BIGINT", "ward": "TEXT", "days": "BIGINT"}
    assert "single rows are never shown" in browsed["preview"]
    assert [set(row) for row in found["lab"]] == [{"ward", "n", "n_low", "n_high"}] * 3
    drawn = {row["ward"]: (row["from"], row["n"], row["to"]) for row in found["chart"]}
    assert drawn == {row["ward"]: (row["n_low"], row["n"], row["n_high"]) for row in found["lab"]}
    assert found["again"] == found["chart"]
    assert tools.charges() == 1
