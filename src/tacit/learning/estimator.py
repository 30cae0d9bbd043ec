"""The estimator interface of scikit-learn, without importing it: parameters by name, clones, tags and a short text.

scikit-learn is imported only to give it an estimator's tags, so a model is fitted, read and scored without it.
Inheriting from its classes would load it with ours, and classes that are made anew with them could not be pickled.
"""

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Self

import numpy as np

from tacit.asking import Table
from tacit.errors import InvalidParameter, did_you_mean
from tacit.learning.declared_rows import DeclaredArrays, has_names, protected_rows, rows_to_predict
from tacit.ledger import Ledger
from tacit.privacy import Loss


class Estimator:
    """Parameters are the arguments of `__init__`, kept as they were given and read when a model is fitted."""

    _kind = "classifier"
    ranges: Mapping[str, Any] | Sequence[Any] | None
    keys: Mapping[str, Sequence[Any]] | None
    unit: str | None
    budget: Loss | None
    ledger: Any

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002, FBT001 - scikit-learn passes it
        """Return the parameters by name."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, and return the estimator."""
        for name, value in params.items():
            if name not in self._names():
                raise InvalidParameter(
                    f"{type(self).__name__} has no parameter '{name}'{did_you_mean(name, self._names())}"
                )
            setattr(self, name, value)
        return self

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
        return sorted(name for name in inspect.signature(cls).parameters)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether it was fitted: then it has attributes that end in an underscore."""
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn should know: missing values are allowed, and no two fits are the same."""
        from sklearn.utils import ClassifierTags, InputTags, RegressorTags, Tags, TargetTags

        classifies = self._kind == "classifier"
        return Tags(
            estimator_type=self._kind,
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(poor_score=True) if classifies else None,
            regressor_tags=None if classifies else RegressorTags(poor_score=True),
            input_tags=InputTags(allow_nan=True, string=True, categorical=True),
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


def not_fitted(words: str) -> InvalidParameter:
    """Return the refusal of an unfitted model: scikit-learn's own too, if it is installed."""
    return _not_fitted_class()(words)


@cache
def _not_fitted_class() -> type[InvalidParameter]:
    try:
        from sklearn.exceptions import NotFittedError
    except ImportError:
        return InvalidParameter
    return type("NotFitted", (InvalidParameter, NotFittedError), {"__module__": __name__})


def table_of(model: DeclaredArrays, rows: Any, y: Any, target: str | None) -> tuple[Table, str]:
    """Return the table to fit and its target: as given, or made of an array or a frame that was declared."""
    if not isinstance(rows, Table):
        return protected_rows(model, rows, y, target)
    if y is not None or target is None:
        raise InvalidParameter("name the column to predict\nhint: fit(table, target='income')")
    return rows, target


def know_features(model: Any, names: Sequence[str], rows: Any) -> None:
    """Keep the attributes that scikit-learn expects of a fitted estimator; an array's columns are unnamed."""
    model.n_features_in_ = len(names)
    vars(model).pop("feature_names_in_", None)
    if isinstance(rows, Table) or has_names(rows):
        model.feature_names_in_ = np.array(names, dtype=object)


def rows_for(model: Any, names: Sequence[str], rows: Any) -> Any:
    """Return rows to predict for with a model's own columns."""
    named = hasattr(model, "feature_names_in_")
    return rows_to_predict(rows, names, named=named, whose=type(model).__name__)
