"""Tables that are made by a law with a fixed seed: how many rows people have, in which groups, and of which size.

Each function returns columns by name. People with many rows are often in other groups than the rest: patients on
dialysis, members of an insurance who are in hospital, firms in one branch.
"""

from collections.abc import Mapping, Sequence

import numpy as np

Columns = Mapping[str, np.ndarray]


def _named(rng: np.random.Generator, names: Sequence[object], rows: int, weights: Sequence[float]) -> np.ndarray:
    return np.array(names)[_drawn(rng, rows, weights)]


def _drawn(rng: np.random.Generator, rows: int, weights: Sequence[float] | np.ndarray) -> np.ndarray:
    return rng.choice(len(weights), rows, p=np.array(weights) / np.sum(weights))


def _persons(sizes: np.ndarray) -> np.ndarray:
    return np.repeat(np.arange(len(sizes)), sizes)


def _sex(person: np.ndarray) -> np.ndarray:
    return np.array(["f", "m"])[person * 7919 % 2]


def register(people: int, seed: int) -> Columns:
    """A census: one row a person, regions of unequal size, ages, incomes with a long tail."""
    rng = np.random.default_rng(seed)
    return {
        "person": np.arange(people),
        "region": _named(rng, list("ABCDEF"), people, (35, 25, 15, 12, 8, 5)),
        "sex": _named(rng, ("f", "m"), people, (1, 1)),
        "age": np.clip(rng.normal(42, 22, people), 0, 99).astype(int),
        "income": np.round(rng.lognormal(10.2, 0.8, people), 2),
    }


def panel() -> Columns:
    """4,000 people in each of 12 months: 12 rows each."""
    rng, people = np.random.default_rng(102), 4_000
    wage = np.repeat(rng.lognormal(7.8, 0.5, people), 12)
    return {
        "person": np.repeat(np.arange(people), 12),
        "month": np.tile(np.arange(1, 13), people),
        "sector": np.repeat(_named(rng, ("private", "public", "self", "none"), people, (55, 20, 10, 15)), 12),
        "wage": np.round(wage * rng.lognormal(0, 0.1, 12 * people)),
    }


def purchases() -> Columns:
    """15,000 people with 1 + Poisson(3) rows each, in four channels at random."""
    rng = np.random.default_rng(103)
    person = _persons(1 + rng.poisson(3, 15_000))
    rows = len(person)
    return {
        "person": person,
        "channel": _named(rng, ("web", "shop", "phone", "post"), rows, (50, 30, 15, 5)),
        "weekday": rng.integers(1, 8, rows),
        "items": 1 + rng.poisson(1.2, rows),
    }


def stays() -> Columns:
    """20,000 people with lognormal numbers of rows (median 2, up to some hundred), six in ten of them in one ward."""
    rng, people = np.random.default_rng(104), 20_000
    person = _persons(np.maximum(1, np.round(rng.lognormal(0.7, 1.1, people))).astype(int))
    rows, weights = len(person), (40, 20, 20, 12, 8)
    ward = np.where(rng.random(rows) < 0.6, _drawn(rng, people, weights)[person], _drawn(rng, rows, weights))
    return {
        "person": person,
        "ward": np.array(["north", "south", "east", "west", "centre"])[ward],
        "urgent": (rng.random(rows) < 0.2 + 0.02 * ward).astype(int),
        "days": rng.geometric(1 / (2 + ward), rows),
    }


def dialysis() -> Columns:
    """9,000 people with one or two rows, and 1,000 with about 50, most of these in one group."""
    rng = np.random.default_rng(105)
    person = _persons(np.concatenate([rng.integers(1, 3, 9_000), rng.poisson(50, 1_000)]))
    rows, often = len(person), person >= 9_000
    kind = np.where(often, _drawn(rng, rows, (1, 1, 1, 7)), _drawn(rng, rows, (4, 3, 2, 1)))
    return {
        "person": person,
        "kind": np.array(["acute", "check", "repeat", "dialysis"])[kind],
        "sex": _sex(person),
        "cost": np.round(rng.gamma(np.where(often, 4, 2), 60), 2),
    }


def giants() -> Columns:
    """20,000 firms with 1 to 3 rows, and six with 2,000: no private answer can see the six."""
    rng = np.random.default_rng(106)
    person = _persons(np.concatenate([rng.integers(1, 4, 20_000), np.full(6, 2_000)]))
    rows = len(person)
    return {
        "firm": person,
        "branch": np.where(person < 20_000, _named(rng, list("ABCD"), rows, (4, 3, 2, 1)), "A"),
        "year": rng.integers(2020, 2025, rows),
        "price": np.round(rng.gamma(3, 10, rows), 2),
    }


def trips() -> Columns:
    """10,000 people with 6 rows each in 50 groups of equal size."""
    rng = np.random.default_rng(107)
    person = np.repeat(np.arange(10_000), 6)
    rows = len(person)
    return {
        "person": person,
        "state": rng.integers(1, 51, rows),
        "mode": _named(rng, ("car", "bus", "foot"), rows, (7, 2, 1)),
        "km": np.round(rng.lognormal(1.5, 1.0, rows), 1),
    }


def nations() -> Columns:
    """12,000 people with 1 + Poisson(1) rows, one group with 97 % of them and six small ones."""
    rng = np.random.default_rng(108)
    person = _persons(1 + rng.poisson(1, 12_000))
    rows = len(person)
    return {
        "person": person,
        "nation": _named(rng, ("here", "b", "c", "d", "e", "f", "g"), rows, (970, 10, 8, 6, 3, 2, 1)),
        "sex": _sex(person),
        "age": np.clip(rng.normal(40, 18, rows), 0, 99).astype(int),
    }


def claims(
    seed: int, people: int, power: float, most: int, types: int, many: int, share: tuple[float, float]
) -> Columns:
    """Members with Pareto numbers of claims; the claims of members with many are mostly of the dear type, hospital."""
    rng = np.random.default_rng(seed)
    sizes = np.minimum(np.floor(1 + rng.pareto(power, people)), most).astype(int)
    person = _persons(sizes)
    rows = len(person)
    dear = rng.random(rows) < np.where(sizes[person] >= many, share[1], share[0])
    names = np.array([f"type {place}" for place in range(1, types)])
    return {
        "member": person,
        "type": np.where(dear, "hospital", names[_drawn(rng, rows, np.linspace(3, 1, types - 1))]),
        "month": rng.integers(1, 13, rows),
        "cost": np.round(rng.lognormal(4, 0.8, rows) * np.where(dear, 8.0, 1.0), 2),
    }


def clinic(seed: int, people: int, chronic: float, visits: int, wards: int, spread: float, share: float) -> Columns:
    """Patients with a few visits, and chronic ones with many, a share of theirs in one small ward."""
    rng = np.random.default_rng(seed)
    ill = rng.random(people) < chronic
    often = np.maximum(1, np.round(rng.lognormal(np.log(visits), spread, people)))
    person = _persons(np.where(ill, often, 1 + rng.poisson(1.2, people)).astype(int))
    rows = len(person)
    ward = _drawn(rng, rows, np.linspace(4, 1, wards))
    ward = np.where(ill[person] & (rng.random(rows) < share), wards - 1, ward)
    age = rng.normal(45, 15, people)[person] + 15 * ill[person] + rng.normal(0, 3, rows)
    return {"patient": person, "ward": ward, "sex": _sex(person), "age": np.clip(age, 0, 100).round().astype(int)}


def pareto(seed: int, power: float, groups: int, home: float) -> Columns:
    """30,000 people with Pareto numbers of rows, a share of each person's in one group."""
    rng, people = np.random.default_rng(seed), 30_000
    person = _persons(np.floor(1 + rng.pareto(power, people)).astype(int))
    rows, weights = len(person), np.linspace(3, 1, groups)
    group = np.where(rng.random(rows) < home, _drawn(rng, people, weights)[person], _drawn(rng, rows, weights))
    return {
        "person": person,
        "place": group,
        "year": rng.integers(2020, 2026, rows),
        "amount": np.round(rng.gamma(2, 20 + 3 * group, rows), 1),
    }


def loyal(seed: int, people: int, groups: int, heavy: float) -> Columns:
    """Poisson numbers of rows; a few people have five times as many, all of them in one group."""
    rng = np.random.default_rng(seed)
    more = rng.random(people) < heavy
    person = _persons(1 + rng.poisson(np.where(more, 10.0, 2.0)))
    rows = len(person)
    group = np.where(more[person], groups - 1, _drawn(rng, rows, np.linspace(3, 1, groups)))
    return {"person": person, "shop": group, "sex": _sex(person), "paid": rng.gamma(3, 10, rows).round(1)}
