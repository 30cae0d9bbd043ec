"""The settings of one connection: how much a question may spend, and those of PostgreSQL that tools set and read."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tacit.errors import InvalidParameter, did_you_mean
from tacit.options import FLAGS, OPTIONS, SPENDING, read_value
from tacit.server.postgres.public_catalog import VERSION

OURS = "tacit."
SETTINGS_MAX = 100
VALUE_CHARACTERS_MAX = 1_000
INSTEAD = {"epsilon": "error", "error": "epsilon"}  # of these the one that was set last is used
_SCALARS = ("text", "amount", "error", "whole", "flag", "learn")
_NAMES = [name for name, each in {**SPENDING, **FLAGS}.items() if each.kind in _SCALARS]
_UTF8 = ("utf8", "utf-8", "unicode")
_ROLES = ("role", "session_authorization")
FIXED = {
    "server_version": VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "in_hot_standby": "off",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "lc_collate": "C",
    "max_identifier_length": "63",
}
USUAL = {
    "client_encoding": "UTF8",
    "datestyle": "ISO, MDY",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "application_name": "",
    "search_path": '"$user", public',
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "extra_float_digits": "1",
    "statement_timeout": "0",
    "bytea_output": "hex",
}
# sent to a client at the start: the names as PostgreSQL spells them
REPORTED = {
    **{name: name for name in ("server_version", "server_encoding", "client_encoding", "is_superuser")},
    **{name: name for name in ("in_hot_standby", "default_transaction_read_only", "integer_datetimes")},
    "standard_conforming_strings": "standard_conforming_strings",
    "application_name": "application_name",
    "datestyle": "DateStyle",
    "intervalstyle": "IntervalStyle",
    "timezone": "TimeZone",
}


@dataclass
class Settings:
    """The settings of one connection; those that begin with `tacit.` are options of its questions."""

    user: str = ""
    usual_epsilon: str | None = None  # by the curator, for this person
    given: dict[str, str] = field(default_factory=dict)

    def set(self, name: str, value: str) -> None:
        """Set one; an empty value is the usual one again."""
        name = name.lower()
        if len(value) > VALUE_CHARACTERS_MAX or (name not in self.given and len(self.given) >= SETTINGS_MAX):
            raise InvalidParameter("this setting is too long, or one too many\nhint: RESET ALL")
        if name.startswith(OURS):
            self._set_option(name.removeprefix(OURS), value)
            return
        if name in _ROLES:
            raise InvalidParameter("another person cannot be chosen here\nhint: connect with that person's token")
        if name == "client_encoding" and value and value.lower().strip("'\"") not in _UTF8:
            raise InvalidParameter("this server speaks only UTF8\nhint: SET client_encoding = 'UTF8'")
        if name == "datestyle" and value and not value.lower().startswith("iso"):
            raise InvalidParameter("this server writes dates only as ISO\nhint: SET DateStyle = 'ISO'")
        if name == "standard_conforming_strings" and value and value.lower() not in ("on", "true", "yes", "1"):
            raise InvalidParameter("a backslash is an ordinary character here\nhint: leave this setting on")
        if name in FIXED or not value:
            self.given.pop(name, None)
            return
        self.given[name] = value

    def _set_option(self, name: str, value: str) -> None:
        if name not in _NAMES:
            known = did_you_mean(f"{OURS}{name}", [OURS + each for each in _NAMES])
            raise InvalidParameter(f"the setting '{OURS}{name[:40]}' is unknown{known}")
        if value:
            read_value(OPTIONS[name].kind, _option(name, value), f"{OURS}{name}")
            self.given.pop(OURS + INSTEAD.get(name, ""), None)
            self.given[OURS + name] = value
        else:
            self.given.pop(OURS + name, None)

    def show(self, name: str) -> str:
        name = name.lower()
        if name.startswith(OURS) and name.removeprefix(OURS) in _NAMES:
            return str(self._options().get(name.removeprefix(OURS), ""))
        found = self.all().get(name)
        if found is None:
            raise InvalidParameter(f"the setting '{name[:60]}' is unknown\nhint: SHOW tacit.epsilon")
        return found

    def all(self) -> dict[str, str]:
        return {**USUAL, **FIXED, "session_authorization": self.user, **self.given}

    def options(self) -> dict[str, Any]:
        """Return the options of a question, as a body of HTTP has them."""
        return {name: _option(name, value) for name, value in self._options().items()}

    def _options(self) -> dict[str, str]:
        given = {name.removeprefix(OURS): value for name, value in self.given.items() if name.startswith(OURS)}
        if self.usual_epsilon is not None and not given.keys() & {"epsilon", "error"}:
            given["epsilon"] = self.usual_epsilon
        return given

    def reset(self) -> None:
        self.given.clear()

    def reported(self) -> Iterator[tuple[str, str]]:
        """Yield the settings that are sent to a client at the start."""
        known = self.all()
        yield from ((shown, known[name]) for name, shown in REPORTED.items())
        yield "session_authorization", self.user


def _option(name: str, value: str) -> Any:
    """Return a setting as the value of an option: a flag or a whole number is not a text there."""
    kind, word = OPTIONS[name].kind, value.lower()
    if kind in ("flag", "learn") and word in ("on", "true", "yes", "1", "off", "false", "no", "0"):
        return word in ("on", "true", "yes", "1")
    if kind == "whole" and re.fullmatch(r"[0-9]{1,18}", value, re.ASCII):
        return int(value)
    return value


def settings_in(options: str) -> Iterator[tuple[str, str]]:
    """Yield the settings in the options of a connection, such as `-c tacit.epsilon=0.5`; a backslash keeps a space.

    >>> list(settings_in("-c tacit.error=2\\\\ % --tacit.confidence=0.9"))
    [('tacit.error', '2 %'), ('tacit.confidence', '0.9')]
    """
    words = [re.sub(r"\\(.)", r"\1", each) for each in re.findall(r"(?:\\.|[^\\\s])+", options)]
    for at, word in enumerate(words):
        before = words[at - 1] if at else ""
        written = word if before == "-c" else word[2:] if word[:2] in ("-c", "--") and word != "-c" else None
        if written is None and word != "-c":
            raise InvalidParameter("the options of a connection are settings\nhint: options='-c tacit.epsilon=0.5'")
        if written is not None:
            name, _, value = written.partition("=")
            yield name.replace("-", "_"), value
