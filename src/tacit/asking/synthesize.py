"""`table.synthesize`: made-up rows of a protected table, as a verb that is called, and planned for free.

The rows are made in the room `learning`, which the core does without: it is loaded when rows are asked for.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tacit.asking.learned import Learn
from tacit.numbers import Number

if TYPE_CHECKING:
    from tacit.asking.protected_table import Table


@dataclass(frozen=True, repr=False)
class Synthesis:
    """Make rows with `visits.synthesize(epsilon=1)`; `visits.synthesize.plan(epsilon=1)` is free and reads no row."""

    table: "Table"

    def __call__(
        self,
        epsilon: Number = 1,
        delta: Number | None = None,
        *,
        columns: Iterable[str] | Mapping[str, Any] | None = None,
        target: str | None = None,
        rules: Iterable[str] = (),
        once: Sequence[str] | None = None,
        order: str | None = None,
        learn: Learn = None,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Any:
        """Charge for made-up rows and return them: `to_pandas()`, `rows(10_000)`, `crosstab("age", "ward")`.

        `columns` are all but the unit's if they are not named; a dict gives dates and times their public range, as in
        {"day": ("2026-01-01", "2026-12-31"), "ward": None}. Pairs with `target` count four times. Made-up rows keep the
        `rules`, such as ["discharged >= admitted"]. With `once`, the columns that a person has once (or []), people get
        several rows, in the `order` of a column. The same call again is free and gives the same tables. Undeclared
        ranges and keys are learned first.
        """
        from tacit.learning import MadeRows

        plan = partial(
            MadeRows.plan_of,
            self.table,
            epsilon,
            delta,
            columns=columns,
            target=target,
            rules=rules,
            once=once,
            order=order,
            learn=learn,
            analyst=analyst,
        )
        return MadeRows.paid_for(plan, analyst=analyst, request_id=request_id)

    def plan(
        self,
        epsilon: Number = 1,
        delta: Number | None = None,
        *,
        columns: Iterable[str] | Mapping[str, Any] | None = None,
        target: str | None = None,
        rules: Iterable[str] = (),
        once: Sequence[str] | None = None,
        order: str | None = None,
        learn: Learn = None,
        analyst: str | None = None,
    ) -> Any:
        """Return what the rows would be made of, their noise and their cost: free, and no row is read."""
        from tacit.learning import MadeRows

        return MadeRows.plan_of(
            self.table,
            epsilon,
            delta,
            columns=columns,
            target=target,
            rules=rules,
            once=once,
            order=order,
            learn=learn,
            analyst=analyst,
        )

    def __repr__(self) -> str:
        return "synthesize(epsilon=1, columns=None, target=None): made-up rows; .plan(epsilon=1) is free"
