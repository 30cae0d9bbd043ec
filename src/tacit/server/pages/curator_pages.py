"""The curator's pages: declare a table, set who may ask and how much, and see learned facts.

The acts are those of the API and of the command line, with a reason, and become ledger entries.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from fastapi import Request, Response
from starlette.datastructures import FormData

from tacit.errors import InvalidParameter
from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.numbers import show
from tacit.options import read_wording
from tacit.server import curating
from tacit.server.desk import Desk, told
from tacit.server.pages.page_look import budget_bars, learning_cost, lines_of_plan, outlook_of
from tacit.server.pages.visits import Guest, Visitors
from tacit.server.pages.wording_of_forms import Chosen, first_question, sql_of
from tacit.server.problems import Problem

PARTS = (2, 5, 10, 20)  # the preview of a budget
COLUMNS_MAX = 200
LEARNED_AT_ONCE_MOST = Fraction(1, 10)  # of a budget, by a declaration that learns: what its page promises
FURTHER_ROUNDS = Fraction(1, 4)  # of a call's epsilon, for facts that a first round leaves open
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


class CuratorPages:
    """The pages for the curators of tables."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

    async def _curator(self, request: Request) -> Guest:
        guest = await self.who(request)
        curating.require_all(guest.person, "curate")
        return guest

    async def _act(self, act: Callable[[], Any]) -> tuple[Any, Problem | None]:
        try:
            return await self.desk.aside(act), None
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return None, told(error)

    # --- people and tokens ---

    async def people(self, request: Request) -> Response:
        return await self._people_page(await self._curator(request))

    async def let_in(self, request: Request) -> Response:
        """Let a person in, with a token and budgets of their own if these are wanted; or end their time."""
        guest = await self._curator(request)
        form = await guest.form()
        record = _filled(form, "name", "role", "until", "usual_epsilon", "reason")
        tables = [str(each) for each in form.getlist("tables")]
        if form.get("end"):
            record = {**_filled(form, "name", "reason"), "end": True}
        elif tables:
            record["tables"] = tables
        done, problem = await self._act(lambda: curating.let_in(self.desk, guest.person, record))
        shown: dict[str, Any] = {"said": done, "name": record.get("name"), "tables_of_new": tables}
        if problem is None and form.get("token") and not form.get("end"):
            owner = _filled(form, "name", "until", "reason")
            shown["made"], problem = await self._act(lambda: curating.make_token(self.desk, guest.person, owner))
        amounts = _filled(form, "epsilon", "delta")
        if problem is None and "epsilon" in amounts:
            granted, problem = await self._act(lambda: self._grant_each(guest.person, tables, form, amounts))
            shown["budgets"] = granted or ()
        return await self._people_page(guest, problem, **shown)

    def _grant_each(
        self, curator: Person, tables: list[str], form: FormData, amounts: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        """Set the same budget for a person on each of these tables, an entry each."""
        if not tables:
            raise InvalidParameter("a budget needs a table\nhint: tick the tables that it is for")
        record = {"analyst": str(form.get("name")).strip(), **_filled(form, "reason"), **amounts}
        return [curating.grant(self.desk, curator, {"table": table, **record}) for table in tables]

    async def token(self, request: Request) -> Response:
        """Make a token: only this page shows its secret."""
        guest = await self._curator(request)
        record = _filled(await guest.form(), "name", "until", "reason")
        made, problem = await self._act(lambda: curating.make_token(self.desk, guest.person, record))
        return await self._people_page(guest, problem, made=made, name=record.get("name"))

    async def end_token(self, request: Request) -> Response:
        guest = await self._curator(request)
        form = await guest.form()
        reason = f"{form.get('reason') or 'ended'} (by {guest.person.name}, over HTTP)"
        id = str(form.get("id") or "")
        done, problem = await self._act(lambda: curating.stop_token(self.desk, id, reason))
        return await self._people_page(guest, problem, said=done)

    async def _people_page(self, guest: Guest, problem: Problem | None = None, **values: Any) -> Response:
        listed = await self.desk.aside(lambda: curating.listed(self.desk))
        shown = {"made": None, "said": None, "name": None, "budgets": (), "tables_of_new": ()} | values
        return guest.page("people.html", problem, tables=list(self.desk.file.tables), **listed, **shown)

    # --- budgets ---

    async def grants(self, request: Request) -> Response:
        """Show a table's budgets, and a preview of a new one."""
        return await self._grants_page(await self._curator(request), dict(request.query_params))

    async def granted(self, request: Request) -> Response:
        guest = await self._curator(request)
        form, table = await guest.form(), request.path_params["table"]
        if form.get("preview"):
            return await self._grants_page(guest, form)

        def act() -> Any:
            record = {"table": table, **_filled(form, "analyst", "period", "reason")}
            amounts = {} if form.get("revoke") else _filled(form, "epsilon", "delta")
            return curating.grant(
                self.desk, guest.person, {**record, **amounts, **({"revoke": True} if form.get("revoke") else {})}
            )

        done, problem = await self._act(act)
        return await self._grants_page(guest, form if problem else {}, problem, done)

    async def _grants_page(
        self, guest: Guest, chosen: Mapping[str, Any], problem: Problem | None = None, done: Any = None
    ) -> Response:
        person, table = guest.person, guest.request.path_params["table"]
        described = await self.desk.described(person, table)
        bars = await self.desk.aside(lambda: self._bars(table))
        preview = await self._preview(person, table, str(chosen.get("epsilon") or "").strip())
        return guest.page(
            "grants.html",
            problem,
            table=table,
            described=described,
            chosen=chosen,
            bars=bars,
            preview=preview,
            done=done,
            delta=await self.desk.aside(lambda: self._delta(table)),
            analysts=[each.name for each in self.desk.ledger.people() if each.role != "auditor" and not each.ended],
        )

    def _delta(self, table: str) -> str:
        """Return the δ of the table's own budget: a grant without one could find no groups."""
        registered = self.desk.ledger.table(table)
        delta = Fraction(0 if registered is None else getattr(registered.budget, "delta", 0))
        return show(delta, up=False).replace("e-0", "e-")

    def _bars(self, table: str) -> list[dict[str, Any]]:
        """Return the table's own budgets, and those of each analyst."""
        found = budget_bars(self.desk.ledger, table, None)
        for each in self.desk.ledger.people():
            own = budget_bars(self.desk.ledger, table, each.name) if each.name else []
            found += [bar for bar in own if bar["whose"]]
        return found

    async def _preview(self, person: Person, table: str, epsilon: str) -> dict[str, Any] | None:
        """Return what a budget buys: questions like the last one, at what ±."""
        if not _NUMBER.fullmatch(epsilon) or float(epsilon) <= 0:
            return None
        asked = await self.desk.aside(lambda: self._last_question(table))
        sql = asked or sql_of(Chosen(), table, "", {})
        rows = []
        for parts in PARTS:
            each = f"{float(epsilon) / parts:.4g}"
            try:
                body = write_json({"sql": sql, "epsilon": each})
                planned = await self.desk.plan(person, table, read_wording(body, may_answer=False))
                outlook = outlook_of(lines_of_plan(planned["text"]))
                close = " ".join(filter(None, (outlook.line, outlook.group))) or "the answer states it"
            except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
                close = told(error).detail
            rows.append({"questions": parts, "epsilon": each, "error": close})
        return {"sql": sql, "rows": rows}

    def _last_question(self, table: str) -> str | None:
        ledger = self.desk.ledger
        registered = ledger.table(table)
        last = None
        for entry in ledger.entries(max(1, ledger.length() - 500)):
            record = entry.record
            if registered is not None and entry.kind == "charge" and record["table"] == registered.id:
                last = record.get("about", last)
        return last

    # --- declare a table ---

    async def declare(self, request: Request) -> Response:
        """Show the four steps; a source's columns are read from its schema, and no row."""
        return await self._declare_page(await self._curator(request), FormData(request.query_params))

    async def declared(self, request: Request) -> Response:
        """Show the steps again, or declare the table, for life."""
        guest = await self._curator(request)
        form = await guest.form()
        if not form.get("declare"):
            return await self._declare_page(guest, form)

        def act() -> Any:
            return curating.declare(self.desk, guest.person, declaration_of(form))

        done, problem = await self._act(act)
        if done is not None and form.get("learn"):
            problem = await self._learn_first(guest.person, done, form)
        return await self._declare_page(guest, form, problem, done)

    async def _learn_first(self, person: Person, done: Mapping[str, Any], form: FormData) -> Problem | None:
        """Charge for and learn the facts of a first question: plans of such questions then state their error.

        It is planned at a fifth of the budget, of which its facts take about a fifth: less would be too noisy for long.
        If they would take more than the page promises, it is planned at less.
        """
        declared, name = done["declaration"], done["name"]
        columns, unit = declared["columns"], declared["unit"]
        sql = sql_of(first_question(str(form["learn"]), columns, unit), name, unit, columns)
        whole = Fraction(str(done["budget"]["epsilon"] or 0))

        def at(epsilon: Fraction) -> Any:
            body = {"sql": sql, "epsilon": f"{float(epsilon):.6f}"}
            return read_wording(write_json(body), may_answer=False)

        try:
            planned = await self.desk.plan(person, name, at(whole / 5))
            cost = learning_cost(lines_of_plan(planned["text"])) or Fraction(0)
            most = cost * Fraction(21, 20) + whole / 5 * FURTHER_ROUNDS  # the plan's two digits may be 5 % too low
            fits = min(Fraction(1), LEARNED_AT_ONCE_MOST * whole / most) if most else Fraction(1)
            await self.desk.learn(person, name, at(whole / 5 * fits))
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return told(error)
        return None

    async def _declare_page(
        self, guest: Guest, form: FormData, problem: Problem | None = None, done: Any = None
    ) -> Response:
        source = str(form.get("source") or "").strip()
        columns: dict[str, str] | None = None
        if source and done is None:
            columns, mistake = await self._act(lambda: curating.columns_of(self.desk, source))
            problem = problem or mistake
        return guest.page(
            "declare.html",
            problem,
            form=form,
            source=source,
            stem=re.sub(r"\W+", "_", source.rpartition("table=")[2].rpartition("/")[2].partition(".")[0]),
            columns=columns,
            allowed=bool(self.desk.sources),
            sources=await self.desk.aside(lambda: curating.files_under(self.desk)),
            done=done,
            bars=[] if done is None else await self.desk.aside(lambda: self._bars(done["name"])),
            learned=[] if done is None else await self.desk.aside(lambda: self.desk.facts_of(done["name"])),
            tables=list(self.desk.file.tables),
            units=self.desk.file.units(),
        )


def declaration_of(form: FormData) -> dict[str, Any]:
    record: dict[str, Any] = _filled(form, "name", "source", "unit", "via", "hold")
    budget = _filled(form, "epsilon", "delta")
    if budget:
        record["budget"] = budget | _filled(form, "period")
    columns: dict[str, Any] = {}
    for name in [str(each) for each in form.getlist("column")][:COLUMNS_MAX]:
        facts: dict[str, Any] = {}
        low, high = (str(form.get(f"{end} {name}") or "").strip() for end in ("low", "high"))
        if low or high:
            facts["between"] = [low, high]
        keys = [key.strip() for key in str(form.get(f"keys {name}") or "").split(",") if key.strip()]
        if form.get(f"truth {name}"):
            facts["keys"] = [False, True]
        if keys:
            facts["keys"] = [int(key) if re.fullmatch(r"-?\d{1,18}", key) else key for key in keys]
        if facts:
            columns[name] = facts
    if columns:
        record["columns"] = columns
    return record


def _filled(form: FormData, *names: str) -> dict[str, Any]:
    given = {name: str(form.get(name) or "").strip() for name in names}
    return {name: value for name, value in given.items() if value}
