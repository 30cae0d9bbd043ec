"""One person's clients that share a memo: in threads, in processes and opened at one time they must have one answer."""

import tempfile
import threading
from pathlib import Path
from typing import Any

import tacit.local as local
from tacit.local.client import LongitudinalClient
from tacit_gauntlet.frame.case import Evidence, Size, case
from tacit_gauntlet.stage.processes import in_forks

# Of 400 reports at these losses a bit shows as it is not, most of the time, with a chance below 1e-12.
LOSSES: dict[str, Any] = {"epsilon": 4, "epsilon_first": 3}
REPORTS = 400
ANSWERS = 40


@case("T07", title="clients that share a memo show one permanent answer, in threads and in processes", feature="local")
def shared_memo_shows_one_answer(size: Size) -> Evidence:
    """Open clients before any has answered, let all of them report, and count the permanent answers that show."""
    people, clients = (3, 4) if size == "quick" else (20, 12)
    survey = local.make_survey(ANSWERS, **LOSSES)
    shown: dict[str, list[int]] = {"one after the other": [], "threads": [], "processes": []}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(people):
            memos = {how: Path(folder) / f"{how} {number}" for how in shown}
            opened = {
                how: [LongitudinalClient(survey, memo=memo) for _ in range(clients)] for how, memo in memos.items()
            }
            value = number % ANSWERS
            shown["one after the other"].append(len({_bits(client, value) for client in opened["one after the other"]}))
            shown["threads"].append(len(_in_threads(opened["threads"], value)))
            shown["processes"].append(len(_in_processes(opened["processes"][0], value, clients)))
    details = {f"permanent answers shown, {how}": counts for how, counts in shown.items()}
    return Evidence(passed=all(set(counts) == {1} for counts in shown.values()), details=details)


def _bits(client: LongitudinalClient, value: int) -> tuple[int, ...]:
    """What an attacker makes of many reports: each bit as it was most of the time."""
    counts = client.survey.protocol.tally(client.reports(value, REPORTS).payloads)
    return tuple(int(count * 2 > REPORTS) for count in counts)


def _in_threads(clients: list[LongitudinalClient], value: int) -> set[tuple[int, ...]]:
    start, found = threading.Barrier(len(clients)), []

    def ask(client: LongitudinalClient) -> None:
        start.wait()
        found.append(_bits(client, value))

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return set(found)


def _in_processes(client: LongitudinalClient, value: int, count: int) -> set[tuple[int, ...]]:
    """Each fork has its own copy of the client, made before it has answered."""
    return {tuple(bits) for bits in in_forks(count, lambda: list(_bits(client, value)))}
