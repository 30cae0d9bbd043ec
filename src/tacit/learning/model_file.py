"""A fitted model as a file of JSON, and back: noisy integers and public facts, and never code.

From rows a model holds only released numbers, so its file may be sent and published. A loaded model equals the saved
one. A file from a stranger can name no class and run no code: fields are read as the types of the model's own records,
and other values are refused.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import tacit
from tacit.errors import InvalidParameter
from tacit.files import read_small
from tacit.json_wire import tagged, untagged
from tacit.learning.additive import AdditiveClassifier, AdditiveRegressor
from tacit.learning.additive_model import AdditiveModel
from tacit.learning.clusters import ClusterState, KMeans
from tacit.learning.estimator import Estimator
from tacit.learning.linear import PCA, LinearRegression
from tacit.learning.linear_fit import LinearState
from tacit.learning.scorable import RowsUsed
from tacit.learning.synthetic.made_rows import MadeRows
from tacit.learning.synthetic.noisy_tables import RowsState
from tacit.ledger import Receipt
from tacit.privacy import ApproximateLoss
from tacit.query import Column

FORMAT = "tacit model 1"
BYTES_MAX = 1 << 28
KINDS: dict[str, type[Estimator[Any]]] = {
    "AdditiveClassifier": AdditiveClassifier,
    "AdditiveRegressor": AdditiveRegressor,
    "KMeans": KMeans,
    "LinearRegression": LinearRegression,
    "PCA": PCA,
}
# Parameters for rows in arrays are about the rows, and not about the model.
NOT_KEPT = ("ranges", "keys", "unit", "budget", "ledger")
NOT_A_MODEL = "the file is not a model that was saved with Tacit\nhint: model.save('model.json') writes one"


def model_text(model: Estimator[Any] | MadeRows) -> str:
    """Return a fitted model, or what made-up rows are made of, as JSON; `model_from` reads it."""
    kind = type(model).__name__
    if isinstance(model, MadeRows):
        record = {
            "format": FORMAT,
            "tacit": tacit.__version__,
            "kind": kind,
            "receipt": to_record(model.receipt_),
            "loss": to_record(model.loss_),
            "learned": model.learned_,
            "state": to_record(model.state_),
        }
        return _json(record)
    if kind not in KINDS:
        raise InvalidParameter(f"a {kind} is not saved as JSON\nhint: {', '.join(KINDS)} are; others may be pickled")
    record = {
        "format": FORMAT,
        "tacit": tacit.__version__,
        "kind": kind,
        "parameters": to_record({k: v for k, v in model.get_params().items() if k not in NOT_KEPT}),
        "receipt": to_record(getattr(model, "receipt_", None)),
        "fitted_on": to_record(getattr(model, "fitted_on_", None)),
        **{name: to_record(value) for name, value in _parts_of_model(model).items()},
    }
    return _json(record)


def _json(record: Mapping[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False) + "\n"


def model_from(text: str) -> Any:
    """Return the fitted model that a text of `model_text` holds; any other text is refused."""
    try:
        return _read_model(json.loads(text))
    except InvalidParameter:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, ArithmeticError, IndexError):
        raise InvalidParameter(NOT_A_MODEL) from None


def save(model: Estimator[Any] | MadeRows, path: str | Path) -> None:
    """Write a fitted model to a file of JSON."""
    text = model_text(model)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError:
        raise InvalidParameter(
            "the model cannot be written there\nhint: name a file in a folder that is yours"
        ) from None


def load(path: str | Path) -> Any:
    """Return the fitted model that was saved in a file.

    `tacit.learning.load("model.json").predict(rows)`
    """
    try:
        text = read_small(Path(path), bytes_max=BYTES_MAX)
    except OSError:
        raise InvalidParameter(
            "there is no such file of a model, or it cannot be read\nhint: load('model.json')"
        ) from None
    except ValueError:
        raise InvalidParameter(NOT_A_MODEL) from None
    return model_from(text)


def _parts_of_model(model: Any) -> dict[str, Any]:
    state, names = model._fitted(), {"names": hasattr(model, "feature_names_in_")}
    return {"model": state} | names if model._state == "model_" else {"state": state, "loss": model.loss_} | names


def _read_model(record: Mapping[str, Any]) -> Any:
    if record["format"] != FORMAT:
        raise InvalidParameter("this model was saved by another version of Tacit\nhint: fit it again; a repeat is free")
    if record["kind"] == MadeRows.__name__:
        return _read_rows(record)
    kind = KINDS[record["kind"]]
    parameters = untagged(record["parameters"])
    model: Any = kind(**{name: _tuples(value) for name, value in parameters.items() if name not in NOT_KEPT})
    if kind._state == "state_":
        model.loss_ = from_record(ApproximateLoss, record["loss"])
        state = from_record(ClusterState if kind is KMeans else LinearState, record["state"])
        if isinstance(state, ClusterState):
            _refuse_other_sums(state)
        model._set_state(state)
    else:
        model._set_state(from_record(AdditiveModel, record["model"]))
        _refuse_other_shapes(model.model_)
    names = model._fitted().names
    model._name_features(names, dict.fromkeys(names) if record["names"] else None)
    if record["receipt"] is not None:
        model.receipt_ = from_record(Receipt, record["receipt"])
    if record["fitted_on"] is not None:
        model.fitted_on_ = from_record(RowsUsed, record["fitted_on"])
    return model


def _read_rows(record: Mapping[str, Any]) -> MadeRows:
    """Return made-up rows; refuse numbers that do not fit the columns, which would fail later in other words."""
    state = from_record(RowsState, record["state"])
    receipt = None if record["receipt"] is None else from_record(Receipt, record["receipt"])
    rows = MadeRows(state, from_record(ApproximateLoss, record["loss"]), receipt, str(record["learned"]))
    design = state.design
    sizes = [column.cells for column in design.coded_columns]
    if len(state.noisy["bins"]) != design.singles or any(
        len(of_cells) != cells or of_cells.min() < 0 or of_cells.max() >= cells
        for cells, of_cells in zip(sizes, state.bins, strict=True)
    ):
        raise InvalidParameter(NOT_A_MODEL)
    rows.rows(0)  # fits the field
    return rows


def _tuples(value: Any) -> Any:
    """Return pairs of names as they were given: lists of JSON are tuples in parameters."""
    return tuple(_tuples(each) for each in value) if isinstance(value, list) else value


def _refuse_other_shapes(model: AdditiveModel) -> None:
    """Refuse a model with bins or effects that do not fit its features; predicting would fail in other words."""
    scores = len(model.shapes.intercept)
    cells = [feature.cells for feature in model.features]
    cells += [cells[first] * cells[second] for first, second in model.pairs]
    for shape, size in zip(model.shapes.shapes, cells, strict=True):
        bins = len(shape.effects[0])
        lengths = {len(each) for each in (*shape.effects, *shape.deviations)}
        if len(shape.bins) != size or not 0 <= min(shape.bins) <= max(shape.bins) < bins or lengths != {bins}:
            raise InvalidParameter(NOT_A_MODEL)
        if not len(shape.effects) == len(shape.deviations) == len(shape.signals) == scores:
            raise InvalidParameter(NOT_A_MODEL)


def _refuse_other_sums(state: ClusterState) -> None:
    """Refuse clusters whose sums do not fit their centres and columns."""
    centres, columns = state.noisy["centres"], len(state.design.numbers)
    if {len(each) for each in centres} != {columns} or len(state.noisy["sums"]) != len(centres) * (columns + 2):
        raise InvalidParameter(NOT_A_MODEL)


# --- records of dataclasses ---


def to_record(value: Any) -> Any:
    """Return a value as JSON has it: a dataclass by the names of its fields, a column by its name."""
    if isinstance(value, Column):
        return {"column": value.name}
    if is_dataclass(value):
        return {each.name: to_record(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple | list):
        return [to_record(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): to_record(each) for name, each in value.items()}
    return tagged(value)


def from_record(kind: Any, record: Any) -> Any:
    """Return the value of a type that a record holds; a record of anything else raises ValueError."""
    if kind is Any:
        return untagged(record)
    if is_dataclass(kind) and isinstance(kind, type):
        hints = get_type_hints(kind)
        named = {each.name for each in fields(kind)}
        if not isinstance(record, dict) or set(record) != named:
            raise ValueError(kind.__name__)
        return kind(**{name: from_record(hints[name], each) for name, each in record.items()})
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (tuple, list):
        return _sequence(origin, arguments, record)
    if origin is dict:
        return {str(name): from_record(arguments[1], each) for name, each in dict(record).items()}
    if origin in (Union, UnionType):
        return _one_of(arguments, record)
    value = untagged(record)
    known = arguments if origin is Literal else None
    if (value not in known) if known is not None else not _is(value, kind):
        raise ValueError(str(kind))
    return value


def _sequence(origin: Any, arguments: tuple[Any, ...], record: Any) -> Any:
    if not isinstance(record, list):
        raise TypeError(record)
    if origin is list or arguments[1:] == (Ellipsis,):
        return origin(from_record(arguments[0], each) for each in record)
    return tuple(from_record(each, part) for each, part in zip(arguments, record, strict=True))


def _one_of(kinds: tuple[Any, ...], record: Any) -> Any:
    """Return the matching type of a record: None, a column, a dataclass, a tuple, or a plain value."""
    if record is None and NoneType in kinds:
        return None
    if Column in kinds and [*dict(record)] == ["column"]:
        return Column(from_record(str, dict(record)["column"]))
    for kind in kinds:
        is_named = isinstance(record, dict) and is_dataclass(kind) and {each.name for each in fields(kind)} == {*record}
        if is_named or get_origin(kind) in (tuple, list):
            return from_record(kind, record)
    value = untagged(record)
    if not any(_is(value, kind) for kind in kinds if isinstance(kind, type)):
        raise ValueError(str(kinds))
    return value


def _is(value: Any, kind: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)
