"""Published bugs of question languages and their engines, planted: each must be noticed by the case it names."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from tacit_gauntlet.frame.mutant import mutant
from tacit_gauntlet.targets import original, planted


@mutant("nan-is-a-number", killed_by="S09", published="OpenDP 2940: NaN cells that the calculus believed away")
@contextmanager
def nan_is_a_number() -> Iterator[None]:
    """NaN and −0.0 pass through as the engine has them."""
    with planted("Cell.settled", lambda self: self):
        yield


@mutant(
    "narrow-products",
    killed_by="S09",
    published="DuckDB: products of narrow decimals overflow 18 digits",
    raises="OutOfRangeException: Out of Range Error: Overflow in multiplication",
)
@contextmanager
def narrow_products() -> Iterator[None]:
    """Decimals are multiplied as narrow as they come."""
    with planted("wide product", 1):
        yield


@mutant("engine-lower", killed_by="S09", published="engines fold the case of É, ß and İ each in their own way")
@contextmanager
def engine_lower() -> Iterator[None]:
    """LOWER is the engine's own."""
    with _translated({"lower": lambda made: made.cells[0].value.lower()}):
        yield


@mutant("round-halves-up", killed_by="S09", published="DuckDB, Postgres and Spark round halves each in their own way")
@contextmanager
def round_halves_up() -> Iterator[None]:
    """ROUND takes halves up, not away from 0."""
    with planted(
        "whole number",
        lambda value: (value + original("float constant")(original("just below a half"))).floor(),
    ):
        yield


@mutant("half-added", killed_by="S09", published="x + 1/2 is inexact just below 1/2 and from 2^52 on")
@contextmanager
def half_added() -> Iterator[None]:
    """ROUND adds a whole half before it takes the floor."""
    with planted("just below a half", "0.5"):
        yield


@mutant(
    "zero to a negative power",
    killed_by="S09",
    published="DuckDB raises on it, and on 1 / 0, by a setting of the connection",
    raises="OutOfRangeException: Out of Range Error: zero raised to a negative power",
)
@contextmanager
def zero_to_a_negative_power() -> Iterator[None]:
    """The engine is asked for it as for any other power."""
    raw = original("power of floats")
    with _translated({"power": lambda call: raw(*(each.cast("float64") for each in call.values(call.kind)))}):
        yield


@mutant("floor-that-raises", killed_by="Q01", published="Ibis casts FLOOR to an int, which raises beyond 64 bits")
@contextmanager
def floor_that_raises() -> Iterator[None]:
    """FLOOR is cast to an int as Ibis does it."""
    with _translated({"floor": lambda made: _raising_cast(made.cells[0].value.floor())}):
        yield


@mutant(
    "text-by-bytes",
    killed_by="S09",
    published="engines count bytes, code points or graphemes",
    raises="ConversionException: Conversion Error: Invalid byte",
)
@contextmanager
def text_by_bytes() -> Iterator[None]:
    """SUBSTRING cuts between bytes, each beyond ASCII written out as some engines do."""

    def cut(made: Any) -> Any:
        length = made.number(2) if len(made.cells) == 3 else 1_000_000
        return made.cells[0].value.cast("binary").cast("string").substr(made.number(1) - 1, length)

    with _translated({"substring": cut}):
        yield


@mutant(
    "date-out-of-range",
    killed_by="S09",
    published="a date moved out of the calendar raises, or is in year 10000",
    raises="OverflowError: date value out of range",
)
@contextmanager
def date_out_of_range() -> Iterator[None]:
    """Times are moved wherever they go."""
    with planted("time limit", lambda number, _: original("last time") if number >= 0 else original("first time")):
        yield


@mutant("end-of-month-overflows", killed_by="S09", published="January 31st and a month: March 3rd in some libraries")
@contextmanager
def end_of_month_overflows() -> Iterator[None]:
    """A month is 30 days."""
    plain = original("TRANSLATIONS")["add_interval"].run

    def moved(made: Any) -> Any:
        if made.constant(2) != "month":
            return plain(made)
        days = original("Call")(
            "add_interval",
            (made.call.arguments[0], original("value_of")(30 * made.number(1)), original("value_of")("day")),
        )
        return plain(replace(made, call=days))

    with _translated({"add_interval": moved}):
        yield


@mutant("replace-bomb", killed_by="Q18", published="text that doubles with each call, when one row is there")
@contextmanager
def replace_bomb() -> Iterator[None]:
    """Text may get as long as it likes."""
    with planted("TEXT_TIMES_MAX", 10**30):
        yield


@mutant(
    "unguarded-remainder", killed_by="Q01", published="DuckDB 2.0: x % 0 raises; OpenDP 2939: it became NULL unseen"
)
@contextmanager
def unguarded_remainder() -> Iterator[None]:
    """% is the engine's own."""
    with _translated({"%": lambda made: made.cells[0].value % made.cells[1].value}):
        yield


@mutant("cast-that-raises", killed_by="Q01", published="DuckDB: a failed CAST raises and quotes the cell")
@contextmanager
def cast_that_raises() -> Iterator[None]:
    """CAST to INT is the engine's own."""
    with _translated({"cast_int": lambda made: _raising_cast(made.cells[0].value)}):
        yield


def _raising_cast(value: Any) -> Any:
    """Return a cast to an int as DuckDB has it, where ours gives NULL."""
    sql = original("typed SQL")
    return sql.Typed(("CAST(", value, " AS BIGINT)"), sql.Type("int64"))


@mutant("overflow-that-raises", killed_by="Q01", published="DuckDB: an INT product that overflows raises and quotes it")
@contextmanager
def overflow_that_raises() -> Iterator[None]:
    """Ints are multiplied as ints."""
    with _translated({"*": lambda made: made.cells[0].value * made.cells[1].value}):
        yield


@mutant("function-let-through", killed_by="Q06", published="SmartNoise and Qrlew pass functions they never reviewed")
@contextmanager
def function_let_through() -> Iterator[None]:
    """A function outside the catalogue is read as if it were in it."""
    cube_root = original("sqlglot's expressions").Cbrt
    with planted("functions by node", {**original("functions by node"), cube_root: "abs"}):
        yield


@mutant("function-untranslated", killed_by="Q06", published="a catalogue that says more than the engine does")
@contextmanager
def function_untranslated() -> Iterator[None]:
    """One function of the catalogue has no translation."""
    translations = original("TRANSLATIONS")
    taken = translations.pop("sqrt")
    try:
        yield
    finally:
        translations["sqrt"] = taken


@mutant("unit-as-key", killed_by="Q07", published="SmartNoise: grouping by the unit shows who is there")
@contextmanager
def unit_as_key() -> Iterator[None]:
    """The unit is a column like any other."""

    def row(each: Any, _declaration: Any, kinds: Any) -> Any:
        return original("canonical")(each, kinds)

    with ExitStack() as stack:
        stack.enter_context(planted("Rows.resolve", lambda self, node: self.named(node)))
        stack.enter_context(planted("check of a row expression", row))
        yield


@mutant("parts-ignored", killed_by="Q07", published="readers that drop what they do not know: OVER, FILTER, ROLLUP")
@contextmanager
def parts_ignored() -> Iterator[None]:
    """Parts of a node that are not known are left out in silence."""
    with planted("only known parts", lambda *_: None):
        yield


@mutant("any-table", killed_by="Q08", published="DuckDB: query_table() and replacement scans read any table")
@contextmanager
def any_table() -> Iterator[None]:
    """Whatever follows FROM is taken for the table."""
    with planted("rows of FROM", lambda _select, names, _aggregated: next(iter(names.values()))):
        yield


@mutant("file-as-table", killed_by="Q09", published="DuckDB: a file's name after FROM is read as a table")
@contextmanager
def file_as_table() -> Iterator[None]:
    """Whatever follows FROM is taken for the table."""
    with any_table():
        yield


@mutant("quotes-not-doubled", killed_by="Q10", published="the oldest one: a quote inside a text ends it")
@contextmanager
def quotes_not_doubled() -> Iterator[None]:
    """Text is put in quotes as it is."""
    plain = original("show_value")
    with planted("show_value", lambda value: f"'{value}'" if isinstance(value, str) else plain(value)):
        yield


@mutant("reader-crashes", killed_by="Q11", published="parsers answer odd text with errors of their own")
@contextmanager
def reader_crashes() -> Iterator[None]:
    """What the SQL reader raises goes out as it is."""
    with planted("unreadable SQL", lambda error: error):
        yield


@mutant("explain-skipped", killed_by="Q12", published="engines that answer EXPLAIN with row counts and statistics")
@contextmanager
def explain_skipped() -> Iterator[None]:
    """A word before SELECT is skipped."""
    parsed = original("parsed SQL")

    def skip(text: str, *into: Any) -> Any:
        return parsed(text[max(text.find("SELECT"), 0) :], *into)

    with ExitStack() as stack:
        stack.enter_context(planted("refuse_other_statements", lambda *_: None))
        stack.enter_context(planted("parsed SQL", skip))
        yield


@mutant("no-static-limits", killed_by="Q18", published="questions that cost minutes only when one row is there")
@contextmanager
def no_static_limits() -> Iterator[None]:
    """An expression of any size is read."""
    with planted("limit_expression", lambda _: None):
        yield


@contextmanager
def _translated(changed: Mapping[str, Any]) -> Iterator[None]:
    translations = original("TRANSLATIONS")
    others = {name: replace(translations[name], run=run) for name, run in changed.items()}
    with planted("TRANSLATIONS", {**translations, **others}):
        yield


@mutant("a second table left out", killed_by="Q20", published="clauses that are parsed and not looked at")
@contextmanager
def joins_left_out() -> Iterator[None]:
    """Read a join and answer without it."""
    query = original("query of a statement")

    def careless(self: Any) -> Any:
        self.select.args.pop("joins", None)
        return query(self)

    with planted("query of a statement", careless):
        yield


@mutant("each part limited alone", killed_by="Q23", published="limits that multiply: text times pattern times terms")
@contextmanager
def each_part_alone() -> Iterator[None]:
    """What all parts do together for a row is not looked at."""
    with planted("limit_work", lambda *_: None):
        yield


@mutant("groups and aggregates limited apart", killed_by="Q24", published="a million groups times a hundred quantiles")
@contextmanager
def cells_unlimited() -> Iterator[None]:
    """How many numbers an answer has in all is not looked at."""
    with planted("limit_cells", lambda *_: None):
        yield
