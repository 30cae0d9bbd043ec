"""What scikit-learn expects of an estimator, without importing it: parameters by name, clones, tags and a short text.

scikit-learn is imported only where it asks for an estimator's tags, so a model is fitted, read and scored without it.
Inheriting from its classes would load it with ours, and classes that are made anew with them could not be pickled.
"""

import inspect
from typing import Any, Self

from tacit.errors import InvalidParameter, did_you_mean


class Estimator:
    """Parameters are the arguments of `__init__`, kept as they were given and read when a model is fitted."""

    _kind = "classifier"

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
            if getattr(self, name) is not usual[name].default and getattr(self, name) != usual[name].default
        ]
        return f"{type(self).__name__}({', '.join(given)})"
