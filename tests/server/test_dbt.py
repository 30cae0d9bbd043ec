"""dbt, as it is: it connects, shows a question's answer, and is told that nothing is stored here.

It has an environment of its own in .peers/dbt, so it is not in the tests of every commit: `make slow`, or
`pytest -m slow tests/server/test_dbt.py`.
"""

import json
import os
import subprocess

import pytest

from tests.server.test_postgres_tools import SPENDS, Tools, tools  # noqa: F401 - a fixture
from tests.server.test_superset import own_python

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("tools of PostgreSQL")]

PACKAGES = ("dbt-core<1.11", "dbt-postgres<1.11")  # later ones fetch a part that is on no registry
PROFILE = "t: {{target: d, outputs: {{d: {{type: postgres, host: 127.0.0.1, port: {}, user: curator, password: {},"
PROFILE += " dbname: tacit, schema: public, threads: 1}}}}}}"
MODEL = "select ward, count(*) as n from visits group by ward"


def test_dbt_connects_shows_an_answer_and_stores_nothing(tools: Tools) -> None:  # noqa: F811
    dbt = own_python("dbt", PACKAGES).with_name("dbt")
    folder = tools.folder / "dbt"
    (folder / "models").mkdir(parents=True)
    (folder / "profiles.yml").write_text(PROFILE.format(tools.port, tools.token))
    (folder / "dbt_project.yml").write_text("{name: t, profile: t, models: {t: {+materialized: table}}}")
    (folder / "models" / "wards.sql").write_text(MODEL)
    before = tools.charges()

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "PGOPTIONS": SPENDS, "DBT_SEND_ANONYMOUS_USAGE_STATS": "False"}
        command = [str(dbt), "--quiet", *words, "--profiles-dir", "."]
        return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, check=False)

    assert run("debug").returncode == 0
    assert tools.charges() == before
    stored = run("run")
    assert "CREATE is not a statement of this server" in stored.stdout
    assert tools.charges() == before
    shown = run("show", "--inline", MODEL, "--output", "json")
    rows = json.loads(shown.stdout[shown.stdout.index("{") :])["show"]
    assert [set(row) for row in rows] == [{"ward", "n", "n_low", "n_high"}] * 3
    assert tools.charges() == before + 1
