"""The pictures of the theory pages: the points of an experiment become a panel of lines.

Pictures lack a title and a note: the page has both, in letters that fit.
"""

from tacit.numbers import show
from tacit.pictures import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    PINK,
    RED,
    Axis,
    Look,
    Spec,
    decades,
    line_panel,
    mark_at,
    side_by_side,
)
from tacit_classroom.theory.experiments import (
    BUDGET,
    EXACT,
    SMALL_NOISE,
    SPREAD,
    Composed,
    Noises,
    Odds,
    Polled,
    Rebuilt,
    at_most,
    percent,
)
from tacit_classroom.theory.risks import Membered, Shamed
from tacit_classroom.theory.selections import DAYS, Picked, Watched, count_on

WIDTH, HEIGHT = 330, 240
SHARES = (0.0, 0.25, 0.5, 0.75, 1.0)


def draw_polls(found: Polled) -> Spec:
    """Draw the share of yeses that was reported and the debiased one, as people are added."""
    last = found.polls[-1].people
    x = Axis("people who have answered", log=True, values=decades(10, last), form=",", domain=(8, last * 1.3))
    y = Axis("share of yes", form="~%", values=SHARES, domain=(-0.1, 1.1))
    looks = {
        "reported": Look("of the reports", ORANGE, "triangle-up", (5, 3)),
        "estimate": Look("debiased, with its interval", BLUE, "circle"),
        "truth": Look("the truth" + f": {percent(found.share)}", INK, "square", (2, 2), size=1),
    }
    points = [("reported", float(poll.people), poll.reported / poll.people) for poll in found.polls]
    points += [("estimate", float(poll.people), poll.estimate) for poll in found.polls]
    ends = [{"x": poll.people, "y": poll.low, "y2": poll.high} for poll in found.polls]
    intervals: Spec = {
        "data": {"values": ends},
        "mark": {"type": "rule", "color": BLUE, "strokeWidth": 1.5, "opacity": 0.7},
        "encoding": {"x": x.encoding("x"), "y": y.encoding("y"), "y2": {"field": "y2"}},
    }
    points += [("truth", at, float(found.share)) for at in (8, last * 1.3)]
    return _picture(line_panel(points, looks, x=x, y=y, more=[intervals], width=WIDTH, height=HEIGHT))


def draw_noises(found: Noises) -> Spec:
    """Draw the error of both kinds of noise along the number of counts, and one release of each."""
    sizes = [each.counts for each in found.along]
    heights = [height for each in found.along for height in (each.laplace, each.gaussian)]
    x = Axis("counts that one person changes", log=True, values=decades(1, sizes[-1]), form=",")
    y = Axis("largest error (95 %)", log=True, values=decades(max(1, min(heights)), max(heights)), form=",")
    looks = {
        "laplace": Look("Laplace noise", ORANGE, "triangle-up", (5, 3)),
        "gaussian": Look("Gaussian noise", BLUE, "circle"),
        "drawn laplace": Look("a Laplace release now", RED, "cross", size=130, joined=False),
        "drawn gaussian": Look("a Gaussian release now", GREEN, "diamond", size=130, joined=False),
    }
    points = [("laplace", float(each.counts), float(each.laplace)) for each in found.along]
    points += [("gaussian", float(each.counts), float(each.gaussian)) for each in found.along]
    for name, largest in zip(("drawn laplace", "drawn gaussian"), found.drawn, strict=True):
        points += [(name, float(found.here.counts), float(largest))] if largest else []  # log 0 does not exist
    chosen = mark_at(found.here.counts, "", axis=x)
    return _picture(line_panel(points, looks, x=x, y=y, more=chosen, width=WIDTH, height=HEIGHT))


def draw_odds(found: Odds) -> Spec:
    """Draw what every belief can become at most."""
    x = Axis("belief before the answer", form="~%", values=SHARES, domain=(0, 1))
    y = Axis("belief after it, at most", form="~%", values=SHARES, domain=(0, 1.02))
    looks = {
        "most": Look(f"ε = {show(found.epsilon)}: " + "no attacker believes more", BLUE, "circle", size=1),
        "here": Look(f"{percent(found.before)} → {at_most(found.after)}", RED, "diamond", size=170, joined=False),
    }
    points = [("most", float(before), float(after)) for before, after in found.curve]
    points.append(("here", float(found.before), float(found.after)))
    nothing = [(0.0, 0.0, ""), (1.0, 1.0, "")]
    words: Spec = {
        "data": {"values": [{"x": 0.98, "y": 0.04, "words": "dashed: no information is learned"}]},
        "mark": {"type": "text", "align": "right", "fontSize": 12, "color": INK},
        "encoding": {"x": x.encoding("x"), "y": y.encoding("y"), "text": {"field": "words", "type": "nominal"}},
    }
    panel = line_panel(points, looks, x=x, y=y, curve=nothing, more=[words], width=WIDTH, height=HEIGHT)
    return _picture(panel)


def draw_totals(found: Composed) -> Spec:
    """Draw the total by four rules along the number of questions."""
    looks = {
        "basic": Look("basic: addition", RED, "circle", (5, 3)),
        "advanced": Look("advanced", ORANGE, "triangle-up", (2, 2)),
        "zCDP": Look("zCDP", PINK, "square", (7, 3)),
        "numerical": Look("numerical: the exact laws, added up", BLUE, "diamond", size=80),
    }
    points = [(name, float(asked), total) for name, asked, total in found.along if name in looks]
    # far above addition a rule only squeezes the others
    top = 1.35 * max(total for name, _asked, total in points if name == "basic")
    x = Axis("questions", form=",d", zero=True)
    y = Axis("total ε", zero=True, domain=(0, top))
    return _picture(line_panel(points, looks, x=x, y=y, width=WIDTH, height=HEIGHT))


def draw_rebuilt(found: Rebuilt) -> Spec:
    """Draw the share of secrets that comes back along the number of questions."""
    looks = {
        EXACT: Look("exact counts", RED, "circle", size=110),
        SMALL_NOISE: Look("fixed small noise" + f": ± {SPREAD}", PINK, "square", (2, 2)),
        BUDGET: Look("Tacit, " + "all questions together" + f": ε = {show(found.epsilon)}", BLUE, "diamond", size=80),
        "most": Look("the most that any attack on it can expect", GREEN, "square", (8, 3), size=1),
        "guess": Look("guessing", INK, "square", (2, 2), size=1),
    }
    x = Axis("questions asked", form=",d", zero=True)
    y = Axis("secrets recovered", form="~%", values=(0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0), domain=(0.35, 1.03))
    points = [(way, float(asked), share) for way, asked, share in found.along]
    for name, height in (("most", float(found.most_right)), ("guess", 0.5)):
        points += [(name, float(at), height) for at in (0, found.questions)]
    return _picture(line_panel(points, looks, x=x, y=y, width=WIDTH, height=HEIGHT))


def draw_picked(found: Picked) -> Spec:
    """Draw the share of right picks along ε, of both ways."""
    ends = [float(at) for _, at, _ in found.along]
    x = Axis("ε", log=True, values=decades(min(ends), max(ends)), form="~g")
    y = Axis("picks that are right", form="~%", values=SHARES, domain=(0, 1.04))
    looks = {
        "max": Look("noisy max: only the winner is released", BLUE, "circle"),
        "counts": Look("all counts with noise", ORANGE, "triangle-up", (5, 3)),
    }
    points = [(way, float(at), share) for way, at, share in found.along]
    chosen = mark_at(float(found.epsilon), "", axis=x)
    return _picture(line_panel(points, looks, x=x, y=y, more=chosen, width=WIDTH, height=HEIGHT))


def draw_watched(found: Watched) -> Spec:
    """Draw the count, the threshold, and the share of watches that have given the alarm."""
    x = Axis("day", form=",d", zero=True)
    y = Axis("watches with an alarm", form="~%", values=SHARES, domain=(0, 1.04))
    days = range(DAYS)
    rung = [(day, sum(at <= day for at in found.drawn) / len(found.drawn)) for day in days]
    looks = {
        "alarm": Look("have given the alarm", BLUE, "circle", size=12),
        "truth": Look("the count is above the threshold", INK, "square", (2, 2), size=1),
    }
    points = [("alarm", float(day + 1), share) for day, share in rung]
    points += [("truth", float(day + 1), float(count_on(day) >= found.threshold)) for day in days]
    return _picture(line_panel(points, looks, x=x, y=y, width=WIDTH, height=HEIGHT))


def draw_membered(found: Membered) -> Spec:
    """Draw the advantage of an attacker along the number of facts."""
    x = Axis("facts about each person", log=True, values=decades(1, max(few for _, few, _ in found.along)), form=",")
    y = Axis("advantage over a coin", form="~%", values=SHARES, domain=(-0.2, 1.04))
    looks = {
        "exact": Look("exact averages", RED, "circle", size=110),
        "budget": Look(f"Tacit, all facts together: ε = {show(found.epsilon)}", BLUE, "diamond", size=80),
        "most": Look("the most that any attack on it can expect", GREEN, "square", (8, 3), size=1),
    }
    points = [(way, float(few), share) for way, few, share in found.along]
    ends = [few for _, few, _ in found.along]
    points += [("most", float(at), float(found.most)) for at in (min(ends), max(ends))]
    return _picture(line_panel(points, looks, x=x, y=y, width=WIDTH, height=HEIGHT))


def draw_shamed(found: Shamed) -> Spec:
    """Draw the probability that somebody's row is published along δ."""
    x = Axis("δ", log=True, values=tuple(float(delta) for delta, _ in found.along), form="~g")
    y = Axis("somebody's row is published", form="~%", values=SHARES, domain=(0, 1.04))
    looks = {"risk": Look(f"of {found.people:,} people", RED, "circle", size=80)}
    points = [("risk", float(delta), risk) for delta, risk in found.along]
    chosen = mark_at(float(found.delta), "", axis=x)
    return _picture(line_panel(points, looks, x=x, y=y, more=chosen, width=WIDTH, height=HEIGHT))


def _picture(panel: Spec) -> Spec:
    """Return a panel in the look of every picture, without a title; points outside the axes are cut off."""
    for layer in panel["layer"]:
        if layer["mark"]["type"] != "text":
            layer["mark"] = layer["mark"] | {"clip": True}
    found = side_by_side([panel], title="", notes=())
    del found["title"]
    look, letters = found["config"], {"labelFontSize": 13, "titleFontSize": 13}  # read on a telephone too
    found["config"] = look | {"padding": 8, "axis": look["axis"] | letters, "legend": look["legend"] | letters}
    return found
