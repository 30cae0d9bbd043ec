"""Which bounds on a unit a question lacks, and whether its units are scaled into caps or their rows dropped."""

from tacit.plan.groups import public_keys
from tacit.plan.outputs import FAMILIES
from tacit.query import AggregateKind, Query
from tacit.tables import Declaration, RowUnit

# Variances need the sums of squares beside those of a mean (`moment_vectors.py`).
MOMENTS_OF_ONE: frozenset[AggregateKind] = frozenset(("variance", "std"))
# Aggregates that are made of scaled vectors.
SCALED_KINDS: frozenset[AggregateKind] = MOMENTS_OF_ONE | frozenset(
    ("count", "count_units", "sum", "mean", "covariance", "correlation")
)
# The same where bounds are given by hand. Everything about a mean or a moment then comes from one joint release, which
# errs less than several vectors do (docs/decisions.md has the figures).
COUNTED_KINDS: frozenset[AggregateKind] = frozenset(("count", "count_units", "sum"))


def lacks_bound(query: Query, declaration: Declaration) -> bool:
    """Whether a question needs a bound on its units that is not given by hand."""
    return lacks_rows_bound(query, declaration) or lacks_groups(query, declaration)


def lacks_rows_bound(query: Query, declaration: Declaration) -> bool:
    """Whether rows of a unit are to be bounded, and no bound on them is given by hand."""
    if _has_no_bounds(query, declaration) or declaration.rows_per_unit is not None:
        return False
    return any(
        FAMILIES[output.aggregate.kind] not in ("units", "distinct") and output.aggregate.of != "people"
        for output in query.outputs
    )


def lacks_groups(query: Query, declaration: Declaration) -> bool:
    """Whether groups of a unit are to be bounded, and no bound on them is given by hand."""
    if _has_no_bounds(query, declaration) or not query.keys or declaration.groups_per_unit is not None:
        return False
    of_people = all(output.aggregate.of == "people" for output in query.outputs)
    return not of_people or public_keys(query, declaration) is None


def _has_no_bounds(query: Query, declaration: Declaration) -> bool:
    ranking = any(FAMILIES[output.aggregate.kind] == "ranking" for output in query.outputs)
    return ranking or isinstance(declaration.unit, RowUnit)


def is_scaled(query: Query, declaration: Declaration) -> bool:
    """Whether a question is answered by scaling units into caps, which are learned, or given by hand.

    If all bounds are given by hand it is not where a mean or a moment is asked for (see COUNTED_KINDS), or where groups
    are to be found: a noisy count of people, made beside the numbers, then shows them, and nothing is learned.
    """
    if isinstance(declaration.unit, RowUnit):
        return False
    is_given = not lacks_bound(query, declaration)
    kinds = COUNTED_KINDS if is_given else SCALED_KINDS
    if any(output.aggregate.kind not in kinds for output in query.outputs):
        return False
    return not is_given or public_keys(query, declaration) is not None


def widens(query: Query) -> bool:
    """Whether a cap that is too low makes the answer wrong, and not only that of fewer rows, as it does a mean."""
    return any(output.aggregate.kind in ("count", "count_units", "sum") for output in query.outputs)
