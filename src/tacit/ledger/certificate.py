"""Certificates: a release and its cost, signed, so that any reader of the file can check it.

A certificate holds the entries themselves (declaration, charge and answer): a checker recomputes hashes and the loss,
and need not trust a summary. The last part writes one as an entry of the public registry of deployments (OpenDP's), in
YAML, with empty fields for the curator.
"""

import json
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from math import inf, nextafter
from pathlib import Path
from string import Template
from typing import Any

from tacit.accounting import covers
from tacit.errors import InvalidParameter, LedgerError, TacitError
from tacit.ledger.chain import BEGINNING, SigningKey, digest, fingerprint, link, verify_signature
from tacit.ledger.draft import LedgerDraft
from tacit.ledger.entry import Entry, Record, charge_from
from tacit.numbers import from_text, read_json, to_text
from tacit.privacy import event_from_dict

WHAT = "tacit certificate 2"


def facts(view: LedgerDraft, number: int, *, public_key: str) -> Record:
    """Return the content of an answer's certificate, unsigned; `number` is that of its entry or of its charge."""
    entry = view.entry(number)
    answer = view.answer_paid_by(number) if entry is not None and entry.kind == "charge" else entry
    if answer is None or answer.kind != "answer":
        raise InvalidParameter(
            f"entry {number} of this ledger is not an answer\nhint: 'tacit ledger show' lists the answers"
        )
    charge = _entry_of(view, answer.record["charge"])
    table = _entry_of(view, charge.record["declared"])
    chained = {"table": _chained(view, table), "charge": _chained(view, charge), "answer": _chained(view, answer)}
    return {"what": WHAT, "ledger": view.head.ledger, "software": software(), **summary(chained), "chain": chained} | {
        "public_key": public_key
    }


def summary(chained: Record) -> Record:
    """Return the summary of a certificate's entries, for people to read."""
    table, charge, answer = (read_json(chained[name]["body"]) for name in ("table", "charge", "answer"))
    declaration = table["declaration"]
    return {
        "number": chained["answer"]["number"],
        "time": answer["time"],
        "table": {name: table[name] for name in ("table", "name", "version", "declaration_hash")},
        "unit": declaration.get("unit"),
        "neighbours": declaration.get("neighbours"),
        "events": charge["events"],
        "loss": {name: charge[name] for name in ("epsilon", "rho", "delta", "delta_noise")},
        "answer": answer["answer"],
        **({"question": charge["about"]} if "about" in charge else {}),
        **({"shown": answer["as_shown"]} if "as_shown" in answer else {}),
    }


def sign(certificate: Record, key: SigningKey) -> Record:
    return {**certificate, "signature": key.sign(certificate)}


def verify_certificate(certificate: Any) -> Record:
    """Return a certificate's summary and its key's short name after checking everything in it, without the ledger."""
    try:
        return _verified(certificate)
    except LedgerError:
        raise
    except (TacitError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _refused_certificate("it is not a certificate, or parts of it are missing") from error


def software() -> str:
    return f"tacit {_version()}"


def _verified(certificate: Any) -> Record:
    unsigned = {name: value for name, value in certificate.items() if name != "signature"}
    public = certificate["public_key"]
    if certificate["what"] != WHAT or not verify_signature(unsigned, signature=certificate["signature"], public=public):
        raise _refused_certificate("its signature was not made with its key")
    chained = certificate["chain"]
    for name, entry in chained.items():
        if link(entry["previous"], entry["body"]) != entry["hash"]:
            raise _refused_certificate(f"the hash of its {name} is wrong")
    said = summary(chained)
    table, charge, answer = (read_json(chained[name]["body"]) for name in ("table", "charge", "answer"))
    if any(certificate[name] != value for name, value in said.items()):
        raise _refused_certificate("its summary differs from its entries")
    if (charge["declared"], answer["charge"], answer["table"], charge["table"]) != (
        chained["table"]["number"],
        chained["charge"]["number"],
        table["table"],
        table["table"],
    ):
        raise _refused_certificate("its entries do not belong together")
    if digest("declaration", table["declaration"]) != table["declaration_hash"]:
        raise _refused_certificate("the hash of the table's declaration is wrong")
    if not covers(charge_from(charge), map(event_from_dict, charge["events"])):
        raise _refused_certificate("its events cost more than the charge")
    return {**said, "ledger": certificate["ledger"], "software": certificate["software"], "key": fingerprint(public)}


def _entry_of(view: LedgerDraft, number: int) -> Entry:
    entry = view.entry(number)
    if entry is None:
        raise LedgerError(f"entry {number} is missing\nhint: tacit ledger verify")
    return entry


def _chained(view: LedgerDraft, entry: Entry) -> Record:
    previous = BEGINNING if entry.number == 1 else _entry_of(view, entry.number - 1).hash
    return {"number": entry.number, "previous": previous, "body": entry.body, "hash": entry.hash}


@lru_cache(maxsize=1)
def _version() -> str:
    try:
        return version("tacit")
    except PackageNotFoundError:
        return "(not installed)"


def _refused_certificate(what: str) -> LedgerError:
    return LedgerError(f"the certificate does not verify: {what}\nhint: ask for it again from the ledger's curator")


# ---- the registry of deployments -------------------------------------------------------------------------------------

_FLAVOURS = {"pure": "Pure DP", "approximate": "Approximate DP", "zcdp": "Zero-concentrated DP"}


def deployment(certificate: Record) -> str:
    """Return a certificate as an entry of the public registry, in YAML; the curator fills in its empty fields."""
    loss, table = certificate["loss"], certificate["table"]
    by_epsilon = loss["epsilon"] is not None
    # noise that is not pure was charged for an epsilon and a delta, or else by its rho
    delta = from_text(loss["delta"]) + (from_text(loss["delta_noise"]) if by_epsilon else 0)
    main = "epsilon" if by_epsilon else "rho"
    amounts = {main: loss[main]} | ({"delta": to_text(delta)} if delta else {})
    number, entry = certificate["number"], certificate["chain"]["answer"]
    texts = {
        "name": f"{table['name']}, answer {number}",
        "date": certificate["time"][:10],
        "flavour": _FLAVOURS["zcdp" if not by_epsilon else "approximate" if delta else "pure"],
        "metric": f"units under {certificate['neighbours'] or 'add or remove'} one",
        "domain": f"table {table['table']} version {table['version']}, declaration {table['declaration_hash']}",
        "unit": str(certificate["unit"]),
        "all_rows": f"all rows of one {certificate['unit']}",
        "mechanisms": ", ".join(sorted({event["kind"] for event in certificate["events"]})),
        "sources": f"{certificate['software']}; ledger {certificate['ledger']}, entry {number}, hash {entry['hash']}",
    }
    written = {name: json.dumps(text, ensure_ascii=False) for name, text in texts.items()}
    written["amounts"] = "\n      ".join(f"{name}: {_yaml_number(amount)}" for name, amount in amounts.items())
    template = (Path(__file__).parent / "deployment.yaml").read_text(encoding="utf-8")
    return Template(template).substitute(written)


def _yaml_number(amount: str) -> str:
    """Return an amount as a float that is never below it, as YAML reads one: with a point before the exponent."""
    exact = from_text(amount)
    nearest = float(exact)
    text = repr(nearest if Fraction(nearest) >= exact else nextafter(nearest, inf))
    whole, mark, exponent = text.partition("e")
    return text if not mark or "." in whole else f"{whole}.0e{exponent}"
