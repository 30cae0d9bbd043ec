"""Published bugs of answering, planted in our own engine, planner, release and session, that the cases must kill."""

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from tacit.errors import EngineError, QueryRefused
from tacit_gauntlet.frame.mutant import Plant, mutant
from tacit_gauntlet.stage.table import in_sql
from tacit_gauntlet.targets import original, planted


def _with(function: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    return lambda *args, **words: function(*args, **(words | fixed))


def _scaled_by_the_data(steps: Callable[..., Any]) -> Callable[..., Any]:
    sql = original("typed SQL")

    def by_largest(value: Any, column: Any) -> Any:
        within = sql.greatest(sql.least(value.cast("float64"), 1e6), -1e6)
        return steps(value * 7 / within.max().over(sql.window()), column)

    return by_largest


def _nan_as_a_number(clamped: Callable[..., Any]) -> Callable[..., Any]:
    """NaN counts as the top of its range."""

    def wrong(value: Any, low: Any, high: Any) -> Any:
        is_float = value.type().is_floating()
        return clamped(
            original("typed SQL").cases((value.isnan(), high), else_=value) if is_float else value, low, high
        )

    return wrong


def _a_thousand_times(clamped: Callable[..., Any]) -> Callable[..., Any]:
    return lambda value, low, high: clamped(value, low - 1000 * (high - low), high + 1000 * (high - low))


def _without_unit(salted: Callable[..., Any]) -> Callable[..., Any]:
    return lambda rows, names, salt: salted(rows, [name for name in names if name != original("UNIT")], salt)


def _whole(found: Any, name: str) -> list[int]:
    return [0 if text is None else int(text) for text in found.column(name).to_pylist()]


def _as_they_are(found: Any, name: str) -> list[Any]:
    return [0 if text is None else float(text) for text in found.column(name).to_pylist()]


def _with_a_range(measured_column: Callable[..., Any]) -> Callable[..., Any]:
    def guessing(aggregate: Any, *args: Any, **words: Any) -> Any:
        unit = (Fraction(0), Fraction(1))
        return measured_column(replace(aggregate, between=aggregate.between or unit), *args, **words)

    return guessing


def _one_lower(threshold_for: Callable[..., Any]) -> Callable[..., Any]:
    def lower(*args: Any, **words: Any) -> Any:
        found = threshold_for(*args, **words)
        return replace(found, least=found.least - 1)

    return lower


def _reads_before_charging(self: Any, **_: Any) -> Any:
    ((session, query),) = self.parts.questions
    plan = original("make_plan")(query, session.declaration, self.spend)
    exact = session.engine.aggregate(plan, original("fresh_bytes")(original("SALT_BYTES")).hex())
    released = original("release")(plan, exact)
    charged: Any = session.ledger.reserve(
        session.registered,
        plan.events,
        question_key=original("question_key")(plan),
        request_id=self.request_id,
        analyst=self.asker.name,
    )
    planned = original("PlannedTogether")((plan,), self.spend, plan.noise)
    receipt = charged.commit(released.to_json())
    return original("Answered")(planned, (plan,), (released,), receipt, free=False)


def _gives_back(answer: Callable[..., Any]) -> Callable[..., Any]:
    """Answer on a spare table first, and charge only where that went well."""

    def answered(self: Any, **words: Any) -> Any:
        ((session, query),) = self.parts.questions
        session.engine.aggregate(original("make_plan")(query, session.declaration, self.spend), "00")
        return answer(self, **words)

    return answered


def _speaks(self: Any, plan: Any, salt: str) -> Any:
    try:
        yield from self._aggregate(plan, salt)
    except Exception as problem:
        raise EngineError(f"the engine failed: {problem}") from None


@contextmanager
def _believes(_charge: Any) -> Any:
    try:
        yield
    except EngineError:
        raise
    except Exception:
        raise EngineError("the release failed") from None


def _counts_aloud(parts: Callable[..., Any]) -> Callable[..., Any]:
    def aloud(self: Any, plan: Any, salt: str) -> Any:
        for found in parts(self, plan, salt):
            logging.getLogger("tacit.engine").warning("%d rows were read", _largest(found))
            yield found

    return aloud


def _largest(found: Any) -> int:
    """Return the largest exact sum, whatever the plan calls it."""
    return max((value for values in found.sums.values() for value in values), default=0)


def _only_found(listed_groups: Callable[..., Any]) -> Callable[..., Any]:
    def found_alone(found: Any, plan: Any) -> Any:
        every = listed_groups(found, plan)
        kept = [place for place in range(len(every.keys)) if any(values[place] for values in every.sums.values())]
        sums = {name: [values[place] for place in kept] for name, values in every.sums.items()}
        return replace(every, keys=[every.keys[place] for place in kept], sums=sums)

    return found_alone


def _guessed_dialect(backend: Any, paths: Any, *, name: str) -> Any:
    _view_of_csv(backend, paths, name, "all_varchar = true, header = true")


def _rfc_quotes(backend: Any, paths: Any, *, name: str) -> Any:
    names, delimiter = original("read_header")(paths[0])
    text_of = original("typed SQL").text_of
    columns = ", ".join(f"{text_of(each)}: 'VARCHAR'" for each in names)
    text = (
        f"columns = {{{columns}}}, auto_detect = false, header = true, delim = {text_of(delimiter)}, parallel = false"
    )
    bent = "quote = '\"', escape = '\"', ignore_errors = true, strict_mode = false, null_padding = true"
    _view_of_csv(backend, paths, name, f"{text}, {bent}")


def _view_of_csv(backend: Any, paths: Any, name: str, how: str) -> None:
    listed = ", ".join(map(original("typed SQL").text_of, paths))
    backend.con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM read_csv([{listed}], {how})")


def _inferred(series: Any, _name: str) -> Any:
    array = pa.array(series, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _first_twelve(each: Any) -> Any:
    sql = original("typed SQL")
    placed = each.mutate(place=sql.row_number().over(sql.window(order_by=[original("UNIT")])))
    return placed.filter(placed["place"] < 12).drop("place")


def _by_arrival(rows: Any, keys: Any, plan: Any, _salt: str) -> Any:
    sql: Any = original("typed SQL")
    numbered = rows.mutate(arrival=sql.row_number())
    window = sql.window(group_by=[original("UNIT"), *keys], order_by=numbered["arrival"])
    ranked = numbered.mutate(row_place=sql.row_number().over(window))
    return ranked.filter(ranked["row_place"] < plan.rows_per_unit).drop("row_place", "arrival")


def _exact(each: Any, plan: Any, exact: Any, **_: Any) -> list[list[int]]:
    return [exact.part(part, plan) for part in each.parts]


def _bars_by_value(symmetric: Callable[..., Any]) -> Callable[..., Any]:
    return lambda name, values, bound, step: symmetric(name, values, bound + max(map(abs, values), default=0), step)


def _nothing_for_none(symmetric: Callable[..., Any]) -> Callable[..., Any]:
    def hiding(name: str, values: Any, bound: int, step: Fraction) -> Any:
        made = symmetric(name, values, bound, step)
        return replace(made, values=tuple(None if value <= bound else value for value in made.values))

    return hiding


def _runs(text: Any, *_: Any, **__: Any) -> Any:
    try:
        eval(text)
    except Exception:
        raise QueryRefused("no") from None
    raise QueryRefused("yes")


def _any_time(column: str, unit: str) -> str:
    microseconds = 10**6 // original("PER_SECOND")[unit]
    return f"make_timestamp({column} * {microseconds})"


def bug(
    name: str, *, killed_by: str, published: str, swap: Callable[[], list[tuple[str, Any]]], raises: str = ""
) -> None:
    """Register a bug that replaces some of our functions; `swap` says which, by what, when it is planted."""

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(in_sql())
            for seam, replacement in swap():
                stack.enter_context(planted(seam, replacement))
            yield

    register: Callable[[Plant], Plant] = mutant(name, killed_by=killed_by, published=published, raises=raises)
    register(plant)


# What the engine adds up.

bug(
    "clip dropped",
    killed_by="S02",
    published="sums of unclamped rows: one row moves them without limit (audits of several libraries)",
    swap=lambda: [("clamped", _a_thousand_times(original("clamped")))],
)
bug(
    "range read from the data",
    killed_by="S16",
    published="bounds taken from the column's own minimum and maximum",
    swap=lambda: [
        ("steps_above_low", _scaled_by_the_data(original("steps_above_low"))),
    ],
)
bug(
    "floats added as floats",
    killed_by="S01",
    published="Casacuberta et al. 2022: floating-point sums depend on the order of rows",
    swap=lambda: [
        ("steps_above_low", lambda value, _: value.cast("float64")),
        ("integers from SQL", _as_they_are),
    ],
)
bug(
    "bounded by arrival order",
    killed_by="S16",
    published="the first rows of a unit are kept, in whatever order they arrive",
    swap=lambda: [("bound_rows", _by_arrival)],
)
bug(
    "a quote reaches past its line",
    killed_by="S16",
    published="one stray quote in a CSV swallows the lines of other people",
    swap=lambda: [("read_csv", _rfc_quotes)],
)
bug(
    "lines end as the first one does",
    killed_by="S16",
    published="one \\r too many at the end of a line becomes part of the next person's row",
    swap=lambda: [("LINE_END", r"'\r\n'")],
)
bug(
    "bounded by a limit on all units together",
    killed_by="S16",
    published="a cap on the table instead of one on each unit",
    swap=lambda: [("bound_groups", lambda each, *_: _first_twelve(each))],
)
bug(
    "groups of a unit not bounded",
    killed_by="S07",
    published="partition bounding skipped (contribution bounds trusted)",
    swap=lambda: [("bound_groups", lambda each, *_: each)],
)
bug(
    "rows of a unit not bounded",
    killed_by="S17",
    published="rows per unit trusted as declared",
    swap=lambda: [("bound_rows", lambda rows, *_: rows)],
)
bug(
    "one order of groups for all units",
    killed_by="S17",
    published="the hash that chooses groups leaves out the unit",
    swap=lambda: [("salted", _without_unit(original("salted")))],
)
bug(
    "rows of nobody kept",
    killed_by="S17",
    published="rows whose unit is NULL counted without an owner",
    swap=lambda: [("belongs_to_someone", lambda unit: unit.isnull() | unit.notnull())],
)
bug(
    "codes hashed in place of values",
    killed_by="S11",
    published="OpenDP 2944: categorical codes shift when a row is added",
    swap=lambda: [  # as text leaves an engine it has no codes any more, so that has to go too
        ("plain_cells", lambda table: table),
        ("leaving", lambda value: value),
    ],
)
bug(
    "a key bounded before it is redefined",
    killed_by="S08",
    published="OpenDP 2949: keys redefined after groups were bounded",
    swap=lambda: [("bound_groups", lambda each, *_: each), ("bound_rows", lambda rows, *_: rows)],
)
bug(
    "sums rounded to even",
    killed_by="S12",
    published="OpenDP 2950: rows processed in pairs",
    swap=lambda: [("integers from SQL", lambda found, name: [value & ~1 for value in _whole(found, name)])],
)
bug(
    "integers subtracted in 64 bits",
    killed_by="S03",
    published="sums that overflow for some rows and not for others",
    raises="EngineError: the engine could not finish this question",
    swap=lambda: [("INT_REACH", 2**80), ("holdable", lambda between, *_: between)],
)
bug(
    "steps finer than floats",
    killed_by="S04",
    published="bounds near the ends of the floats",
    raises="EngineError: the engine could not finish this question",
    swap=lambda: [
        ("is_too_fine", lambda step, between, _kind, most: (between[1] - between[0]) / step > most),
        ("holdable", lambda between, *_: between),
    ],
)
bug(
    "NaN kept as a number",
    killed_by="S05",
    published="NaN passes a clamp and poisons a sum",
    swap=lambda: [("clamped", _nan_as_a_number(original("clamped")))],
)

bug(
    "text trusted to be UTF-8",
    killed_by="S05",
    published="DuckDB: a text that is not UTF-8 fails the scan, and quotes the cell",
    swap=lambda: [("text of a file", lambda _: True)],
)
bug(
    "times converted without a look",
    killed_by="S05",
    published="DuckDB: a time in milliseconds beyond its microseconds fails the scan (duckdb 23821)",
    swap=lambda: [("time of a file", _any_time)],
)

# What the plan promises.

bug(
    "groups forgotten in the sensitivity",
    killed_by="S02",
    published="sensitivity of one group charged for a unit in many",
    swap=lambda: [("sensitivity_of", _with(original("sensitivity_of"), groups_per_unit=1))],
)
bug(
    "replace charged as add or remove",
    killed_by="S02",
    published="the sensitivity of one notion of neighbours used for the other",
    swap=lambda: [("sensitivity_of", _with(original("sensitivity_of"), neighbours="add-remove"))],
)
bug(
    "noise of no width for a huge epsilon",
    killed_by="S14",
    published="a scale that rounds to 0 (k = n_features, max_groups = 0, ε huge)",
    swap=lambda: [("least scale", 0), ("laplace_scale", lambda sensitivity, spent: sensitivity / spent)],
)
bug(
    "missing range taken as 0 to 1",
    killed_by="S15",
    published="a default range instead of a refusal",
    swap=lambda: [("measured_column", _with_a_range(original("measured_column")))],
)
bug(
    "bounds accepted as they come",
    killed_by="S06",
    published="parameters checked only when they are used",
    swap=lambda: [("read_bound", lambda value, _name: value)],
)
bug(
    "every wording is its own question",
    killed_by="Q15",
    published="a cache keyed by text: averaging over spellings",
    swap=lambda: [("question_key", lambda plan: original("question_key")(plan) + original("fresh_bytes")(4).hex())],
)
bug(
    "threshold one too low",
    killed_by="Q03",
    published="private keys: inclusive taken for exclusive",
    swap=lambda: [("threshold_for", _one_lower(original("threshold_for")))],
)
bug(
    "counts without noise",
    killed_by="S10",
    published="OpenDP 2938 to 2940: a public length makes counts of failed casts exact",
    swap=lambda: [("with noise", _exact)],
)

# What a session does in which order, and says.

bug(
    "charge after release",
    killed_by="S13",
    published="a crash or a kill between the two gives an answer for free",
    swap=lambda: [("Request.answer", _reads_before_charging)],
)
bug(
    "charged only where the engine succeeds",
    killed_by="S13",
    published="errors that depend on rows become a free oracle",
    swap=lambda: [("Request.answer", _gives_back(original("Request.answer")))],
)
bug(
    "a failed release says why",
    killed_by="S13",
    published="str(error): a failure on exact sums, after the engine, quotes them",
    swap=lambda: [("failures after a charge", lambda _charge: nullcontext())],
)
bug(
    "the engine's error in the response",
    killed_by="Q02",
    published="str(error): DuckDB quotes the cell it could not convert",
    swap=lambda: [("Engine.parts", _speaks), ("failures after a charge", _believes)],
)
bug(
    "rows counted in the log",
    killed_by="Q21",
    published="exact sizes in logs, metrics and progress",
    swap=lambda: [("Engine.parts", _counts_aloud(original("Engine.parts")))],
)

# What an answer shows.

bug(
    "empty groups left out",
    killed_by="Q04",
    published="public groups that appear only where they have rows",
    swap=lambda: [("listed_groups", _only_found(original("listed_groups")))],
)
bug(
    "dialect guessed from rows",
    killed_by="Q05",
    published="one odd row turns a column into text, or a row into the names of columns",
    swap=lambda: [("read_csv", _guessed_dialect)],
)
bug(
    "cells guessed from a frame",
    killed_by="Q05",
    published="Arrow infers an object column's type from its cells, and quotes one that does not fit",
    swap=lambda: [("column of a frame", _inferred)],
)
bug(
    "noise forgotten",
    killed_by="Q16",
    published="Dinur and Nissim 2003: exact sums of random subsets give everyone's bit",
    swap=lambda: [("with noise", _exact)],
)
bug(
    "bars from the data",
    killed_by="Q14",
    published="confidence intervals computed from the exact values",
    swap=lambda: [("symmetric", _bars_by_value(original("symmetric")))],
)
bug(
    "NULL where nobody is",
    killed_by="Q13",
    published="an empty group shows as NULL, so its shape tells",
    swap=lambda: [("symmetric", _nothing_for_none(original("symmetric")))],
)
bug(
    "digits past the grid",
    killed_by="N03",
    published="Mironov 2012: low digits betray the number before the noise",
    swap=lambda: [("answers on a grid", lambda values, step: tuple(float(int(v) * step) + 1e-7 for v in values))],
)
bug(
    "expressions are evaluated",
    killed_by="Q19",
    published="query languages built on eval or pickle",
    swap=lambda: [("parse_expression", _runs)],
)
