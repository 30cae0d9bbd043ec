"""`train`: a module learned from protected rows by noisy sums over samples of the people.

The noise is solved for: epsilon comes first. The whole run is charged before a row is read, without a refund for
stopping early. The caller's module stays as it is.
"""

import hashlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from math import log, sqrt
from pathlib import Path
from typing import Any

import tacit
from tacit.accounting import NoiseLoss
from tacit.asking import Payment, Table, sampled_noise_for
from tacit.errors import InvalidParameter, QueryRefused
from tacit.learning.declared_rows import NAME
from tacit.learning.deep.checkpoint import KeptRun
from tacit.learning.deep.gradients import Gradients, gradients_for, working_copy
from tacit.learning.deep.people import places_of_units, rows_as_tensors
from tacit.learning.deep.sampling import CodedPeople, SampledRounds, Source, Tensors
from tacit.learning.deep.whole import BOUND
from tacit.learning.features import Feature, class_target, features_of, target_of
from tacit.ledger import Receipt
from tacit.numbers import Number, decimal_meaning, show, whole
from tacit.plan import CodedPlan
from tacit.privacy import Loss, SubsampledGaussian

# Rates are multiples of 2^-RATE_BITS, so that a person's coin is exact.
RATE_BITS = 32
AT_ONCE = 256
SEGMENTS = 20
LEARNING_RATE = 1e-3


@dataclass(frozen=True, repr=False)
class Trained:
    """A trained module, the ledger's receipt for it, and its cost."""

    module: Any
    receipt: Receipt
    loss: NoiseLoss
    event: SubsampledGaussian
    rounds: int
    _certify: Callable[[], Mapping[str, Any]]

    def certificate(self) -> Mapping[str, Any]:
        """Return the ledger's signed certificate of the run."""
        return self._certify()

    def __repr__(self) -> str:
        noise = float(self.event.sigma) / BOUND
        return f"<{type(self.module).__name__} after {self.rounds} rounds, noise {noise:.3g} of the clip, {self.loss}>"


@dataclass(frozen=True)
class RunSettings:
    """The public choices of a run."""

    rate: Fraction
    rounds: int
    rows: int
    clip: float
    at_once: int
    device: str


def train(
    module: Any,
    rows: Any,
    loss: Callable[[Any, Any], Any],
    *,
    epsilon: Number,
    epochs: Number,
    delta: Number | None = None,
    rate: Number = 1 / 64,
    clip: float = 1.0,
    optimizer: Callable[[Iterable[Any]], Any] | None = None,
    schedule: Callable[[float], float] | None = None,
    target: str | None = None,
    features: Iterable[str] | None = None,
    unit: Sequence[Any] | None = None,
    budget: Loss | None = None,
    ledger: Any = None,
    rows_per_person: int = 1,
    at_once: int = AT_ONCE,
    device: str = "cpu",
    checkpoint: str | Path | None = None,
    on_round: Callable[[int, Any], object] | None = None,
    analyst: str | None = None,
) -> Trained:
    """Train a copy of a module on protected rows, charged once before a row is read; return it with its receipt.

    `rows` is a protected table, with its `target`, or a pair of tensors (inputs, targets) with a `budget`, a `ledger`
    and the `unit` of each row; without it each row is a person. `loss(outputs, targets)` is called for one row at a
    time. A round takes each person with chance `rate`, clips the mean gradient of the person's rows to the length
    `clip`, and adds noise; `epochs` is how often a person is taken on average. `optimizer` makes an optimizer of the
    parameters, by default Adam, and `schedule` a factor for its learning rate from the part of the run that is over.
    Only parameters that have requires_grad are trained. With a `checkpoint`, a path, a run that was stopped goes on
    where it was, without a second charge. `on_round` is given each round's number and the module.
    """
    _require_torch()
    settings = _settings(rate, epochs, rows_per_person, clip, at_once, device)
    table, source, like = _table_and_people(rows, target, features, unit, budget, ledger, settings)
    model = working_copy(module).to(device).train()
    gradients = gradients_for(model, loss, settings.clip, like.to(device), settings.at_once)
    session = replace(
        table.session, source_mark=""
    )  # the run's id is in its key, and a frame is a new source each time
    (count, event), asked = sampled_noise_for(
        session, epsilon, delta, rate=settings.rate, rounds=settings.rounds, step=BOUND
    )
    recipe = _recipe(module, source, settings, event)
    made = optimizer or (lambda parameters: _torch().optim.Adam(parameters, lr=LEARNING_RATE))
    optimising = made([each for each in model.parameters() if each.requires_grad])
    kept = KeptRun.of(None if checkpoint is None else Path(checkpoint), recipe, model, optimising)
    words = f"a {type(module).__name__} with {sum(gradients.sizes):,} parameters, {settings.rounds} rounds"
    payment = Payment((count, event), f"net {recipe} {kept.run}", asked=asked, loss=asked, analyst=analyst, words=words)
    rounds = SampledRounds(session, source, settings.rows, device)
    begun = rounds.begin(payment, count)
    expected = max(float(settings.rate) * begun.noisy_people, 1.0)
    steps = _Steps(model, gradients, optimising, settings, event, expected, schedule, on_round)
    with session.failing_alike(steps):
        steps.run(rounds, begun.receipt.charge, kept.save, asked, shown=session.hold is None)
    certify = partial(session.ledger.certificate, begun.receipt.number)
    return Trained(model.train(module.training), begun.receipt, asked, event, settings.rounds, certify)


class _Steps:
    """The steps of a run: post-processing of noisy sums."""

    def __init__(
        self,
        model: Any,
        gradients: Gradients,
        optimising: Any,
        settings: RunSettings,
        event: SubsampledGaussian,
        expected: float,
        schedule: Callable[[float], float] | None,
        on_round: Callable[[int, Any], object] | None,
    ) -> None:
        self.model, self.gradients, self.optimising, self.settings = model, gradients, optimising, settings
        self.event, self.schedule, self.on_round = event, schedule, on_round
        self.unit = settings.clip / BOUND / expected
        self.rates = [group["lr"] for group in optimising.param_groups]
        self.is_released = False

    def run(
        self,
        rounds: SampledRounds,
        charge: int,
        save: Callable[[int], None],
        asked: NoiseLoss,
        *,
        shown: bool,
    ) -> None:
        """Run the rounds that were not begun before."""
        last = self.settings.rounds
        with _progress(last, float(asked.epsilon), float(asked.delta), shown=shown) as tick:
            first = rounds.begun(charge)
            tick(first)
            while first < last:
                end = min(last, first + -(-last // SEGMENTS))
                rounds.claim(charge, first, end)
                for at in range(first, end):
                    self._step(at, rounds.released(self.gradients, self.event, BOUND))
                    tick(at + 1)
                save(end)
                first = end
        self.is_released = True

    def _step(self, at: int, noisy: Any) -> None:
        torch = _torch()
        found = torch.from_numpy(noisy * self.unit)
        start = 0
        for parameter in (each for each in self.model.parameters() if each.requires_grad):
            size = parameter.numel()
            parameter.grad = found[start : start + size].reshape(parameter.shape).to(parameter)
            start += size
        if self.schedule is not None:
            for group, rate in zip(self.optimising.param_groups, self.rates, strict=True):
                group["lr"] = rate * self.schedule(at / self.settings.rounds)
        self.optimising.step()
        self.optimising.zero_grad(set_to_none=True)
        if self.on_round is not None:
            self.on_round(at + 1, self.model)


# ---- before anything is charged --------------------------------------------------------------------------------------


def columns(table: Table, *, target: str, features: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the names of a module's inputs for a protected table: free, and no row is read.

    A ranged number is its place in its range, from 0 to 1, and whether it is missing; a list is 0 or 1 for each value.
    """
    found: list[str] = []
    for each in features_of(table, target, features):
        if each.ordered:
            found += [each.name, f"{each.name} is missing"]
        else:
            found += [f"{each.name} = {value}" for value in each.column.listed]
    return tuple(found)


def _settings(rate: Number, epochs: Number, rows: int, clip: float, at_once: int, device: str) -> RunSettings:
    share = decimal_meaning(rate, name="rate")
    if not Fraction(1, 1 << RATE_BITS) <= share <= 1:
        raise InvalidParameter(f"rate must be above 0 and at most 1, not {show(share)}\nhint: rate=1/64")
    share = Fraction(int(share * (1 << RATE_BITS)), 1 << RATE_BITS)
    times = decimal_meaning(epochs, name="epochs")
    if times <= 0:
        raise InvalidParameter("epochs must be above 0\nhint: epochs=10")
    if not (isinstance(clip, int | float) and 0 < clip < float("inf")):
        raise InvalidParameter("clip must be above 0: the length that a person's gradient is cut to\nhint: clip=1.0")
    rounds = max(1, round(times / share))
    return RunSettings(
        share, rounds, whole(rows, name="rows_per_person"), float(clip), whole(at_once, name="at_once"), str(device)
    )


def _table_and_people(
    rows: Any,
    target: str | None,
    features: Iterable[str] | None,
    unit: Any,
    budget: Any,
    ledger: Any,
    settings: RunSettings,
) -> tuple[Table, Source, Any]:
    """Return the protected table, how its rows become people, and made-up people of the same shape; reads no row."""
    if isinstance(rows, Table):
        if unit is not None or budget is not None or ledger is not None:
            raise InvalidParameter("a protected table has its own unit, budget and ledger\nhint: leave these out")
        if target is None:
            raise InvalidParameter("target must name the column to predict\nhint: target='income'")
        if rows.frame.keys:
            raise QueryRefused("a model is of the whole table\nhint: call train before group_by")
        source = _coded(rows, target, features_of(rows, target, features))
        return rows, source, _like_of_table(source, settings.rows)
    inputs, targets = rows_as_tensors(rows)
    if budget is None or ledger is None:
        raise InvalidParameter(
            "tensors need a budget and a ledger to charge\nhint: budget=tacit.epsilon(3, delta=1e-6),"
            " ledger='study.db', or ledger=tacit.TRYOUT for rows that are not secret"
        )
    import pyarrow as pa

    places, people = places_of_units(unit, len(inputs))
    frame = pa.table({"person": pa.array(places)})
    table = tacit.table(frame, unit=tacit.ROW if unit is None else "person", budget=budget, name=NAME, ledger=ledger)
    return table, Tensors(inputs, targets, places, people), _Like(inputs[:0], targets[:0], settings.rows)


def _coded(table: Table, target: str, found: tuple[Feature, ...]) -> CodedPeople:
    facts = table.frame.declaration.columns.get(target)
    kind = "number" if facts is not None and facts.keys is None and facts.type != "bool" else "classes"
    column, classes, number = target_of(table, target, kind)
    unit = table.session.declaration.unit_column
    values = () if number is None else (number,)
    plan = CodedPlan(
        unit, table.frame.where, (*(each.column for each in found), column), values, is_by_unit=unit is not None
    )
    of_cells = class_target(column, classes, len(found)).classes if number is None else ()
    return CodedPeople(plan, found, of_cells, 0 if number is None else number.height)


class _Like:
    """Empty people of a shape."""

    def __init__(self, inputs: Any, targets: Any, rows: int) -> None:
        self.inputs, self.targets, self.rows = inputs, targets, rows

    def to(self, device: str) -> Any:
        import numpy as np

        from tacit.learning.deep.people import people_of

        return people_of(self.inputs, self.targets, np.zeros(0, dtype=np.int64), 0, self.rows, device)


def _like_of_table(source: CodedPeople, rows: int) -> _Like:
    torch = _torch()
    width = sum(2 if each.ordered else len(each.column.listed) for each in source.features)
    targets = torch.zeros(0, dtype=torch.int64 if source.classes else torch.float32)
    return _Like(torch.zeros(0, width), targets, rows)


def _recipe(module: Any, source: Source, settings: RunSettings, event: SubsampledGaussian) -> str:
    """Return a digest of the public choices of a run, of its plan and of the shapes of its parameters."""
    shapes = [(name, tuple(each.shape), each.dtype, each.requires_grad) for name, each in module.named_parameters()]
    plan = getattr(source, "plan", None)
    return hashlib.sha256(repr((settings, event, plan, type(module).__qualname__, shapes)).encode()).hexdigest()


@contextmanager
def _progress(rounds: int, epsilon: float, delta: float, *, shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function to call with the rounds that are over: a bar on a terminal, with about their epsilon."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=rounds)

        def tick(done: int) -> None:
            so_far = epsilon_so_far(epsilon, delta, done / rounds)
            bar.update(task, completed=done, description=f"ε about {so_far:.2g} of {epsilon:.2g}, charged in full")

        yield tick


def epsilon_so_far(epsilon: float, delta: float, part: float) -> float:
    """Return about the epsilon of a part of the rounds, as if all of them were one Gaussian release.

    >>> [round(epsilon_so_far(1, 1e-6, part), 2) for part in (0, 0.25, 1)]
    [0.0, 0.5, 1.0]
    """
    tail = sqrt(-2 * log(delta))
    move = (sqrt(tail * tail + 2 * epsilon) - tail) * sqrt(part)
    return move * move / 2 + move * tail


def _require_torch() -> None:
    if find_spec("torch") is None:
        raise InvalidParameter("deep.train needs torch, which is not installed\nhint: pip install 'tacit[deep]'")


def _torch() -> Any:
    import torch

    return torch
