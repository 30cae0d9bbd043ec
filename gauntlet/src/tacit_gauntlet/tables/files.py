"""Files that others may have written: numbers too long to read."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import tacit
from tacit.errors import TacitError
from tacit.ledger.certificate import verify_certificate
from tacit.ledger.chain import link, new_key
from tacit.local import collector
from tacit.local.survey import make_survey, survey_of
from tacit.privacy import event, number
from tacit_gauntlet.frame.case import Evidence, Size, case

Json = dict[str, Any]

# Each is, or names, a number longer than any of ours; a reader that takes 1e20000 would take 1e99999999 too.
HOSTILE = (
    "1e20000",
    "-1e20000",
    "1e-20000",
    "9" * 40_000,
    "1/" + "9" * 40_000,
    "1e20000/3",
    "1/0",
    "nan",
    "inf",
    "0x10",
    "",
)
HOSTILE_JSON = ("[" * 100_000, '{"a":' * 100_000, '{"what":' + "9" * 40_000 + "}", '{"what":NaN}', '{"what":Infinity}')


@case("F02", title="a number in a file from others is of a bounded length, or refused", feature="files")
def numbers_in_files_are_bounded(size: Size) -> Evidence:
    """Forge certificates, report headers and collectors' states around hostile numbers, signed where they must be."""
    certificate = _certificate()
    texts = HOSTILE if size == "full" else HOSTILE[:4] + HOSTILE[6:7]
    surfaces: dict[str, Callable[[str], object]] = {
        "exact number": number.from_text,
        "event": lambda text: event.event_from_dict({"kind": "LaplaceNoise", "scale": text, "sensitivity": "1"}),
        "certificate, charge": lambda text: verify_certificate(_forged(certificate, epsilon=text)),
        "certificate, event": lambda text: verify_certificate(
            _forged(certificate, events=[{"kind": "PureChoice", "epsilon": text}])
        ),
        "header, epsilon": lambda text: survey_of(make_survey(["yes", "no"], epsilon=1).header() | {"epsilon": text}),
        "header, range": lambda text: survey_of(_ranged(text)),
    }
    taken = [f"{name}: {text[:12]}" for name, read in surfaces.items() for text in texts if _is_taken(read, text)]
    nested: dict[str, Callable[[str], object]] = {
        "JSON": number.read_json,
        "collector's state": lambda text: collector.merge_states([text]),
        "certificate, body": lambda text: verify_certificate(_forged(certificate, body=text)),
    }
    taken += [f"{name}: {text[:12]}" for name, read in nested.items() for text in HOSTILE_JSON if _is_taken(read, text)]
    tried = len(surfaces) * len(texts) + len(nested) * len(HOSTILE_JSON)
    return Evidence(passed=not taken, details={"tried": tried, "taken": taken})


def _is_taken(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except (TacitError, ValueError):
        return False
    except Exception:  # whatever else comes out was not refused
        return True
    return True


def _certificate() -> Json:
    rows = pa.table({"id": list(range(10))})
    table = tacit.table(rows, name="t", unit="id", rows_per_unit=1, ledger=":memory:", budget=tacit.epsilon(1))
    certificate: Json = json.loads(json.dumps(dict(table.count().answer(epsilon=1).certificate())))
    return certificate


def _forged(certificate: Json, *, body: str | None = None, **changed: object) -> Json:
    """Return the certificate with another charge, everything else made to fit and signed by a key of the forger's."""
    forged, key = copy.deepcopy(certificate), new_key()
    entry_of = forged["chain"]["charge"]
    charge = json.loads(entry_of["body"]) | changed
    entry_of["body"] = json.dumps(charge) if body is None else body
    entry_of["hash"] = link(entry_of["previous"], entry_of["body"])
    forged["loss"] = {name: charge[name] for name in ("epsilon", "rho", "delta")}
    forged["events"], forged["public_key"] = charge["events"], key.public
    del forged["signature"]
    return forged | {"signature": key.sign(forged)}


def _ranged(text: str) -> Json:
    header = make_survey(between=(0, 1), epsilon=1).header()
    return header | {"question": {"between": ["0", text]}}
