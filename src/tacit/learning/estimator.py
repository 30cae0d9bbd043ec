"""What every model does: plan, fit and be saved, by the interface of scikit-learn, without importing it.

scikit-learn is imported only to give it an estimator's tags, so a model is fitted, read and scored without it.
Inheriting from its classes would load it with ours, and classes that are made anew with them could not be pickled.
"""

import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import numpy as np

from tacit.asking import Learn, Table
from tacit.errors import InvalidParameter, QueryRefused, did_you_mean, printable
from tacit.learning.declared_rows import has_names, protected_rows, rows_to_predict
from tacit.learning.rounds import train
from tacit.learning.scorable import rows_used
from tacit.learning.undeclared import FitPlan, Kind, KnownColumns, known_columns, one_call
from tacit.ledger import Ledger
from tacit.numbers import Number
from tacit.privacy import Loss
from tacit.query import Col


class Named(Protocol):
    """What a model follows from: released numbers and public facts, with the names of its features."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the features."""


State = TypeVar("State", bound=Named)


@dataclass(eq=False, repr=False, kw_only=True)
class Estimator(Generic[State]):
    """Parameters are the arguments of `__init__`, kept as they were given and read when a model is fitted.

    `epsilon` and `delta` are the cost of a fit. Without a delta it uses its share of the delta that the budget keeps
    for noise.
    """

    epsilon: Number = 1
    delta: Number | None = None
    ranges: Mapping[str, Any] | Sequence[Any] | None = None
    keys: Mapping[str, Sequence[Any]] | None = None
    unit: str | None = None
    budget: Loss | None = None
    ledger: Any = None

    _kind: ClassVar[Kind] = "classifier"
    _version: ClassVar[str]  # changed whenever the arithmetic is: a stored model is found by it
    _state: ClassVar[str]  # the attribute from which all others follow
    _codec: ClassVar[tuple[Callable[[Any], str], Callable[[str], Any]]] = (json.dumps, json.loads)  # of what is kept

    def plan(
        self,
        table: Table,
        *,
        target: str | None = None,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
    ) -> FitPlan:
        """Return the columns and the cost of a fit; the plan is free, reads no row, and can be printed.

        Undeclared ranges and keys are learned first, for a part of epsilon; with `learn=False` refused.
        """
        if not isinstance(table, Table):
            raise InvalidParameter(
                f"a model is learned from a protected table, not from a {type(table).__name__}"
                "\nhint: table = tacit.table(rows, unit=..., budget=tacit.epsilon(1, delta=1e-6), columns={...})"
            )
        if self._has_target and not isinstance(target, str):
            raise InvalidParameter("target must name the column to predict\nhint: fit(table, target='income')")
        if not self._has_target and target:
            raise InvalidParameter(
                f"{type(self).__name__} does not have a target\nhint: fit(table, features=['age', 'hours'])"
            )
        if table.frame.keys:
            raise QueryRefused("a model is of the whole table\nhint: call fit before group_by, with where='age >= 18'")
        known = known_columns(table, features, target, self.epsilon, kind=self._kind, learn=learn, analyst=analyst)
        return self._planned(known.table if where is None else known.table.where(where), target or "", known)

    def fit(
        self,
        rows: Any,
        y: Any = None,
        *,
        target: str | None = None,
        features: Iterable[str] | None = None,
        where: str | Col | None = None,
        learn: Learn = None,
        analyst: str | None = None,
        request_id: str | None = None,
    ) -> Self:
        """Learn from a protected table, charged once before a row is read; the same fit again is free and the same.

        Undeclared ranges and keys are learned first, for a part of epsilon (`learned_` lists them); with
        `learn=False` such columns are refused.
        Or `fit(X, y)` of an array or a frame, with the estimator's own declarations: `ranges`, `keys`, `budget`,
        `ledger`. Every row is then a unit, unless `unit` names a column; every such fit is charged.
        """
        protected, target = self._table_of(rows, y, target)
        learn = learn if isinstance(rows, Table) else False  # of arrays, everything is declared

        def planned() -> FitPlan:
            return self.plan(protected, target=target, features=features, where=where, learn=learn, analyst=analyst)

        with one_call(planned, analyst) as plan:
            encode, decode = self._codec
            paid = train(
                plan.table,
                plan.coded,
                plan.events,
                asked=plan.asked,
                key=repr((self._version, plan.recipe)),
                words=plan.words,
                steps=plan.learn,
                encode=encode,
                decode=decode,
                analyst=analyst,
                request_id=request_id,
            )
        self.receipt_ = paid.receipt
        self.loss_ = plan.loss
        self.learned_: str = plan.known.words  # the learned facts of undeclared columns
        self._certify = partial(plan.table.session.ledger.certificate, paid.receipt.number)
        self._set_state(plan.model(paid.value))
        self._name_features(plan.names, rows)
        if self._has_target:
            self.fitted_on_ = rows_used(plan.table)  # so that no score on the same people is taken for a fresh one
        return self

    def _planned(self, table: Table, target: str, known: KnownColumns) -> FitPlan:
        """Return the plan for a table's filtered rows, with the known facts of its columns."""
        raise NotImplementedError

    def _set_state(self, state: State) -> None:
        """Set the attributes that follow from released numbers."""
        setattr(self, self._state, state)

    @property
    def _has_target(self) -> bool:
        return self._kind != "transformer"

    def _table_of(self, rows: Any, y: Any, target: str | None) -> tuple[Table, str | None]:
        """Return the table to fit and its target: as given, or made of an array or a frame that was declared."""
        if not isinstance(rows, Table):
            return protected_rows(self, rows, y, target, has_target=self._has_target)
        if self._has_target and (y is not None or target is None):
            raise InvalidParameter("name the column to predict\nhint: fit(table, target='income')")
        return rows, target if y is None else "y"

    def _name_features(self, names: Sequence[str], rows: Any) -> None:
        """Set the attributes that scikit-learn expects of a fitted estimator; an array's columns are unnamed."""
        self.n_features_in_: int = len(names)
        vars(self).pop("feature_names_in_", None)
        if isinstance(rows, Table) or has_names(rows):
            self.feature_names_in_ = np.array(names, dtype=object)

    def _fitted(self) -> State:
        """Return what the model follows from; refuse one that is not fitted."""
        found: State | None = getattr(self, self._state, None)
        if found is None:
            raise _not_fitted()("this model is not fitted yet\nhint: call fit(table, target='income') first")
        return found

    def _columns_of(self, rows: Any) -> dict[str, Any]:
        """Return the columns of unprotected rows to predict for, by the model's own names."""
        names = self._fitted().names
        return rows_to_predict(rows, names, named=hasattr(self, "feature_names_in_"), whose=type(self).__name__)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001 - scikit-learn passes it
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        for name, value in params.items():
            if name not in self._names():
                raise InvalidParameter(
                    f"{type(self).__name__} has no parameter '{name}'{did_you_mean(name, self._names())}"
                )
            setattr(self, name, value)
        return self

    def certificate(self) -> Mapping[str, Any]:
        """Return the ledger's signed certificate of the fit; a model that was read from a file has none."""
        self._fitted()
        if not hasattr(self, "_certify"):
            raise InvalidParameter(
                "this model was read from a file and cannot reach its ledger to sign\nhint: tacit certificate "
                f"{self.receipt_.number}, on the machine with the ledger"
            )
        return self._certify()

    def card(self) -> str:
        """Return a card of the model as Markdown: its columns, its parameters, its cost, and where that is recorded."""
        names, loss, receipt = self._fitted().names, getattr(self, "loss_", None), getattr(self, "receipt_", None)
        lines = [f"# {type(self).__name__}", f"- columns: {', '.join(names)}", f"- parameters: `{self!r}`"]
        if loss is not None:
            lines.append(f"- cost: epsilon {float(loss.epsilon):.2g}, delta {float(loss.delta):.2g}")
        if receipt is not None:
            lines.append(f"- record: entry {receipt.number} of ledger {receipt.ledger}, {receipt.time}")
        if getattr(self, "learned_", ""):
            lines.append(f"- learned facts: {self.learned_}")
        lines.append("- made only of noisy integers and public facts: it may be published, and using it is free")
        return printable("\n".join(lines) + "\n", keeping="\n")

    def save(self, path: Any) -> None:
        """Write the fitted model to a file of JSON, made of noisy integers and public facts; `load` reads it."""
        from tacit.learning.model_file import save

        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        """Return what is saved: parameters, noisy numbers and public facts; never a table or a ledger."""
        kept = {name: value for name, value in vars(self).items() if name != "_certify"}
        return kept | ({"ledger": None} if isinstance(kept.get("ledger"), Ledger) else {})

    @classmethod
    def _names(cls) -> list[str]:
        return sorted(inspect.signature(cls).parameters)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it was fitted: then it has attributes that end in an underscore."""
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: missing values are allowed, and no two fits are the same."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags, TransformerTags

        kind, takes_texts = self._kind, self._has_target
        return Tags(
            estimator_type=None if kind == "transformer" else kind,
            target_tags=TargetTags(required=self._has_target),
            transformer_tags=TransformerTags() if kind == "transformer" else None,
            classifier_tags=ClassifierTags(poor_score=True) if kind == "classifier" else None,
            regressor_tags=RegressorTags(poor_score=True) if kind == "regressor" else None,
            input_tags=InputTags(allow_nan=True, string=takes_texts, categorical=takes_texts),
            non_deterministic=True,  # the noise is never the same twice
        )

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        given = [
            f"{name}={getattr(self, name)!r}"
            for name in usual
            if getattr(self, name) is not usual[name].default and repr(getattr(self, name)) != repr(usual[name].default)
        ]
        return f"{type(self).__name__}({', '.join(given)})"


@cache
def _not_fitted() -> type[InvalidParameter]:
    """Return the error of an unfitted model: scikit-learn's own too, if it is installed."""
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InvalidParameter
    return type("NotFitted", (InvalidParameter, NotFittedError), {"__module__": __name__})
