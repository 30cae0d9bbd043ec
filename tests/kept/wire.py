"""Kept wire: every form in which local reports travel, from every protocol, and what a collector makes of them.

A report is read by whoever collects it, at another version perhaps, so its bytes change only with the format's number.
"""

import base64
from pathlib import Path

import tacit
from tacit import local
from tests.kept.stage import World, section, standing_still

LABELS = ["never", "rarely", "often", "daily"]
SURVEYS: dict[str, tuple[dict[str, object], list[object]]] = {
    "response": ({"domain": LABELS, "epsilon": 1, "protocol": "response"}, LABELS),
    "subset": ({"domain": 40, "epsilon": 1, "protocol": "subset", "epoch": "week 1"}, [0, 7, 39]),
    "local-hashing": ({"domain": 1000, "epsilon": 1, "protocol": "local-hashing"}, [0, 1, 999]),
    "chosen": ({"domain": LABELS, "epsilon": 3, "tokens": True}, LABELS),
    "hybrid": ({"between": (0, 50), "epsilon": 1, "protocol": "hybrid"}, [0, 12.5, 50]),
    "strings": ({"alphabet": "abc", "length": 4, "epsilon": 2}, ["abca", "cc"]),
    "attributes, split": ({"attributes": {"smokes": LABELS, "age": 9}, "method": "split", "epsilon": 2}, []),
    "attributes, sampled": ({"attributes": {"smokes": LABELS, "age": 9}, "method": "sample", "epsilon": 2}, []),
}
RECORDS = [{"smokes": "often", "age": 3}, {"smokes": "never", "age": 8}]


def text() -> str:
    """Return the kept wire."""
    with standing_still() as world:
        parts = [_of_survey(world, title, words, values or RECORDS) for title, (words, values) in SURVEYS.items()]
        parts += [_over_time(world), _randomized_response(world)]
    return "\n".join(parts)


def _of_survey(world: World, title: str, words: dict[str, object], values: list[object]) -> str:
    world.again()
    client = local.Randomizer(**words)
    tokens = [f"t{place}" for place in range(len(values))] if words.get("tokens") else None
    reports = client.reports(values, tokens=tokens)
    told = [repr(client)]
    for ending in ("jsonl", "bin"):
        if ending == "jsonl" or tokens is None:
            local.write_reports(reports, f"reports.{ending}")
            told.append(_shown(Path(f"reports.{ending}")))
    one = client.report(values[0], token="t" if tokens else None)
    told.append(f"one: {one.id.hex()} {one.payload.hex()}")
    collector = local.collect_file("reports.jsonl")
    collector.add_all(client.reports(values * 50, tokens=tokens and [f"t{place}" for place in range(len(values) * 50)]))
    told += [] if "alphabet" in words else [f"state: {collector.state()}"]  # strings are kept whole
    told.append(str(collector.estimate()))
    return section(title, *told)


def _over_time(world: World) -> str:
    world.again()
    survey = local.make_survey(LABELS, epsilon=2, epsilon_first=1)
    client = local.LongitudinalClient(survey, memo="memo.json", values_most=2)
    reports = [client.report(value).payload.hex() for value in ("often", "often", "never", "daily")]
    return section("over time", survey.header(), *reports, Path("memo.json").read_text())


def _randomized_response(world: World) -> str:
    world.again()
    yes = tacit.RandomizedResponse(epsilon=1)
    many = tacit.RandomizedResponse(epsilon=2, categories=["a", "b", "c"])
    told = [yes, yes.explain(), yes.release([True, False] * 8), yes.people(error=0.01), yes.error(people=1000)]
    told += [yes.estimate([True] * 70 + [False] * 30), many, many.release(["a", "b", "c"] * 4)]
    told += [many.estimate(["a"] * 50 + ["b"] * 30 + ["c"] * 20)]
    return section("randomized response", *told)


def _shown(path: Path) -> str:
    data = path.read_bytes()
    return data.decode() if path.suffix == ".jsonl" else base64.b64encode(data).decode()
