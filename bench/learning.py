"""Models: how well ours predict rows they have not seen, held to what is promised, beside DP-EBM in the same run.

DP-EBM has an environment of its own, made where it is missing. Without it, or without a table, its lines say why.
"""

from collections.abc import Iterator

from bench.measure import Absent, Figure, Ratio, Result
from bench.peers import environments
from bench.peers.learning.subject import (
    ACCURACY_LEAST,
    ADULT,
    AUC_LEAST,
    EPSILONS,
    MARGIN,
    OTHER_TABLES_LEAST,
    TIME_MOST,
    Scores,
    case_of,
    measured,
)
from bench.peers.learning.tables import TABLES
from bench.peers.subjects import asked

OURS, THEIRS = "tacit", "interpret-core"
CEILINGS = ("sklearn-trees", "sklearn-logistic")
ABOVE = "AUC above DP-EBM's"


def results() -> Iterator[Result]:
    """Yield every table's lines: scores, how far they are above DP-EBM's, what is not private, and times to train."""
    above = []
    for table in TABLES:
        models = (*CEILINGS, OURS, THEIRS)
        found = list(measured(asked, environments.HOME / "tables", models, [table]))
        if not any(each.means for each in found):
            yield Absent(table, found[0].failed)
            continue
        by_place = {(each.case, each.model): each for each in found}
        margins = []
        for place, epsilon in enumerate(EPSILONS):
            ours, theirs = (by_place[case_of(table, epsilon), model] for model in (OURS, THEIRS))
            yield from scores(table, place, ours)
            yield from (one := list(margin(table, ours, theirs)))
            margins += [each.value for each in one if isinstance(each, Figure)]
            yield from times(table, epsilon, ours, theirs)
        for model in CEILINGS:
            yield Figure(f"{table}: AUC of {model}, not private", by_place[table, model].means["auc"])
        if len(margins) == len(EPSILONS) and min(margins) >= MARGIN:
            above.append(table)
    others = len([table for table in above if table != ADULT])
    yield Figure(f"tables beside Adult with {ABOVE} by {MARGIN:g} at every epsilon", others, OTHER_TABLES_LEAST)


def scores(table: str, place: int, ours: Scores) -> Iterator[Result]:
    """Yield our scores at one epsilon, with what is promised on Adult."""
    if not ours.means:
        yield Absent(ours.case, ours.failed)
        return
    for quantity, least in (("auc", AUC_LEAST[place]), ("accuracy", ACCURACY_LEAST[place])):
        yield Figure(f"{ours.case}: {quantity}", ours.means[quantity], least if table == ADULT else 0.0)


def margin(table: str, ours: Scores, theirs: Scores) -> Iterator[Result]:
    """Yield how far our area is above DP-EBM's."""
    if not (ours.means and theirs.means):
        yield Absent(f"{ours.case}: {ABOVE}", ours.failed or theirs.failed)
        return
    least = MARGIN if table == ADULT else float("-inf")
    yield Figure(f"{ours.case}: {ABOVE}", ours.means["auc"] - theirs.means["auc"], least)


def times(table: str, epsilon: float, ours: Scores, theirs: Scores) -> Iterator[Result]:
    """Yield the time to train against DP-EBM's, by the clock and of the processors."""
    if ours.means and theirs.means:
        for quantity, word in (("seconds", "train"), ("processor", "train, of the processors")):
            limit = TIME_MOST if table == ADULT and quantity == "seconds" else None
            yield Ratio(f"{case_of(table, epsilon)}: {word}", ours.means[quantity], theirs.means[quantity], limit)
