"""Deep nets: exact sums of clipped gradients, one charge, secret samples, and runs that go on.

Why that is private: docs/proofs/sampled-rounds.md.
"""

import copy
import math
import shutil
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.errors import BudgetExceeded, InvalidParameter, LedgerError, QueryRefused
from tacit.learning import deep
from tacit.learning.deep.gradients import Gradients, gradients_for, working_copy
from tacit.learning.deep.people import people_of
from tacit.learning.deep.sampling import SampledRounds
from tacit.learning.deep.training import epsilon_so_far
from tacit.learning.deep.whole import BOUND
from tacit.ledger import open_ledger
from tests.learning.nets import BUDGET, ROUNDS, RUN, bce, convolution, heard, people, small, torch, trained


def made(inputs, targets, rows=1):
    return people_of(inputs, targets, np.arange(len(inputs)) // rows, -(-len(inputs) // rows), rows, "cpu")


class Attention(torch.nn.Module):
    """Token ids to a number, with every layer that is taken by layer."""

    def __init__(self):
        super().__init__()
        self.words, self.norm = torch.nn.Embedding(11, 8), torch.nn.LayerNorm(8)
        self.query, self.key, self.out = torch.nn.Linear(8, 8), torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 1)

    def forward(self, tokens):
        seen = self.norm(self.words(tokens))
        seen = torch.nn.functional.scaled_dot_product_attention(self.query(seen), self.key(seen), seen)
        return self.out(seen.mean(1))


def reference(module, batch, clip):
    """Each person's mean gradient by torch, clipped and added up in floats."""
    total = 0
    for one in range(len(batch)):
        keep = batch.is_row[one]
        if not keep.any():
            continue
        module.zero_grad()
        outputs = module(batch.inputs[one][keep])
        (
            sum(bce(o[None], t[None]) for o, t in zip(outputs, batch.targets[one][keep], strict=True)) / keep.sum()
        ).backward()
        vector = torch.cat(
            [
                p.grad.flatten() if p.grad is not None else torch.zeros(p.numel())
                for p in module.parameters()
                if p.requires_grad
            ]
        )
        total = total + vector.double() * min(1.0, clip / float(vector.norm()))
    return total.numpy()


@pytest.mark.parametrize("by_layer", [True, False])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", ["linear", "attention"])
def test_a_sum_is_that_of_clipped_gradients(name, rows, by_layer):
    torch.manual_seed(2)
    module = working_copy(small() if name == "linear" else Attention())
    inputs = torch.randn(30, 3) if name == "linear" else torch.randint(0, 11, (30, 5))
    batch = made(inputs, (torch.rand(30) > 0.5).float(), rows)
    found = Gradients(module, bce, 0.2, by_layer=by_layer, at_once=8).sum_of(batch, np.arange(len(batch))).numpy()
    assert found.dtype == np.int64
    expected = reference(module, batch, 0.2)
    assert np.linalg.norm(found * 0.2 / BOUND - expected) < 0.004 * 0.2 * len(batch)


def test_each_module_is_taken_the_way_that_fits_it():
    inputs, targets = people(4)
    like = made(inputs[:0], targets[:0])
    assert gradients_for(working_copy(small()), bce, 1.0, like, 8).layers is not None
    assert gradients_for(working_copy(convolution()), bce, 1.0, like, 8).layers is None
    tokens = made(torch.zeros(0, 5, dtype=torch.int64), targets[:0])
    assert gradients_for(working_copy(Attention()), bce, 1.0, tokens, 8).layers is not None


class Mixing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 1)

    def forward(self, inputs):
        return self.layer(inputs - inputs.mean(0))


def test_a_module_that_mixes_people_is_taken_one_by_one_or_refused():
    inputs, targets = people(4)
    like = made(inputs[:0], targets[:0])
    assert gradients_for(working_copy(Mixing()), bce, 1.0, like, 8).layers is None  # a person's rows only
    with pytest.raises(QueryRefused, match="mixes the rows of different people"):
        working_copy(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2)))


FAR = {
    "usual": torch.randn(1, 3, generator=torch.Generator().manual_seed(5)),
    "huge": torch.full((1, 3), 1e30),
    "infinite": torch.full((1, 3), math.inf),
    "not a number": torch.full((1, 3), math.nan),
    "tiny": torch.full((1, 3), 1e-38),
    "many rows": torch.full((50, 3), 100.0),
}


@pytest.mark.parametrize("module", [small, convolution])
@pytest.mark.parametrize("who", FAR)
@pytest.mark.parametrize("crowd", [0, 1, 2, 40])
def test_one_person_moves_a_sum_by_at_most_the_bound_and_no_other_number(module, who, crowd):
    inputs, targets = people(crowd)
    rows = FAR[who]
    both = torch.cat([inputs, rows]), torch.cat([targets, torch.ones(len(rows))])
    unit = [*range(crowd), *[crowd] * len(rows)]
    way = gradients_for(working_copy(module()), bce, 1.0, made(inputs[:0], targets[:0]), 16)
    without = people_of(inputs, targets, np.arange(crowd), crowd, 50, "cpu")
    with_it = people_of(*both, np.array(unit), crowd + 1, 50, "cpu")
    moved = (way.sum_of(with_it, np.arange(crowd + 1)) - way.sum_of(without, np.arange(crowd))).tolist()
    assert sum(int(each) ** 2 for each in moved) <= BOUND**2


def test_a_row_that_makes_the_loss_fail_counts_as_nothing_and_leaves_the_others():
    inputs, _ = people(5)
    module = torch.nn.Linear(3, 2)
    targets = torch.tensor([0, 1, 7, 0, 1])  # 7 is no class
    way = Gradients(working_copy(module), torch.nn.functional.cross_entropy, 1.0, by_layer=True, at_once=4)
    batch = made(inputs, targets)
    alone = way.sum_of(batch, np.array([0, 1, 3, 4])).numpy()
    assert np.array_equal(way.sum_of(batch, np.arange(5)), alone)
    assert alone.any()


def test_a_run_is_charged_once_in_full_and_certified():
    ledger = open_ledger(":memory:")
    module, rows = small(), people(60)
    before = copy.deepcopy(module.state_dict())
    with heard() as kept:
        found = trained(module, rows, ledger=ledger)
    (table,) = ledger.tables()
    _, event = (tacit.privacy.event_from_dict(each) for each in found.certificate()["events"])
    assert (event.rounds, event.rate, event.sensitivity_squared) == (ROUNDS, Fraction(1, 4), BOUND**2)
    assert ledger.spent(table).epsilon == 8
    assert float(event.sigma / BOUND) > 0.3
    # what was drawn is what was charged, in every round
    assert {(each.sigma, each.sensitivity_squared) for each in kept.events} == {
        (event.sigma, event.sensitivity_squared)
    }
    assert kept.moves == [BOUND**2] * ROUNDS
    assert ledger.verify().kinds["charge"] == 1
    # the caller's module stays as it was
    assert all(torch.equal(each, before[name]) for name, each in module.state_dict().items())
    assert not any(layer._forward_hooks for layer in (*module.modules(), *found.module.modules()))
    assert any(not torch.equal(each, before[name]) for name, each in found.module.state_dict().items())


@pytest.mark.parametrize("n", [0, 1, 2])
def test_few_people_end_in_the_same_kind_of_outcome(n):
    found = trained(small(), people(n))
    assert all(torch.isfinite(each).all() for each in found.module.parameters())


def test_samples_are_fresh_and_of_no_fixed_size():
    """A size of 8 samples of 400 people at 1/4 is the same each time with chance below 1e-9."""
    with heard() as kept:
        trained(small(), people(400))
    assert len({int(each.sum()) for each in kept.samples}) > 1
    assert len({each.tobytes() for each in kept.samples}) == ROUNDS


def test_a_run_that_stops_goes_on_with_no_second_charge_and_no_round_twice(tmp_path):
    ledger, path, rows = open_ledger(":memory:"), tmp_path / "run.pt", people(40)
    table = tacit.table(
        pd.DataFrame({"id": range(40), "a": rows[0][:, 0].numpy(), "y": rows[1].numpy() > 0}),
        unit="id", budget=BUDGET, ledger=ledger, name="stopped", columns={"a": {"between": (-3, 3)}},
    )  # fmt: skip

    class Stopped(BaseException):
        pass

    def stop(at, _):
        if at == 5:
            raise Stopped

    def go(path, **more):
        module = torch.nn.Linear(2, 2)
        loss = torch.nn.functional.cross_entropy
        return deep.train(module, table, loss, target="y", checkpoint=path, **RUN, **more)

    with heard() as first, pytest.raises(Stopped):
        go(path, on_round=stop)
    assert len(first.exact) == 5
    copied = tmp_path / "copied.pt"
    shutil.copy(path, copied)
    spent = ledger.spent(ledger.tables()[0])
    with heard() as second:
        go(path)
    assert len(second.exact) == ROUNDS - 5  # the ledger has begun rounds one by one here
    with heard() as third:
        go(copied)
    assert len(third.exact) == 0
    assert ledger.spent(ledger.tables()[0]) == spent
    with pytest.raises(InvalidParameter, match="another run"):
        deep.train(
            torch.nn.Linear(2, 2),
            table,
            torch.nn.functional.cross_entropy,
            target="y",
            checkpoint=path,
            **{**RUN, "rate": 1 / 2},
        )
    (tmp_path / "other.pt").write_bytes(b"not a checkpoint")
    with pytest.raises(InvalidParameter, match="not a checkpoint"):
        go(tmp_path / "other.pt")
    again = SampledRounds(table.session, None, 1, "cpu")
    with pytest.raises(LedgerError, match="another process"):
        again.claim(ledger_charge(ledger), 0, 1)


def ledger_charge(ledger):
    return next(entry.number for entry in ledger.entries() if entry.kind == "charge")


def test_people_with_rows_of_a_table_share_one_gradient():
    frame = pd.DataFrame({"id": [1, 1, 1, 2, 3, None], "a": [1.0, 2, 3, 1, 1, 1], "y": ["t", "f", "t", "t", None, "t"]})
    facts = {"a": {"between": (0, 4)}, "y": {"keys": ["t", "f"]}}
    table = tacit.table(frame, unit="id", budget=BUDGET, ledger=tacit.TRYOUT, columns=facts)
    assert deep.columns(table, target="y") == ("a", "a is missing")
    with heard(everyone=True) as kept:
        deep.train(
            torch.nn.Linear(2, 2), table, torch.nn.functional.cross_entropy, target="y", rows_per_person=2, **RUN
        )
    assert [len(each) for each in kept.samples] == [3] * ROUNDS
    assert (
        math.sqrt(sum(int(each) ** 2 for each in kept.exact[0])) <= 2 * BOUND
    )  # the third person has no row that counts


def test_only_parameters_that_may_change_are_trained():
    module = small()
    module[0].requires_grad_(False)
    found = trained(module, people(30))
    assert torch.equal(found.module[0].weight, module[0].weight)
    assert not torch.equal(found.module[2].weight, module[2].weight)


def test_what_cannot_be_trained_is_refused_before_a_charge():
    ledger, rows = open_ledger(":memory:"), people(10)
    table = tacit.table(
        pd.DataFrame({"a": [1], "y": [True]}),
        unit=tacit.ROW,
        budget=tacit.epsilon(3),
        ledger=ledger,
        columns={"a": {"between": (0, 1)}},
    )
    frozen = small()
    frozen.requires_grad_(False)
    with pytest.raises(InvalidParameter, match="cannot be trained"):
        trained(frozen, rows, ledger=ledger)
    with pytest.raises(InvalidParameter, match="budget and a ledger"):
        trained(small(), rows, ledger=None)
    with pytest.raises(QueryRefused, match="lacks a delta"):
        deep.train(torch.nn.Linear(2, 2), table, torch.nn.functional.cross_entropy, target="y", **RUN)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):  # a mistake in the module shows on made-up rows
        trained(small(7), rows, ledger=ledger)
    with pytest.raises(InvalidParameter, match="rate must be"):
        trained(small(), rows, ledger=ledger, rate=0)
    with pytest.raises(BudgetExceeded):
        trained(small(), rows, ledger=open_ledger(":memory:"), budget=tacit.epsilon(1, delta="1e-6"))
    assert not [entry for entry in ledger.entries() if entry.kind == "charge"]


def test_the_epsilon_of_a_part_grows_to_the_whole():
    found = [epsilon_so_far(3, 1e-6, part / 10) for part in range(11)]
    assert found == sorted(found)
    assert found[-1] == pytest.approx(3)
