"""Others: the facts that a question for shown groups and all others is planned from.

Shown groups are listed, or were found by a fact that is public and paid for. The question is then one with listed
groups (`query/compound.py`), and its others have noise of their own (docs/proofs/private-keys.md).
"""

from tacit.errors import QueryRefused
from tacit.plan.bounds.facts import Fact, Facts
from tacit.plan.bounds.found_keys import KeySearch, grouping_in, known_keys
from tacit.plan.groups import of_last_few, refuse_private_keys
from tacit.plan.plan import Spend
from tacit.query import Query, with_listed_others
from tacit.tables import Declaration


def with_others(query: Query, declaration: Declaration, spend: Spend, facts: Facts) -> tuple[Query, tuple[Fact, ...]]:
    """Return a question for shown groups and others as one with listed groups, and the facts that found the groups."""
    grouping = grouping_in(query, declaration, spend, facts)
    shown, rounds = grouping.public_keys, tuple[Fact, ...]()
    if shown is None:
        if spend.delta_keys == 0:
            refuse_private_keys(query)
        rounds = tuple(KeySearch(grouping).at_hand(facts).rounds(facts))
        if not rounds:
            raise QueryRefused(
                "which groups there are is not known yet, so that others are not either"
                "\nhint: list them (keys=[...]), or let them be learned first: leave out learn=False"
            )
        shown = known_keys(rounds)
    return _listed(query, shown), rounds


_listed = of_last_few(with_listed_others)
