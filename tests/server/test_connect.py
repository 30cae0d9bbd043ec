"""A table on a server is asked with the words of one that is here, and gives the same answers and refusals."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, QueryRefused
from tacit.json_wire import write_json
from tacit.remote import Server
from tacit.remote.http import Reply, Wire, problem_from
from tests.server.conftest import House


class WireInHere(Wire):
    """A wire to a desk in this process."""

    def __init__(self, house: House, token: str) -> None:
        super().__init__("http://localhost:1", token)
        self.house, self.token = house, token

    def send(
        self,
        method: str,
        path: str,
        record: Any = None,
        headers: Mapping[str, str] | None = None,
        *,
        once: bool = False,
    ) -> Reply:
        given = {} if record is None else {"content": record if isinstance(record, bytes) else write_json(record)}
        reply = self.house.send(method, path, self.token, headers=headers or {}, **given)
        found = Reply(reply.content, {name.lower(): value for name, value in reply.headers.items()})
        if reply.status_code >= 300:
            raise problem_from(reply.status_code, found)
        return found


@pytest.fixture
def server(house: House) -> Server:
    return Server(WireInHere(house, "tacit_ada"))


QUESTIONS: list[Callable[[Any], Any]] = [
    lambda t: t.group_by("ward").count(),
    lambda t: t.where("days >= 2 AND ward <> 'A'").derive(weeks="days / 7").mean("weeks", between=(0, 5)),
    lambda t: t.agg(n=tacit.count(), people=tacit.count_units(), long=tacit.quantile("days", 0.9), s=tacit.sum("days")),
    lambda t: t.histogram("days", [0, 2, 5]),
    lambda t: t.top("ward", 2),
    lambda t: t.group_by("ward", keys=["A", "B", "Z"]).std("days"),
    lambda t: t.sql("SELECT ward, AVG(days) AS d FROM visits GROUP BY ward HAVING d > 0 ORDER BY d DESC LIMIT 2"),
    lambda t: t.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ROLLUP (ward)"),
    lambda t: t.group_by("ward", keys=["A"], totals=True, other=True).count(),
    lambda t: t.group_by("ward", keys=["A", "B"], totals=True, public_totals={"total": 90}).count(),
    lambda t: t.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward, OTHER() ORDER BY ward"),
]

WORKLOADS: list[Callable[[Any], Any]] = [
    lambda t: t.workload(by_ward=t.group_by("ward").count(), stay=t.mean("days")),
    lambda t: t.workload(one=t.sql("SELECT COUNT(*) AS n FROM visits"), two=t.where("days > 1").count()),
    lambda t: t.sql("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward; SELECT AVG(days) AS d FROM visits"),
    lambda t: t.marginals(["ward", "days"], bins={"days": [0, 2, 5]}),
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_prints_as_the_librarys_own(server: Server, house: House, question: Any) -> None:
    """The library's, asked second, is the stored one: the same numbers, and free."""
    remote = question(server["visits"])
    given = remote.answer(epsilon=1)
    own = question(tacit.catalog(str(house.folder / "tacit.toml"))["visits"]).answer(epsilon=1)
    assert own.facts.free
    assert not given.facts.free
    assert given.to_dicts() == own.to_dicts()
    assert (given.columns, given.types, given.kinds, given.names) == (own.columns, own.types, own.kinds, own.names)
    assert str(given).splitlines()[:-4] == str(own).splitlines()[:-4]
    again = remote.answer(epsilon=1)
    assert str(again) == str(own)
    assert json.loads(again.to_json())["rows"] == json.loads(own.to_json())["rows"]
    for of_columns in ("lower_ends", "rolled"):
        sent, kept = (
            {name: list(each) for name, each in getattr(answer, of_columns).items()} for answer in (given, own)
        )
        assert sent == kept


@pytest.mark.parametrize("question", WORKLOADS)
def test_a_workload_is_one_charge_there_too(server: Server, house: House, question: Any) -> None:
    remote = question(server["visits"])
    assert remote.plan(epsilon=1).fits
    given = remote.answer(epsilon=1)
    own = question(tacit.catalog(str(house.folder / "tacit.toml"))["visits"]).answer(epsilon=1)
    assert own.facts.free
    assert list(given.parts) == list(own.parts)
    for name, part in given.parts.items():
        assert part.to_dicts() == own[name].to_dicts()
        assert part.certificate()["number"] == given.certificate()["number"]


def test_a_workload_of_another_table_is_refused_here(server: Server) -> None:
    with pytest.raises(InvalidParameter, match="'n' must be a question to this table"):
        server["visits"].workload(n=server["pay"].count())
    with pytest.raises(InvalidParameter, match="a workload needs a question"):
        server["visits"].workload().answer(epsilon=1)


def test_the_answer_has_a_certificate(server: Server) -> None:
    given = server["visits"].count().answer(epsilon=1)
    assert given.certificate()["number"] == given.facts.receipt["entry"]


def test_a_question_is_refused_here_with_the_words_that_the_library_has(server: Server) -> None:
    with pytest.raises(QueryRefused, match="there is no column 'wart' in 'visits'\nhint: did you mean 'ward'"):
        server["visits"].group_by("wart")
    with pytest.raises(QueryRefused, match="the unit"):
        server["visits"].where("patient = 3")


def test_a_refusal_of_the_server_is_raised_as_what_it_is(server: Server) -> None:
    visits = server["visits"]
    with pytest.raises(BudgetExceeded, match="hint: "):
        visits.count().answer(epsilon=21)
    with pytest.raises(QueryRefused, match="must be one SELECT"):
        visits.sql("SELEKT 1").answer(epsilon=1)
    with pytest.raises(InvalidParameter, match="give epsilon"):
        visits.count().answer()
    with pytest.raises(InvalidParameter, match="there is no such table"):
        server["nowhere"]


def test_rows_by_unit_in_sql_are_those_of_the_tree(server: Server) -> None:
    visits = server["visits"]
    text = "SELECT AVG(n) AS mean_n FROM (SELECT patient, COUNT(*) AS n FROM visits GROUP BY patient) AS each"
    given = visits.sql(text, between={"mean_n": (0, 9)}).answer(epsilon=1)
    again = visits.per_unit(n=tacit.count()).mean("n", between=(0, 9)).answer(epsilon=1)
    assert again.facts.free
    assert [list(row.values())[0] for row in again.to_dicts()] == [list(row.values())[0] for row in given.to_dicts()]


def test_a_plan_is_the_servers_own_text(server: Server) -> None:
    plan = server["visits"].group_by("ward").count().plan(epsilon="0.1")
    assert plan.fits
    assert "Loss: ε = 0.1" in str(plan)


def test_tables_are_listed_and_described(server: Server) -> None:
    assert list(server) == ["visits", "pay"]
    visits = server["visits"]
    assert "ward" in str(visits.describe())
    assert visits.columns == ("patient", "ward", "days")
    assert visits.left.startswith("ε = 20")
    assert "days" in str(visits.describe(epsilon=1))


@pytest.mark.parametrize(
    "url", ["", "localhost", "ftp://localhost", "http://example.org", "https://a:b@host", "http://10.0.0.1", 5]
)
def test_a_token_goes_to_no_unsafe_address(url: Any) -> None:
    with pytest.raises(InvalidParameter):
        tacit.connect(url, token="tacit_x")


def test_a_summary_of_many_columns_learns_as_much_as_the_librarys_own(
    folder: Path, open_house: Callable[..., House]
) -> None:
    """The library's, asked second, is the stored one."""
    columns = {f"c{number}": [number, number + 1, number + 2] * 100 for number in range(6)}
    pq.write_table(pa.table({"patient": list(range(300)), **columns}), folder / "wide.parquet")
    (folder / "tacit.toml").write_text(
        'ledger = "ledger.db"\n[tables.wide]\nsource = "wide.parquet"\nunit = "patient"\nbudget = { epsilon = 9 }\n'
        "rows_per_unit = 1\ngroups_per_unit = 1\n"
    )
    server = Server(WireInHere(open_house(), "tacit_ada"))
    remote = server["wide"].describe(epsilon=3)
    own = tacit.catalog(str(folder / "tacit.toml"))["wide"].describe(epsilon=3)
    assert own.answer.facts.free
    assert str(remote).splitlines()[:8] == str(own).splitlines()[:8]
