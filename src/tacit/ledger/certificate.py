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
    """Return the certificate with the ledger's signature."""
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
    """Return the version of the code that runs."""
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


_FLAVOURS = {"pure": "Pure DP", "approximate": "Approximate DP", "zcdp": "Zero-concentrated DP"}


# ---- the registry of deployments -------------------------------------------------------------------------------------


def deployment(certificate: Record) -> Record:
    """Return the registry's fields for a certificate."""
    loss = certificate["loss"]
    table = certificate["table"]
    kinds = sorted({event["kind"] for event in certificate["events"]})
    by_epsilon = loss["epsilon"] is not None
    # noise that is not pure was charged for an epsilon and a delta, or else by its rho
    delta = from_text(loss["delta"]) + (from_text(loss["delta_noise"]) if by_epsilon else 0)
    flavour = _FLAVOURS["zcdp" if not by_epsilon else "approximate" if delta else "pure"]
    main = "epsilon" if by_epsilon else "rho"
    parameters = {main: _float_above(loss[main])} | ({"delta": _float_above(to_text(delta))} if delta else {})
    return {
        "status": "LedgerDraft",
        "deployment": {
            "product": {
                "name": f"{table['name']}, answer {certificate['number']}",
                "data_curators": [],
                "intended_use": "",
                "data_product_type": "Summary statistics",
                "data_product_region": "",
                "description": "",
                "publication_date": certificate["time"][:10],
                "data_product_sector": "",
            },
            "dp_flavor": {
                "name": flavour,
                "input_metric": f"units under {certificate['neighbours'] or 'add or remove'} one",
                "bound_on_input_distance": "1",
                "data_domain": f"table {table['table']} version {table['version']}, "
                f"declaration {table['declaration_hash']}",
                "unprotected_quantities": "the public part of the declaration: columns, bounds, keys",
            },
            "privacy_loss": {
                "privacy_unit": str(certificate["unit"]),
                "privacy_unit_description": f"all rows of one {certificate['unit']}",
                "privacy_parameters": parameters,
                "privacy_parameters_description": "only of this answer",
            },
            "model": {
                "model_name": "Central",
                "release_type": "Many releases",
                "data_source_type": "",
                "access_type": "Interactive",
            },
            "accounting": {
                "post_processing": "",
                "composition": "one filter fixed when the budget was declared, valid for questions chosen adaptively",
            },
            "implementation": {
                "pre_processing_eda_hyperparameter_tuning": "",
                "mechanisms": ", ".join(kinds),
                "justification": "",
            },
            "resources": {
                "sources": f"{certificate['software']}; ledger {certificate['ledger']}, entry {certificate['number']}, "
                f"hash {certificate['chain']['answer']['hash']}",
                "registry_authors": [],
            },
        },
    }


def to_yaml(value: Any, depth: int = 0) -> str:
    """Return records, lists, texts and numbers as YAML.

    >>> print(to_yaml({"a": {"b": "c: d", "e": 0.5}, "f": []}))
    a:
      b: "c: d"
      e: 0.5
    f: []
    """
    if not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str | list) else _yaml_number(value)
    lines = []
    for name, inner in value.items():
        if isinstance(inner, dict):
            lines += [f"{'  ' * depth}{name}:", to_yaml(inner, depth + 1)]
        else:
            lines.append(f"{'  ' * depth}{name}: {to_yaml(inner)}")
    return "\n".join(lines)


def _float_above(text: str) -> float:
    """Return an amount as a float that is never below it."""
    amount = from_text(text)
    nearest = float(amount)
    return nearest if Fraction(nearest) >= amount else nextafter(nearest, inf)


def _yaml_number(value: float) -> str:
    """Return a float as YAML reads one: with a point before the exponent."""
    text = repr(value)
    whole, mark, exponent = text.partition("e")
    return text if not mark or "." in whole else f"{whole}.0e{exponent}"
