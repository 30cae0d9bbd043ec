"""A certificate as an entry of the public registry of deployments (OpenDP's), in YAML.

What the ledger knows is filled in; what only the curator knows is left empty for them to write.
"""

import json
from fractions import Fraction
from math import inf, nextafter
from typing import Any

from tacit.ledger.entry import Record
from tacit.privacy.number import from_text, to_text

_FLAVOURS = {"pure": "Pure DP", "approximate": "Approximate DP", "zcdp": "Zero-concentrated DP"}


def deployment(certificate: Record) -> Record:
    """Return the registry's fields for what a certificate certifies."""
    loss = certificate["loss"]
    table = certificate["table"]
    kinds = sorted({event["kind"] for event in certificate["events"]})
    by_epsilon = loss["epsilon"] is not None
    # noise that is not pure was charged for an epsilon and a delta, or else by its rho
    delta = from_text(loss["delta"]) + (from_text(loss["delta_noise"]) if by_epsilon else 0)
    flavour = _FLAVOURS["zcdp" if not by_epsilon else "approximate" if delta else "pure"]
    main = "epsilon" if by_epsilon else "rho"
    parameters = {main: _number(loss[main])} | ({"delta": _number(to_text(delta))} if delta else {})
    return {
        "status": "Draft",
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
                "unprotected_quantities": "what the declaration says is public: columns, bounds, keys",
            },
            "privacy_loss": {
                "privacy_unit": str(certificate["unit"]),
                "privacy_unit_description": f"all rows of one {certificate['unit']}",
                "privacy_parameters": parameters,
                "privacy_parameters_description": "of this answer alone",
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


def _number(text: str) -> float:
    """Return an amount as a float that is never below it."""
    amount = from_text(text)
    nearest = float(amount)
    return nearest if Fraction(nearest) >= amount else nextafter(nearest, inf)


def _yaml_number(value: float) -> str:
    """Return a float as YAML reads one: with a point before the exponent."""
    text = repr(value)
    whole, mark, exponent = text.partition("e")
    return text if not mark or "." in whole else f"{whole}.0e{exponent}"
