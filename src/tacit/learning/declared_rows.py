"""Rows as scikit-learn's users have them, in arrays and frames: made a protected table to fit, and columns to predict.

An array does not declare public facts, and its use would not be charged. So `fit(X, y)` is taken only from an
estimator with both: `ranges` and `keys`, a `budget` and a `ledger`. From there on it is `fit` of a table. Messages
here never depend on a cell: only names, types, shapes and parameters decide.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

import tacit
from tacit.asking import Table
from tacit.errors import TacitError, did_you_mean
from tacit.ledger import Ledger, TryOut, open_ledger
from tacit.privacy import Loss

# Under this name a ledger keeps the budget of all rows that are fitted from arrays: one budget, also for clones.
NAME = "rows"
# Ledgers of tries, by declaration: a clone spends from the budget of its original.
_TRIED: dict[str, Ledger] = {}


class WrongRows(TacitError, ValueError):
    """Rows of a shape or kind that cannot be fitted or predicted; for scikit-learn it is a ValueError."""


class DeclaredArrays(Protocol):
    """An estimator's declarations for rows in arrays: public facts, the unit, a budget and a ledger."""

    ranges: Mapping[str, Any] | Sequence[Any] | None
    keys: Mapping[str, Sequence[Any]] | None
    unit: str | None
    budget: Loss | None
    ledger: Any


def protected_rows(
    told: DeclaredArrays, rows: Any, y: Any, target: str | None, *, has_target: bool = True
) -> tuple[Table, str]:
    """Return rows and target as a protected table, and the name of its target, if it has one."""
    name, y = type(told).__name__, y if has_target else None
    _refuse_model_selection(name)
    columns = columns_of(rows, whose=name)
    target = _target_name(y, columns, target) if has_target else ""
    if y is not None:
        columns[target] = _flat(y, columns)
    _refuse_untold(told, name, target)
    facts = _facts_declared(told, columns)
    frame = pa.table({column: _cells(values, facts.get(column, {})) for column, values in columns.items()})
    unit = tacit.ROW if told.unit is None else told.unit
    ledger = _ledger_of_try(told, facts) if isinstance(told.ledger, TryOut) else told.ledger
    return tacit.table(frame, unit=unit, budget=told.budget, name=NAME, ledger=ledger, columns=facts), target


def has_names(rows: Any) -> bool:
    """Whether the columns of rows have names: for scikit-learn an array's columns are unnamed."""
    names = _names_in_frame(rows)
    return names is not None and all(isinstance(name, str) for name in names)


def columns_of(rows: Any, *, whose: str) -> dict[str, Any]:
    """Return the columns of a frame, a dict of lists or an array of two dimensions by name: x0, x1 … of an array."""
    if hasattr(rows, "tocsr") or hasattr(rows, "tocoo"):
        raise WrongRows(
            "sparse rows are not supported: an empty cell is a value too\nhint: pass a dense array, rows.toarray()"
        )
    names = _names_in_frame(rows)
    if names is None:
        array = _two_dimensional(rows)
        found = {f"x{place}": array[:, place] for place in range(array.shape[1])}
    else:
        called = [name if isinstance(name, str) else f"x{place}" for place, name in enumerate(names)]
        found = {name: _of(rows, each) for name, each in zip(called, names, strict=True)}
        if len(found) != len(names):
            raise WrongRows("two columns have the same name\nhint: rename one of them")
    if not found:
        raise WrongRows(f"Found array with 0 feature(s) (shape=(n, 0)) while a minimum of 1 is required by {whose}.")
    return found


def rows_to_predict(rows: Any, names: Sequence[str], *, named: bool, whose: str) -> dict[str, Any]:
    """Return the columns of unprotected rows by a model's own names; refuse a wrong number of them, or other names."""
    if isinstance(rows, Table):
        raise WrongRows(
            "a protected table has no rows to predict for\nhint: Holdout(table).score(model, epsilon=...) scores "
            "a model on protected rows; predict is for rows that you may see"
        )
    if named and has_names(rows):
        found = [str(name) for name in _names_in_frame(rows) or ()]
        for name in names:
            if name not in found:
                close = did_you_mean(name, found)
                raise WrongRows(f"the rows lack the column '{name}', which the model was fitted with{close}")
        return {name: _of(rows, name) for name in names}
    columns = list(columns_of(rows, whose=whose).values())
    if len(columns) != len(names):
        raise WrongRows(
            f"X has {len(columns)} features, but {whose} is expecting {len(names)} features as input"
            "\nhint: one column for each feature, in the order of the fit; or a frame with their names"
        )
    return dict(zip(names, columns, strict=True))


def _names_in_frame(rows: Any) -> list[Any] | None:
    """Return the names of a frame's columns; None for other objects."""
    if isinstance(rows, Mapping):
        return list(rows)
    names = getattr(rows, "column_names", None)  # Arrow
    if names is None:
        names = getattr(rows, "columns", None)
    return None if names is None or callable(names) else list(names)


def _of(rows: Any, name: Any) -> Any:
    return rows.column(name) if isinstance(rows, pa.Table) else rows[name]


def _two_dimensional(rows: Any) -> Any:
    try:
        array = np.asarray(rows)
    except (TypeError, ValueError):
        raise WrongRows("rows must be a frame, a dict of lists or a two-dimensional array") from None
    if array.dtype.kind == "c":
        raise WrongRows("Complex data not supported\nhint: pass real numbers")
    if array.ndim != 2:
        raise WrongRows(
            f"Expected 2D array, got an array of {array.ndim} dimensions instead. Reshape your data: one row for each"
            " person or event, one column for each feature"
        )
    return array


def _target_name(y: Any, columns: Mapping[str, Any], target: str | None) -> str:
    if y is None:
        if target is None or target not in columns:
            raise WrongRows(
                "a fit requires y to be passed: Expected array-like (array or non-string sequence), got None"
                "\nhint: fit(X, y), or name a column of a frame: fit(rows, target='income')"
            )
        return target
    given = target or getattr(y, "name", None)
    name = given if isinstance(given, str) and given else "y"
    if name in columns:
        raise WrongRows(f"'{name}' is both a feature and the target\nhint: leave it out of X, or rename it")
    return name


def _flat(y: Any, columns: Mapping[str, Any]) -> Any:
    if hasattr(y, "columns"):  # a frame of one column
        names = list(y.columns)
        y = y[names[0]] if len(names) == 1 else y
    kind = getattr(getattr(y, "dtype", None), "kind", None)
    values = y if hasattr(y, "to_pylist") or hasattr(y, "to_list") else np.asarray(y)
    if kind == "c" or getattr(getattr(values, "dtype", None), "kind", None) == "c":
        raise WrongRows("Complex data not supported\nhint: pass real numbers")
    if getattr(values, "ndim", 1) == 2 and values.shape[1] == 1:
        _warn_of_column()
        values = values[:, 0]
    if getattr(values, "ndim", 1) != 1:
        raise WrongRows("y should be a 1d array: one value for each row\nhint: y.ravel()")
    lengths = {len(each) for each in (*columns.values(), values)}
    if len(lengths) > 1:
        raise WrongRows("X and y have inconsistent numbers of samples\nhint: one value of y for each row of X")
    return values


def _warn_of_column() -> None:
    """Warn as scikit-learn does, in its own class if it is installed."""
    import warnings

    try:
        from sklearn.exceptions import DataConversionWarning as Kind
    except ImportError:
        Kind = UserWarning  # noqa: N806 - a class
    warnings.warn("A column-vector y was passed when a 1d array was expected: y.ravel() is taken", Kind, stacklevel=6)


def _refuse_untold(told: DeclaredArrays, name: str, target: str) -> None:
    missing = []
    if told.ranges is None and told.keys is None:
        missing.append("the public facts of its columns")
    if told.budget is None:
        missing.append("a budget")
    if told.ledger is None:
        missing.append("a ledger to charge")
    if missing:
        raise WrongRows(
            f"{name} was given rows without {', '.join(missing)}; they are never read off the rows"
            f"\nhint: {name}(epsilon=1, ranges={{'age': (0, 120)}}, keys={{'{target or 'ward'}': [0, 1]}},"
            " budget=tacit.epsilon(3, delta=1e-6), ledger='study.db'), or ledger=tacit.TRYOUT for rows that are not"
            " secret; or declare a table: fit(tacit.table(...), target=...)"
        )


def _facts_declared(told: DeclaredArrays, columns: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the public facts of each column: its keys, its range, or None."""
    keys = dict(told.keys or {})
    one = told.ranges if told.ranges is not None and not isinstance(told.ranges, Mapping) else None
    ranges = dict(told.ranges) if isinstance(told.ranges, Mapping) else {}
    for name in (*keys, *ranges):
        if name not in columns:
            which = "keys" if name in keys else "ranges"
            raise WrongRows(f"{which} names '{name}', which is not a column{did_you_mean(str(name), columns)}")
    facts: dict[str, dict[str, Any]] = {}
    for name, values in columns.items():
        if name in keys:
            facts[name] = {"keys": list(keys[name])}
        elif name in ranges or (one is not None and name != told.unit and _may_be_numbers(values)):
            facts[name] = {"between": tuple(ranges.get(name, one))}  # type: ignore[arg-type]
    return facts


def _may_be_numbers(values: Any) -> bool:
    """Whether a column's type, and no cell of it, says that it may hold numbers."""
    kind = getattr(getattr(values, "dtype", None), "kind", None)
    return kind in "iufO" if isinstance(kind, str) else not pa.types.is_string(getattr(values, "type", pa.null()))


def _cells(values: Any, facts: Mapping[str, Any]) -> Any:
    """Return a column as Arrow reads it; objects are read as declared, NULL in a cell of another type."""
    if isinstance(values, pa.ChunkedArray | pa.Array):
        return values
    if hasattr(values, "to_arrow"):
        return values.to_arrow()
    array = np.asarray(values)
    if array.dtype.kind in "biuf":
        native = array.astype(array.dtype.newbyteorder("="))
        return pa.array(native.astype(np.float64) if array.dtype.kind == "f" else native)
    if array.dtype.kind == "M":
        return pa.array(array)
    cells = array.tolist()
    if array.dtype.kind == "U":
        return pa.array(cells, pa.string())
    listed = facts.get("keys")
    if "between" in facts or (listed and all(isinstance(key, int | float) for key in listed)):
        return pa.array([_float_in_cell(cell) for cell in cells], pa.float64())
    return pa.array([cell if isinstance(cell, str) else None for cell in cells], pa.string())


def _float_in_cell(cell: Any) -> float | None:
    if isinstance(cell, bool | int | float) or hasattr(cell, "__float__"):
        try:
            return float(cell)
        except (TypeError, ValueError, OverflowError):
            return None
    return None


def _ledger_of_try(told: DeclaredArrays, facts: Mapping[str, Any]) -> Ledger:
    """Return the ledger in memory of a declaration, so that clones share one budget during the process."""
    declared = repr((sorted(facts.items()), told.unit, told.budget))
    if declared not in _TRIED:
        _TRIED[declared] = open_ledger(":memory:")
    return _TRIED[declared]


def _refuse_model_selection(name: str) -> None:
    """Refuse a fit inside of cross-validation: it spends for every fold, and its scores of rows are not private."""
    frame = sys._getframe(1)
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).startswith("sklearn.model_selection"):
            raise WrongRows(
                f"a {name} is not fitted inside of scikit-learn's model selection: every fold would be charged, and the"
                " scores that choose would not be private"
                "\nhint: tacit.learning.tune(models, holdout, epsilon=...) picks one by a noisy choice;"
                " Holdout(table).score(model, epsilon=...) scores it"
            )
        frame = frame.f_back  # type: ignore[assignment]
