"""Ask: the builder's choices become a plan while the visitor types, and an answer after payment.

No decision is made here: a page asks the desk like a client of the API, as the same person.

The position of a refusal on the page, and the button that mends it.

A refusal has words, a hint and, for SQL, a line and a column. The builder's SELECT has one line for each part of the
form, so the line identifies the field.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_DOWN, Decimal
from hashlib import sha256
from typing import Any

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from tacit.json_wire import write_json
from tacit.ledger import Person
from tacit.noise import fresh_bytes
from tacit.numbers import brief
from tacit.options import read_wording
from tacit.query import FUNCTIONS
from tacit.server.desk import Desk, told
from tacit.server.pages.page_look import budget_bars, lines_of_plan, outlook_of, page
from tacit.server.pages.visits import Guest, Visitors
from tacit.server.pages.wording_of_forms import (
    AGGREGATES,
    COMPARISONS,
    PART_WORDS,
    TOTALS_WORDS,
    WHAT_WORDS,
    WITHOUT_COLUMN,
    Chosen,
    chosen_from,
    columns_for,
    examples_of,
    groups_of,
    python_of,
    quoted,
    sql_of,
    sql_of_key,
)
from tacit.server.problems import Problem

_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_MEANT = re.compile(r"did you mean '([^']+)'")
_UNKNOWN = re.compile(r"there is no (?:column|table|function) '([^']+)'")
_FIELDS = {"SELECT": "what", "FROM": "what", "WHERE": "where", "GROUP": "by"}
_SPENDING = re.compile(r"\b(epsilon|error|delta|budget)\b")


@dataclass(frozen=True)
class Fix:
    """A button: its words, and the values that it sets."""

    words: str
    value: str  # field=text


def field_of(problem: Problem, chosen: Chosen, sql: str) -> str:
    place = _PLACE.search(problem.detail)
    if problem.kind == "no-room" or (place is None and _SPENDING.search(problem.detail + problem.hint)):
        return "spend"
    if chosen.mode == "sql":
        return "sql"
    lines = sql.splitlines()
    line = lines[int(place[1]) - 1] if place and int(place[1]) <= len(lines) else ""
    if place is None and (chosen.where or chosen.filters) and not chosen.by:
        return "where"
    return _FIELDS.get(line.split(" ")[0], "what")


def two_digits(amount: float) -> str:
    """Return an amount in two digits, rounded down.

    >>> two_digits(3.119), two_digits(0.0456), two_digits(2.0), two_digits(128.7)
    ('3.1', '0.045', '2', '120')
    """
    exact = Decimal(repr(amount))
    return f"{exact.quantize(Decimal(1).scaleb(exact.adjusted() - 1), ROUND_DOWN).normalize():f}"


def fixes_of(problem: Problem, chosen: Chosen, sql: str, epsilon: str) -> list[Fix]:
    """Return the buttons that mend a refusal; `epsilon` is an amount that fits, or None."""
    field = field_of(problem, chosen, sql)
    meant, unknown = _MEANT.search(problem.hint), _UNKNOWN.search(problem.detail)
    if meant and unknown and field in ("where", "sql"):
        text = getattr(chosen, field)
        found = re.sub(rf"\b{re.escape(unknown[1])}\b", lambda _: meant[1], text)
        return [Fix(meant[1], f"{field}={found}")] if found != text else []
    return [Fix(f"ε = {epsilon}", f"epsilon={epsilon}")] if field == "spend" and epsilon else []


def mended(chosen: Chosen, fix: str) -> Chosen:
    """Return what is chosen after a button of `fixes_of`."""
    field, _, text = fix.partition("=")
    if field == "epsilon":
        return replace(chosen, epsilon=text, error="")
    if field == "where":
        return replace(chosen, where=text)
    if field == "try":
        return replace(chosen, mode="sql", sql=text)
    return replace(chosen, sql=text) if field == "sql" else chosen


# Aggregates, for the list beside the SQL: the catalogue has only functions of a row.
_AGGREGATE_FORMS = (
    "COUNT(*)",
    "COUNT(x)",
    "COUNT(DISTINCT x)",
    "SUM(x)",
    "AVG(x)",
    "MEDIAN(x)",
    "QUANTILE(x, 0.9)",
    "MIN(x)",
    "MAX(x)",
    "STDDEV(x)",
    "VARIANCE(x)",
    "CORR(x, y)",
    "COUNT(*) FILTER (WHERE c)",
)
# The parts of a SELECT, each in a whole question about two tables of the same patients.
GRAMMAR = (
    ("Numbers of groups", "SELECT ward, COUNT(*) AS n, AVG(days) FROM visits WHERE days > 0 GROUP BY ward"),
    (
        "Order and limit, after the noise",
        "SELECT ward FROM visits GROUP BY ward HAVING COUNT(*) > 9 ORDER BY COUNT(*) LIMIT 3",
    ),
    ("Totals", "SELECT ward, YEAR(day), COUNT(*) FROM visits GROUP BY ROLLUP (1, 2)"),
    ("Totals of every column", "SELECT ward, YEAR(day), COUNT(*) FROM visits GROUP BY CUBE (1, 2)"),
    ("Groups in time", "SELECT DATE_TRUNC('month', day) AS month, COUNT(*) FROM visits GROUP BY 1"),
    ("Numbers in steps", "SELECT days // 5 * 5 AS days_from, COUNT(*) FROM visits GROUP BY 1"),
    ("A share", "SELECT 1.0 * COUNT(*) FILTER (WHERE days > 7) / COUNT(*) AS share FROM visits"),
    ("A window, after the noise", "SELECT ward, COUNT(*) / SUM(COUNT(*)) OVER () AS part FROM visits GROUP BY ward"),
    ("Per person", "SELECT AVG(n) FROM (SELECT patient_id, COUNT(*) AS n FROM visits GROUP BY patient_id)"),
    ("A table of the same people", "SELECT sex, COUNT(*) FROM visits JOIN patients USING (patient_id) GROUP BY sex"),
    (
        "Several questions, charged as one",
        "SELECT COUNT(*) FROM visits; SELECT ward, COUNT(*) FROM visits GROUP BY ward",
    ),
)
_WORDS_OF_SQL = "SELECT FROM WHERE GROUP BY ROLLUP CUBE HAVING ORDER LIMIT AND OR NOT IN BETWEEN LIKE IS NULL CASE WHEN"
_NAME = re.compile(r"[A-Z][A-Z_0-9]+(?=\()")
KEYS_SHOWN, KEYS_BESIDE = 60, 12


class AskPages:
    """The pages for asking."""

    def __init__(self, desk: Desk, visitors: Visitors) -> None:
        self.desk = desk
        self.who = visitors.who

    async def ask(self, request: Request, table: str) -> Response:
        """Show the builder, filled in from an address: to repeat and change a question."""
        guest = await self.who(request)
        chosen = chosen_from(request.query_params)
        if not chosen.spends:
            left = (await self.desk.budget(guest.person, table))["epsilon"]
            chosen = replace(chosen, epsilon=f"{left / 10:.1g}" if left else "")
        return await self._ask_page(guest, table, chosen)

    async def plan(self, request: Request, table: str) -> Response:
        """Show the plan of the current choices: free; only the plan for a page that updates while the visitor types."""
        guest = await self.who(request)
        form = await guest.form()
        chosen = _with_buttons(mended(chosen_from(form), str(form.get("fix") or "")), form)
        if request.headers.get("tacit-part") == "plan":
            described = await self.desk.described(guest.person, table)
            values = await self._planned(guest.person, table, chosen, described)
            return page(request, "plan.html", table=table, is_part=True, chosen=chosen, **values)
        return await self._ask_page(guest, table, chosen)

    async def grammar(self, request: Request) -> Response:
        """Show the SQL of questions: the parts of a SELECT, its numbers, and every function."""
        guest = await self.who(request)
        return guest.page("sql.html", grammar=GRAMMAR, numbers=_AGGREGATE_FORMS, functions=FUNCTIONS.values())

    async def learn(self, request: Request, table: str) -> Response:
        """Learn the facts that a question lacks, charged; then show its plan, which states the expected interval."""
        guest = await self.who(request)
        chosen = chosen_from(await guest.form())
        described = await self.desk.described(guest.person, table)
        declared = described["declaration"]
        sql = sql_of(chosen, table, declared["unit"], declared["columns"])
        try:
            await self.desk.learn(guest.person, table, _wording(sql, chosen, may_answer=False))
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return await self._ask_page(guest, table, chosen, told(error))
        return await self._ask_page(guest, table, chosen)

    async def _ask_page(
        self, guest: Guest, table: str, chosen: Chosen, problem: Problem | None = None, *, is_changed: bool = False
    ) -> Response:
        person = guest.person
        described = await self.desk.described(person, table)
        declared = described["declaration"]
        columns, unit = declared["columns"], declared["unit"]
        if chosen.mode == "sql" and not chosen.sql:  # something to begin with
            chosen = replace(chosen, sql=sql_of(replace(chosen, mode="build"), table, unit, columns))
        values = await self._planned(person, table, chosen, described)
        if problem is not None:
            values |= await self._at_its_field(person, table, problem, chosen, values["sql"], described)
        found = await self.desk.known(person, table)
        keys = {name: (each["keys"] or found.get(name) or [])[:KEYS_SHOWN] for name, each in columns.items()}
        return guest.page(
            "ask.html",
            status=409 if is_changed else 200 if problem is None else problem.status,
            table=table,
            described=described,
            hold=float(self.desk.hold_of(table)),
            chosen=chosen,
            is_changed=is_changed,
            whats={what: columns_for(what, columns, unit) for what in AGGREGATES},
            what_words=WHAT_WORDS,
            without_column=WITHOUT_COLUMN,
            part_words=PART_WORDS,
            totals_words=TOTALS_WORDS,
            comparisons=COMPARISONS,
            bars=await asyncio.to_thread(budget_bars, self.desk.ledger, table, person.name),
            columns={name: each for name, each in columns.items() if name != unit},
            keys=keys,
            key_sql={
                name: [(key, sql_of_key(key, each)) for key in keys[name][:KEYS_BESIDE]]
                for name, each in columns.items()
            },
            lists={name: f"keys-{at}" if keys[name] else "" for at, name in enumerate(columns)},
            found=found,
            groups=groups_of(columns, unit),
            by=dict(chosen.by),
            examples=examples_of(table, columns, unit, finds=bool(described["budget"]["laplace"]["delta"])),
            sql_names={name: _sql_name(name) for name in columns},
            names=_names(table, columns),
            key=fresh_bytes(16).hex(),
            is_part=False,
            **values,
        )

    async def _at_its_field(
        self,
        person: Person,
        table: str,
        problem: Problem,
        chosen: Chosen,
        sql: str,
        described: Mapping[str, Any],
    ) -> dict[str, Any]:
        field = field_of(problem, chosen, sql)
        epsilon = ""
        if field == "spend" and described["budget"]["epsilon"]:
            epsilon = await self._fitting(person, table, chosen, sql, described["budget"])
        return {"problem": problem, "field": field, "fixes": fixes_of(problem, chosen, sql, epsilon)}

    async def _fitting(self, person: Person, table: str, chosen: Chosen, sql: str, left: Mapping[str, Any]) -> str:
        """Return the largest amount, in two digits, with a plan that fits into the rest of the budget; None if no
        amount fits.

        How much fits depends on the noise of the plan, so each amount that may be left is planned.
        """
        kinds = {left[kind]["epsilon"] for kind in ("gaussian", "laplace")}
        for amount in (two_digits(each) for each in sorted(kinds, reverse=True) if each):
            tried = await self._tried(person, table, chosen, sql, amount)
            if tried is not None and tried["fits"]:
                return amount
        return ""

    async def _tried(self, person: Person, table: str, chosen: Chosen, sql: str, epsilon: str) -> dict[str, Any] | None:
        """Return the plan of a question at another amount; None if that is refused."""
        tried = replace(chosen, epsilon=epsilon, error="")
        try:
            return await self.desk.plan(person, table, _wording(sql, tried, may_answer=False))
        except Exception as error:  # noqa: BLE001 - a refusal of this amount: `told` logs what is not ours
            told(error)
            return None

    async def _planned(
        self, person: Person, table: str, chosen: Chosen, described: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Return the plan of the current choices, or the problem and its position."""
        declared = described["declaration"]
        sql = sql_of(chosen, table, declared["unit"], declared["columns"])
        found: dict[str, Any] = {"sql": sql, "plan": None, "python": "", "problem": None, "field": "", "fixes": ()}
        if not sql.strip() or not chosen.spends:
            return found
        try:
            found["python"] = python_of(chosen, table, chosen.spending, sql)
            planned = await self.desk.plan(person, table, _wording(sql, chosen, may_answer=False))
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return found | await self._at_its_field(person, table, told(error), chosen, sql, described)
        budget = described["budget"]  # by addition, as the bar above counts it, while that has room
        lines, left = lines_of_plan(planned["text"]), budget["laplace"]["epsilon"] or budget["epsilon"]
        epsilon = planned["loss"]["epsilon"]
        found["plan"] = {
            **planned,
            "lines": lines,
            "outlook": outlook_of(lines),
            "price": planned["loss"]["text"] if epsilon is None else f"ε {brief(epsilon)}",
            "left": f"ε {brief(left, up=False)}" if left else "",
            "closer": await self._for_more(person, table, chosen, sql, epsilon, left),
            "mark": _mark_of_plan(sql, chosen),
        }
        enough = found["plan"]["outlook"].enough
        if enough and left and float(enough) <= left:
            found["fixes"] = (Fix(f"ε = {enough}", f"epsilon={enough}"),)
        if not planned["fits"] and left:
            amount = await self._fitting(person, table, chosen, sql, described["budget"])
            found["fixes"] = (Fix(f"ε = {amount}", f"epsilon={amount}"),) if amount else ()
        return found

    async def _for_more(
        self, person: Person, table: str, chosen: Chosen, sql: str, epsilon: float | None, left: float | None
    ) -> tuple[str, str] | None:
        """Return twice the amount and the error to expect for it, if that fits into the rest of the budget."""
        if epsilon is None or not left or chosen.error or 2 * epsilon > left:
            return None
        amount = two_digits(2 * epsilon)
        tried = await self._tried(person, table, chosen, sql, amount)
        line = "" if tried is None or not tried["fits"] else outlook_of(lines_of_plan(tried["text"])).line
        return (amount, line) if line else None

    async def asked(self, request: Request, table: str) -> Response:
        """Ask, at the cost shown in the plan; the answer has a separate address.

        A form whose question differs from the plan on its page is planned again, uncharged.
        """
        guest = await self.who(request)
        person, form = guest.person, await guest.form()
        chosen = chosen_from(form)
        declared = (await self.desk.described(person, table))["declaration"]
        sql = sql_of(chosen, table, declared["unit"], declared["columns"])
        key = str(form.get("key") or "")
        if form.get("planned") and form["planned"] != _mark_of_plan(sql, chosen):
            return await self._ask_page(guest, table, chosen, is_changed=True)
        try:
            wording = _wording(sql, chosen, may_answer=True, is_noise_wanted=bool(form.get("anyway")))
            await self.desk.ask(person, table, wording, _form_key(key))
        except Exception as error:  # noqa: BLE001 - `told` decides what of it may be seen
            return await self._ask_page(guest, table, chosen, told(error))
        return RedirectResponse(f"/answers/{key}", 303)


def _names(table: str, columns: Mapping[str, Any]) -> list[str]:
    """Return the words that the SQL field completes: names as SQL writes them, functions, and SQL's own words."""
    forms = (*_AGGREGATE_FORMS, *(record.form for record in FUNCTIONS.values()))
    functions = [name for form in forms for name in _NAME.findall(form)]
    return list(
        dict.fromkeys([*map(_sql_name, (table, *columns)), *(f"{name}(" for name in functions), *_WORDS_OF_SQL.split()])
    )


def _sql_name(name: str) -> str:
    """Return a name as people write it in SQL: in quotes only if it needs them."""
    return name if re.fullmatch(r"[a-z_][a-z_0-9]*", name) else quoted(name)


def _mark_of_plan(sql: str, chosen: Chosen) -> str:
    """Return what tells one planned question from another: its text and the amount."""
    return sha256(write_json([sql, chosen.spending])).hexdigest()[:32]


def _wording(sql: str, chosen: Chosen, *, may_answer: bool, is_noise_wanted: bool = False) -> Any:
    asked = {"sql": sql, **chosen.spending, **({"accept_noise": True} if is_noise_wanted else {})}
    return read_wording(write_json(asked), may_answer=may_answer)


def _form_key(written: str) -> str:
    if not written or len(written) > 64 or not written.isalnum():
        raise Problem("refused", 422, "this form lacks its key", "open the page again")
    return written


def _with_buttons(chosen: Chosen, form: Any) -> Chosen:
    """Return what is chosen after a button of a page without scripts: one more number, or one less."""
    if form.get("more"):
        return replace(chosen, shown=(*chosen.shown, ("mean", "")))
    if form.get("less") and len(chosen.shown) > 1:
        return replace(chosen, shown=chosen.shown[:-1])
    return chosen
