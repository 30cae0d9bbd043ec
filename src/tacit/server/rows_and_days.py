"""Made-up rows, dummy rows and counts that run on, as a server gives them: to programs, to agents and to pages.

Each is planned for free, and charged to the same budget as a question. What reads rows leaves on the table's public
clock, and a running count's days end by the clock of the server's ledger.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response

from tacit.answer import answer_record, loss_record
from tacit.asking import Running, Table
from tacit.errors import InvalidParameter
from tacit.json_wire import write_json
from tacit.learning import MadeRows, model_text
from tacit.ledger import Person
from tacit.options import MADE_ROWS, REPORT, RUNNING, Option, read_options
from tacit.server.desk import Desk, Given
from tacit.server.problems import Who, body_of, json_reply, object_document
from tacit.server.reply_schemas import WITH_ANSWER, AnswerRecord, MadeRowsRecord, PlanRecord, RowsReportRecord

Words = Mapping[str, Any]


@dataclass(frozen=True)
class RowsAndDays:
    """What a desk gives besides answers to questions: rows that are made up, and counts that run on."""

    desk: Desk

    async def plan_rows(self, person: Person, name: str, words: Words) -> dict[str, Any]:
        """Return the plan of made-up rows: free, and no row is read."""

        def made(table: Table) -> dict[str, Any]:
            plan = _rows_asked(table, words).synthesize.plan(**_words_of_rows(words), analyst=person.name)
            session = plan.table.session
            fit = session.ledger.fit(session.registered, plan.events, asked=plan.asked, analyst=person.name)
            return {"text": str(plan), "loss": loss_record(plan.loss), "fits": fit is None or fit.short is None}

        return await self.desk.planned(person, name, made)

    async def make_rows(self, person: Person, name: str, words: Words) -> MadeRows:
        """Charge for the noisy tables of made-up rows, and return what all rows are made of."""

        def made(table: Table) -> MadeRows:
            found: MadeRows = _rows_asked(table, words).synthesize(**_words_of_rows(words), analyst=person.name)
            return found

        return await self.desk.charged(person, name, made)

    async def report(self, person: Person, name: str, words: Words) -> dict[str, Any]:
        """Charge for the distances of pairs that made-up rows did not measure; the rows are free if made before."""
        if "report_epsilon" not in words:
            raise InvalidParameter(
                'report_epsilon is missing: what the report may cost\nhint: {"report_epsilon": "0.2"}'
            )
        rows = {each: value for each, value in words.items() if not each.startswith("report_")}

        def made(table: Table) -> dict[str, Any]:
            found: MadeRows = _rows_asked(table, rows).synthesize(**_words_of_rows(rows), analyst=person.name)
            report = found.report(words["report_epsilon"], words.get("report_delta"), analyst=person.name)
            others = [{"columns": [*each.columns], "apart": each.apart, "error": each.noise} for each in report.others]
            return {"text": str(report), "others": others, "paid": report.paid}

        return await self.desk.charged(person, name, made)

    async def dummy(self, person: Person, name: str, rows: int) -> Any:
        """Return rows made of public facts only, as an Arrow table: free."""
        return await self.desk.planned(person, name, lambda table: table.dummy(rows).to_arrow())

    async def plan_running(self, person: Person, name: str, words: Words) -> dict[str, Any]:
        """Return the plan of a running count: free, and no row is read."""

        def made(table: Table) -> dict[str, Any]:
            plan = _running_count(table, words).plan(**_cost(words), analyst=person.name)
            fits = plan.fit is None or plan.fit.short is None
            return {"text": str(plan), "loss": loss_record(plan.loss), "fits": fits}

        return await self.desk.planned(person, name, made)

    async def start(self, person: Person, name: str, words: Words) -> dict[str, Any]:
        """Charge for all days of a running count; no row is read."""

        def started(table: Table) -> dict[str, Any]:
            return {"started": _running_count(table, words).start(**_cost(words), analyst=person.name).words}

        return await self.desk.charged(person, name, started)

    async def step(self, person: Person, name: str, words: Words) -> Given:
        """Release the days that are over, by the ledger's clock."""
        return await self.desk.charged(
            person, name, lambda table: _totals_given(_running_count(table, words).step, person, words)
        )

    async def show(self, person: Person, name: str, words: Words) -> Given:
        """Return all released days again: free, and no row is read."""
        return await self.desk.planned(
            person, name, lambda table: _totals_given(_running_count(table, words).show, person, words)
        )


def _words_of_rows(words: Words) -> dict[str, Any]:
    """Return the words of `synthesize`: columns of dates have their range beside their name."""
    kept = {name: value for name, value in words.items() if name not in ("where", "dates", "columns")}
    if "epsilon" not in kept:
        raise InvalidParameter('epsilon is missing: the most that all rows may cost\nhint: {"epsilon": "1"}')
    columns, dates = words.get("columns"), words.get("dates", {})
    if columns is None and dates:
        raise InvalidParameter('ranges of dates need the columns to be named\nhint: {"columns": ["age", "day"]}')
    return kept | {"columns": columns if columns is None else {name: dates.get(name) for name in columns}}


def _cost(words: Words) -> dict[str, Any]:
    if "epsilon" not in words:
        raise InvalidParameter('epsilon is missing: the most that all days may cost\nhint: {"epsilon": "1"}')
    return {name: words[name] for name in ("epsilon", "delta") if name in words}


def _rows_asked(table: Table, words: Words) -> Table:
    return table.where(words["where"]) if "where" in words else table


def _running_count(table: Table, words: Words) -> Running:
    for name in ("day", "until"):
        if name not in words:
            raise InvalidParameter(f'{name} is missing\nhint: {{"day": "day", "until": "2028-12-31"}}')
    rows = _rows_asked(table, words).running(
        words["day"], until=words["until"], since=words.get("since"), zone=words.get("zone")
    )
    most = words.get("rows_per_unit")
    return rows.count_units() if most is None else rows.count(rows_per_unit=most)


def _totals_given(ask: Callable[..., Any], person: Person, words: Words) -> Given:
    answer = ask(analyst=person.name, confidence=words.get("confidence", "0.95"))
    return Given(write_json(answer_record(answer)), json.dumps(dict(answer.facts.left)))


def add_rows_and_days_routes(app: FastAPI, desk: Desk, who: Who) -> None:
    """Add the routes of made-up rows and of running counts."""
    given = RowsAndDays(desk)

    async def made(person: Person, table: str, words: Words) -> dict[str, Any]:
        rows = await given.make_rows(person, table, words)
        return {"text": str(rows), "made": model_text(rows)}

    def add(path: str, summary: str, model: Any, options: Mapping[str, Option], required: str, make: Any) -> None:
        body = object_document({name: each.document for name, each in options.items()}, tuple(required.split()))
        more: dict[str, Any] = {"responses": WITH_ANSWER} if model is AnswerRecord else {}

        @app.post(
            f"/api/v1/tables/{{table}}/{path}",
            summary=summary,
            response_model=model,
            openapi_extra={"requestBody": body},
            operation_id=path.replace("/", "_"),
            **more,
        )
        async def reply(request: Request, table: str) -> Response:
            found = await make(await who(request), table, read_options(await body_of(request), options))
            if not isinstance(found, Given):
                return json_reply(found)
            return Response(found.body, 200, {"Tacit-Left": found.left}, media_type="application/json")

    free, once = "The noise and the cost of made-up rows: free", "The noisy tables for made-up rows, charged once"
    apart = "How far pairs that were not measured are from made-up rows, charged once"
    cost, start = "The cost of a running count and its errors: free", "Charge once for all days of a running count"
    step, again = "The totals with the days that are over, by the ledger's clock: free", "The released days again: free"
    add("made-rows/plan", free, PlanRecord, MADE_ROWS, "epsilon", given.plan_rows)
    add("made-rows", once, MadeRowsRecord, MADE_ROWS, "epsilon", made)
    add("made-rows/report", apart, RowsReportRecord, REPORT, "epsilon report_epsilon", given.report)
    add("running/plan", cost, PlanRecord, RUNNING, "day until epsilon", given.plan_running)
    add("running/start", start, dict[str, str], RUNNING, "day until epsilon", given.start)
    add("running/step", step, AnswerRecord, RUNNING, "day until", given.step)
    add("running/show", again, AnswerRecord, RUNNING, "day until", given.show)
