"""Names as SQL finds them: as written, or whatever their case where they are not quoted and only one fits."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqlglot import exp

from tacit.query.nodes import Column, Expression
from tacit.query.reading import Resolve, refusal
from tacit.query.suggest import did_you_mean
from tacit.tables.schema import Declaration

UNIT_REASON = "is the unit, and a question about it would single someone out"
UNIT_HINT = "count units with COUNT(DISTINCT {unit}), in Python count_units(); group and filter by other columns"


def match(identifier: exp.Expr, names: Iterable[str]) -> str | None:
    """Return the name an identifier stands for, or None."""
    written = str(identifier.this)
    known = list(names)
    if written in known:
        return written
    if identifier.args.get("quoted"):
        return None
    folded = [name for name in known if name.lower() == written.lower()]
    return folded[0] if len(folded) == 1 else None


def table_column(
    node: exp.Column, declaration: Declaration, table_names: frozenset[str], derived: Iterable[str] = ()
) -> str:
    """Return the declared column a node names, the unit included."""
    qualifier = node.args.get("table")
    if qualifier is not None and match(qualifier, table_names) is None:
        raise refusal(node, f"there is no table '{qualifier.this}' here", f"the table is '{declaration.name}'")
    found = match(node.this, declaration.columns)
    if found is None:
        written = str(node.this.this)
        hint = did_you_mean(written, [*declaration.columns, *derived]).removeprefix("\nhint: ")
        if not hint.startswith("did you mean"):  # "A" and A are names in SQL, and meant as text by many
            text = "text goes in single quotes"
            hint = f"{text}; {hint}" if node.this.args.get("quoted") else f"{hint}; {text}"
        raise refusal(node, f"there is no column '{written}' in '{declaration.name}'", hint)
    return found


def column_resolver(
    declaration: Declaration, table_names: frozenset[str], derived: Mapping[str, Expression] = MappingProxyType({})
) -> Resolve:
    """Return how row expressions find columns: derived names, then declared ones, and never the unit."""

    def resolve(node: exp.Column) -> Expression:
        if node.args.get("table") is None and (name := match(node.this, derived)) is not None:
            return derived[name]
        name = table_column(node, declaration, table_names, derived)
        if name == declaration.unit:
            raise refusal(node, f"'{name}' {UNIT_REASON}", UNIT_HINT.format(unit=name))
        return Column(name)

    return resolve
