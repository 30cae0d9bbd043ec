"""Ceilings: facts about more rows limit the estimates for fewer.

A filter leaves rows out, a group is a part of a person's rows, and a value counts once for each row at most. So a
person has at most the rows, values or groups in a question that a profile of the whole table shows, if one was ever
learned. A profile of few people is read off much noise: its ceiling is then what keeps a cap from being set by it. Like
all that is learned, a ceiling decides how well an answer comes out, and never whether it is safe.
"""

from collections.abc import Iterator
from dataclasses import replace

from tacit.plan.bounds.facts import Fact, Facts
from tacit.plan.bounds.known import Grouping, Subject, reading_of
from tacit.plan.bounds.profiles import Reading, at_most, below, clipped
from tacit.plan.bounds.scaling import Profile
from tacit.plan.bounds.vectors import count_subject

# How the key of a fact begins that is a ceiling; and of one about all rows, which may be known of the table that the
# rows of a question are made from.
AT_MOST = "at most "
AT_MOST_OF_TABLE = "at most, of all rows, "
# Counts, which leaving out rows cannot raise; a sum of values on either side of its middle can be larger.
COUNTING = ("rows", "counted", "units")


def keys_of_ceilings(subject: Subject, facts: Facts) -> Iterator[str]:
    """Yield the keys of facts that would be ceilings of a subject, if they are known: of each, the next round."""
    for wider in wider_than(subject):
        yield _prefix(wider) + wider.key(len(_rounds(wider, facts)))


def under_ceilings(reading: Reading, subject: Subject, facts: Facts) -> tuple[Reading, tuple[Fact, ...]]:
    """Return a reading of a subject's totals, cut to the ceilings from facts about more rows; and those facts.

    A declared maximum of rows holds for every count, and a person is in no more groups than there are.
    """
    used: list[Fact] = []
    kind, most = subject.profiles[0].vector.kind, subject.grouping.declaration.most_rows_per_unit
    if most is not None and kind in COUNTING:
        reading = at_most(reading, float(most))
    if kind == "units" and subject.grouping.cells:
        reading = clipped(reading, float(subject.grouping.cells))  # a profile of found groups has the small ones too
    for wider in wider_than(subject):
        rounds = _rounds(wider, facts)
        if not rounds:
            continue
        lower = below(reading, reading_of(rounds, 0, wider.profiles[0].vector))
        used += rounds if lower is not reading else []
        reading = lower
    return reading, tuple(used)


def wider_than(subject: Subject) -> Iterator[Subject]:
    """Yield the facts of more rows, or of larger cells, in which every person has at least the same."""
    vector, grouping = subject.profiles[0].vector, subject.grouping
    if vector.kind not in COUNTING or subject.profiles[0].norm != 1:
        return
    one = Profile(1, vector)
    if grouping.where is not None and (grouping.keys or vector.kind != "rows"):
        for profiles in ((one,), (one, Profile(2, vector)))[: 2 if grouping.keys else 1]:
            yield replace(subject, grouping=grouping.of_all_rows(), profiles=profiles)
    for where in dict.fromkeys((grouping.where, None)):
        one_cell: Grouping = replace(grouping.of_all_groups(), where=where)
        if one_cell != grouping or vector.kind != "rows":
            yield count_subject(one_cell, "rows")


def _prefix(subject: Subject) -> str:
    grouping = subject.grouping
    is_of_table = grouping.where is None and not grouping.keys and not subject.measured
    return AT_MOST_OF_TABLE if is_of_table else AT_MOST


def _rounds(subject: Subject, facts: Facts) -> list[Fact]:
    known: list[Fact] = []
    while (key := _prefix(subject) + subject.key(len(known))) in facts:
        known.append(subject.sound(facts[key]))
    return known
