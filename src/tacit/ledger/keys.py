"""Keys: how a question, a fact and a request are found again in the ledger."""

from dataclasses import dataclass, replace

from tacit.errors import InvalidParameter
from tacit.ledger.chain import digest
from tacit.ledger.registry import RegisteredTable
from tacit.ledger.spelling import name_key

TEXT_MAX = 1000


@dataclass(frozen=True)
class Keys:
    """The keys by which a question is found again: as asked of a table, as asked of this version of it, and by one
    request's id.

    `own` identifies the question of one analyst: answers that others asked for do not count for it. Facts are found at
    every version of their table, and also after its rows have moved. An analyst goes by the name's key.
    """

    table: str
    asked: str
    question: str
    own: str
    request: str | None
    analyst: str | None
    parts: tuple[tuple[object, ...], tuple[str, str | None]]
    is_fact: bool = False

    def as_spelled(self, name: str) -> "Keys":
        """Return the keys that an older ledger kept for a spelling of the analyst's name."""
        about, (ledger, request_id) = self.parts
        request = None if request_id is None else digest("request", ledger, name, request_id)
        return replace(self, own=digest(*about, name), request=request)


def keys_of(
    table: RegisteredTable,
    *,
    question_key: str,
    request_id: str | None,
    analyst: str | None,
    ledger: str,
    is_fact: bool = False,
) -> Keys:
    """Return the names by which a question and one analyst's request are found again."""
    for name, text in (("question_key", question_key), ("request_id", request_id), ("analyst", analyst)):
        if text is None and name != "question_key":
            continue
        if not isinstance(text, str) or not 0 < len(text) <= TEXT_MAX:
            raise InvalidParameter(f"{name} must be a text of 1 to {TEXT_MAX} characters")
    kind = ("fact", table.id) if is_fact else ("question", table.id, table.version, table.source)
    about, who = (*kind, question_key), None if analyst is None else name_key(analyst)
    return Keys(
        table=table.id,
        asked=digest("asked", table.id, question_key),
        question=digest(*about),
        own=digest(*about, who),
        request=None if request_id is None else request_name(ledger, request_id=request_id, analyst=analyst),
        analyst=who,
        parts=(about, (ledger, request_id)),
        is_fact=is_fact,
    )


def request_name(ledger: str, *, request_id: str, analyst: str | None) -> str:
    """Return the name under which one analyst's request is found again."""
    return digest("request", ledger, None if analyst is None else name_key(analyst), request_id)
