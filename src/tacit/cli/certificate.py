"""`tacit certificate`: the signed certificate of an answer, and its check by whoever has the file."""

import json
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.budget import LedgerPath
from tacit.cli.screen import say
from tacit.errors import InvalidParameter
from tacit.files import read_small

CERTIFICATE_BYTES_MAX = 1 << 28


def certificate(
    what: Annotated[
        str, typer.Argument(metavar="NUMBER|verify", help="The answer's entry (or its charge's); or verify.")
    ],
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="With verify: the certificate.")] = None,
    *,
    registry: Annotated[
        bool, typer.Option("--registry", help="Write the fields of the public registry of deployments, as YAML.")
    ] = False,
    output: Annotated[str | None, typer.Option(metavar="FILE", help="Where to; without it, to the screen.")] = None,
    ledger: LedgerPath = None,
) -> None:
    """Write the certificate of an answer as JSON, or verify one, without the ledger.

    It says what was released, the unit, the neighbours, the noise and what it cost, with the entries that prove it.

    Example: `tacit certificate 12 --output answer.json`, then anywhere: `tacit certificate verify answer.json`
    """
    if what == "verify":
        if file is None:
            raise InvalidParameter("verify needs a file\nhint: tacit certificate verify answer.json")
        say(verified(Path(file)))
        return
    if not (what.isdecimal() and len(what) <= 18) or file is not None:
        raise InvalidParameter("give the number of an answer, or verify and a file\nhint: tacit certificate 12")
    from tacit.ledger.deployment import deployment, to_yaml
    from tacit.ledger.opening import open_ledger

    with open_ledger(ledger, create=False) as opened:
        record = opened.certificate(int(what))
    text = to_yaml(deployment(record)) if registry else json.dumps(record, indent=2)
    if output is None:
        say(text)
    else:
        Path(output).write_text(text + "\n", encoding="utf-8")


def verified(path: Path) -> str:
    """Return what a certificate certifies, as text, after checking all of it."""
    from tacit.ledger.certificate import verify_certificate
    from tacit.privacy.number import from_text, read_json, show

    try:
        record = read_json(read_small(path, bytes_max=CERTIFICATE_BYTES_MAX))
    except OSError as error:
        raise InvalidParameter(f"{path} cannot be read ({error.strerror})") from error
    except ValueError:
        record = None
    found = verify_certificate(record)
    loss = found["loss"]
    main = ("ε", loss["epsilon"]) if loss["epsilon"] is not None else ("ρ", loss["rho"])
    delta = from_text(loss["delta"]) + (from_text(loss["delta_noise"]) if loss["epsilon"] is not None else 0)
    cost = f"{main[0]} = {show(from_text(main[1]))}" + (f", δ = {show(delta)}" if delta else "")
    return (
        f"whole: entry {found['number']} of ledger {found['ledger']}, {found['time'][:19]}\n"
        f"table {found['table']['name']} version {found['table']['version']}, unit {found['unit']}, "
        f"neighbours {found['neighbours']}\n"
        f"loss {cost}; {found['software']}; signed by {found['key']} (compare it with the curator's)"
    )
