"""`tacit sign-in`: a token for a person who signs in at the server's provider, in a browser anywhere (device flow)."""

import time
from collections.abc import Callable
from typing import Any

from tacit.cli.options import required, with_options
from tacit.cli.screen import say
from tacit.errors import InvalidParameter

DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
SECONDS_MAX = 900.0


@with_options
def sign_in(
    server: str = required("URL", "The server; it names its provider."),
) -> None:
    """Sign in with your organisation's account, and print a token for $TACIT_TOKEN, good until the provider ends it.

    Open the address it shows in any browser, and enter the code there.

    Example: `export TACIT_TOKEN=$(tacit sign-in --server https://data.example.org)`
    """
    from tacit.cli.serve import require_server

    require_server()
    from tacit.remote import Wire
    from tacit.server import fetched

    about = Wire(server, "-").send("GET", "/api/v1/sign-on").record
    say(device_token(about, fetched, lambda words: say(words, err=True), time.sleep))


def device_token(
    about: dict[str, str],
    fetch: Callable[[str, Any], Any],
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
) -> str:
    """Return the token of a person who signs in elsewhere: show them where, and wait."""
    try:
        addresses = fetch(f"{about['issuer'].rstrip('/')}/.well-known/openid-configuration", None)
        asked = {"client_id": about["client_id"], "scope": about["scope"]}
        begun = fetch(str(addresses["device_authorization_endpoint"]), asked)
        tell(f"open {begun['verification_uri']} in a browser, and enter the code {begun['user_code']}")
        asked = {"grant_type": DEVICE, "client_id": about["client_id"], "device_code": str(begun["device_code"])}
        every, waited = float(begun.get("interval", 5)), 0.0
        while waited < min(float(begun["expires_in"]), SECONDS_MAX):
            sleep(every)
            waited += every
            reply = fetch(str(addresses["token_endpoint"]), asked)
            if "id_token" in reply:
                return str(reply["id_token"])
            if reply.get("error") == "slow_down":
                every += 5
            elif reply.get("error") != "authorization_pending":
                break
    except (OSError, KeyError, TypeError, ValueError):
        raise InvalidParameter(
            "the provider of single sign-on cannot be asked for a code\nhint: ask the curator for a token"
        ) from None
    raise InvalidParameter("the code was not used in time, or was refused\nhint: run the command again")
