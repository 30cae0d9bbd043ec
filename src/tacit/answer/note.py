"""A note for the public about a published answer, on one page: what is protected, how large the noise is, and how to
read the numbers.

Everything in it was released. Each sentence has its two languages beside each other, so that a change of one is seen at
the other.
"""

from collections.abc import Iterator, Sequence
from math import exp
from statistics import median
from typing import TYPE_CHECKING

from tacit.answer.text import TOTAL, key_labels
from tacit.answer.totals import ADDED_UP, HELD
from tacit.errors import InvalidParameter, QueryRefused, printable
from tacit.numbers import brief, positive
from tacit.privacy import large_words

if TYPE_CHECKING:
    from tacit.answer.answer import Answer

LANGUAGES = ("en", "de")
# Above this, a factor of odds says nothing to a reader.
ODDS_MOST = 1000


def note_text(answer: "Answer", language: str, title: str | None) -> str:
    if language not in LANGUAGES:
        raise InvalidParameter(f"there is no note in '{language}'\nhint: language='en' or language='de'")
    if answer.facts.loss["epsilon"] == 0:
        raise QueryRefused("these are public facts, without noise to write a note about\nhint: ask for a number")
    if title is not None and not isinstance(title, str):
        raise InvalidParameter("the title of a note must be text\nhint: title='Visits by ward'")
    place = LANGUAGES.index(language)
    head = ("How the numbers protect people", "Wie die Zahlen Menschen schützen")
    lines = [f"# {printable(title)}: {head[place]}" if title else f"# {head[place]}"]
    for heading, sentences in _parts(answer):
        marks = [printable(each[place]) for each in sentences]
        lines += ["", f"## {heading[place]}", "", *marks]
    return "\n".join(lines) + "\n"


Both = tuple[str, str]


def _parts(answer: "Answer") -> Iterator[tuple[Both, Sequence[Both]]]:
    yield ("What is protected, and from whom", "Was geschützt ist und vor wem"), [*_promise(answer)]
    yield ("How large the noise is", "Wie groß das Rauschen ist"), [*_noise(answer)]
    yield ("Totals", "Gesamtzahlen"), [_totals(answer)]
    yield ("What a reader must not do", "Was Leserinnen und Leser nicht tun dürfen"), _WARNINGS
    yield ("Certificate", "Zertifikat"), [_certificate(answer)]


def _promise(answer: "Answer") -> Iterator[Both]:
    facts, odds = answer.facts, _odds(answer)
    unit = facts.unit.partition(";")[0]
    whose, _, block = unit.removeprefix("all rows of one ").partition(" in one ")
    of_block = (f" in one {block}", f" in einem Block ({block})") if block else ("", "")
    replaced = ("with other data in the place of these", "mit anderen Daten an deren Stelle")
    without = replaced if facts.neighbours.startswith("replace") else ("without these data", "ohne diese Daten")
    if unit.startswith("each row"):
        yield (
            f"Each single record of the data is protected{of_block[0]}.",
            f"Geschützt ist jeder einzelne Datensatz{of_block[1]}.",
        )
    else:
        yield (
            f"Everything that the data holds about one {whose}{of_block[0]} is protected.",
            f"Geschützt ist alles, was die Daten über eine einzelne Einheit ({whose}) enthalten{of_block[1]}.",
        )
    yield (
        "Random noise was added to every number before publication. It is drawn so that the same table would have come "
        f"out with nearly the same probability {without[0]}{odds[0]}.",
        "Jede Zahl wurde vor der Veröffentlichung zufällig verrauscht. Das Rauschen ist so gewählt, dass dieselbe "
        f"Tabelle {without[1]} fast ebenso wahrscheinlich gewesen wäre{odds[1]}.",
    )
    yield (
        "Other releases from the same data add to this, also those of other years or months: their losses add up.",
        "Weitere Veröffentlichungen aus denselben Daten kommen hinzu, auch die anderer Jahre oder Monate: Ihre "
        "Verluste addieren sich.",
    )
    yield (
        "This protects from everyone who reads the table, whatever else they know and however much they compute. It "
        "does "
        "not protect from the office that holds the data, and does not hide facts about large groups: those are what "
        "the table is for.",
        "Das schützt vor allen, die die Tabelle lesen, was immer sie sonst wissen und wie viel sie auch rechnen. Es "
        "schützt nicht vor der Stelle, die die Daten hat, und verbirgt keine Tatsachen über große Gruppen: Für sie ist "
        "die Tabelle da.",
    )


def _odds(answer: "Answer") -> Both:
    """Return how much more likely an outcome may be, in plain numbers; for a loss without ε, the loss in its words."""
    epsilon, delta = answer.facts.loss["epsilon"], answer.facts.loss["delta"]
    if epsilon is None:
        return f" ({answer.facts.loss['text']})", f" ({answer.facts.loss['text']})"
    if large_words(positive(epsilon, name="epsilon")) is not None or exp(epsilon) > ODDS_MOST:
        return f" (ε = {brief(epsilon)}, which protects little)", f" (ε = {brief(epsilon)}, ein schwacher Schutz)"
    factor, but = f"{exp(epsilon):.3g}", brief(delta) if delta else ""
    en = f": at most {factor} times as likely or unlikely (ε = {brief(epsilon)})"
    de = f": höchstens {_german(factor)}-mal so wahrscheinlich oder unwahrscheinlich (ε = {_german(brief(epsilon))})"
    return (
        f"{en}, except with probability {but}" if but else en,
        f"{de}, außer mit Wahrscheinlichkeit {_german(but)}" if but else de,
    )


def _noise(answer: "Answer") -> Iterator[Both]:
    percent = f"{float(answer.facts.confidence) * 100:g}"
    is_total = _totals_among(answer)
    for name in answer.aggregates:
        for whole, of in ((False, ("numbers", "Zahlen")), (True, ("totals", "Gesamtzahlen"))):
            found = _middle_width(answer, name, [total is whole for total in is_total])
            if found:
                yield (
                    f"- {name}: half of all {of[0]} have an interval of ± {found} or less.",
                    f"- {name}: Die Hälfte aller {of[1]} hat ein Intervall von ± {_german(found)} oder weniger.",
                )
    hidden = sum(row[name] is None for row in answer.rows for name in answer.aggregates)
    if hidden:
        yield (
            f"- {hidden:,} numbers are not shown, marked [x]: a group has too few people, or too few to be sure.",
            f"- {_german(f'{hidden:,}')} Zahlen fehlen, mit [x] gekennzeichnet: zu wenige Menschen.",
        )
    yield "", ""
    yield (
        f"An interval holds the data's own number with {percent} % probability. It covers the noise, not mistakes in "
        "the data, and not that a survey asked only some people. The noise is about as large for a small group as for "
        "a large one, so a small number is less certain for its size.",
        f"Ein Intervall enthält mit {_german(percent)} % Wahrscheinlichkeit die Zahl, die die Daten ohne Rauschen "
        "ergeben. Es berücksichtigt das Rauschen, nicht Fehler in den Daten, und nicht, dass eine Stichprobe nur "
        "einige befragt. Das Rauschen ist bei kleinen Gruppen etwa so groß wie bei großen: Kleine Zahlen sind im "
        "Verhältnis unsicherer.",
    )


def _middle_width(answer: "Answer", name: str, wanted: Sequence[bool]) -> str | None:
    ends = [
        (row[f"{name}_low"], row[f"{name}_high"])
        for row, is_wanted in zip(answer.rows, wanted, strict=True)
        if is_wanted
    ]
    halves = [(high - low) / 2 for low, high in ends if low is not None and high is not None]
    return f"{float(f'{float(median(halves)):.2g}'):,.10g}" if halves else None


def _totals(answer: "Answer") -> Both:
    exact = _PUBLIC_TOTALS if HELD in answer.facts.notes else _NO_EXACT_TOTAL
    if ADDED_UP in answer.facts.notes:
        return (
            "Counts and sums add up to their totals exactly: after noise was added, the numbers of all levels were "
            f"fitted to each other. {exact[0]}",
            "Anzahlen und Summen ergeben genau ihre Gesamtzahlen: Nach dem Verrauschen wurden die Zahlen aller Ebenen "
            f"aneinander angepasst. {exact[1]}",
        )
    if any(_totals_among(answer)):
        return (
            f"Totals have noise of their own, and the parts of a total do not add up to it. {_NO_EXACT_TOTAL[0]}",
            "Gesamtzahlen haben ein eigenes Rauschen, und ihre Teile ergeben nicht genau die Gesamtzahl. "
            f"{_NO_EXACT_TOTAL[1]}",
        )
    return (
        "The table has no totals. If you add up cells, their noise adds up too: of n cells it is about √n times as "
        "large.",
        "Die Tabelle hat keine Gesamtzahlen. Wer Zellen addiert, addiert auch ihr Rauschen: Bei n Zellen ist es etwa "
        "√n-mal so groß.",
    )


_NO_EXACT_TOTAL = ("No total is the data's exact number.", "Auch keine Gesamtzahl ist die genaue Zahl aus den Daten.")
_PUBLIC_TOTALS = (
    "Totals with an interval of ± 0 were public before, and are exact.",
    "Gesamtzahlen mit einem Intervall von ± 0 waren schon vorher öffentlich und haben kein Rauschen.",
)


_WARNINGS: Sequence[Both] = (
    (
        "- Do not read meaning into a difference that is smaller than its intervals.",
        "- Unterschiede, die kleiner sind als ihre Intervalle, nicht deuten.",
    ),
    (
        "- Do not take a small number, or 0, as a fact about single people: a group of 0 may have people, and a group "
        "of 3 none.",
        "- Aus einer kleinen Zahl oder 0 nicht auf einzelne Menschen schließen: Eine Gruppe mit 0 kann Menschen "
        "haben, und eine mit 3 keine.",
    ),
    (
        "- Do not subtract tables from each other to find people: the result is noise.",
        "- Tabellen nicht voneinander abziehen, um Menschen zu finden: Das Ergebnis ist Rauschen.",
    ),
    (
        "- Do not publish the numbers without their intervals.",
        "- Die Zahlen nicht ohne ihre Intervalle weitergeben.",
    ),
)


def _certificate(answer: "Answer") -> Both:
    receipt = answer.facts.receipt
    if "entry" not in receipt:
        return "This answer has no certificate.", "Diese Antwort hat kein Zertifikat."
    entry, ledger, day = receipt["entry"], receipt["ledger"], str(receipt.get("time", ""))[:10]
    german_day = ".".join(reversed(day.split("-")))
    return (
        f"Entry {entry} of ledger {ledger}, {day}. The office can give you a certificate of this entry; anyone can "
        "check it with `tacit certificate verify`.",
        f"Eintrag {entry} im Register {ledger}, {german_day}. Die Stelle kann dazu ein Zertifikat ausgeben; alle "
        "können es mit `tacit certificate verify` prüfen.",
    )


def _totals_among(answer: "Answer") -> list[bool]:
    """Return which rows are totals of any key."""
    keys = [key_labels(answer, name) for name in answer.columns if name not in answer.aggregates]
    return [TOTAL in labels for labels in zip(*keys, strict=True)] if keys else [False] * len(answer.rows)


def _german(number: str) -> str:
    return number.translate(str.maketrans(",.", ".,"))
