"""Each library behind the same few words, as its own documentation shows them. Runs in that library's environment.

A subject has `laplace(epsilon, sensitivity)`, which returns a function from a value to a noisy value; `sum(rows,
bounds, epsilon, whole)`; and `budget(total)`, which returns a function that spends one charge and says whether it was
admitted, or None where the library keeps no budget.
"""

import tempfile
from pathlib import Path
from types import SimpleNamespace


def tacit_subject():
    """Tacit: a mechanism, and a table in a ledger of its own."""
    import pyarrow as pa

    import tacit

    def laplace(epsilon, sensitivity):
        return tacit.Laplace(epsilon=epsilon, sensitivity=sensitivity).release

    def protected(rows, whole, **words):
        kind = pa.int64() if whole else pa.float64()
        table = pa.table({"id": pa.array(range(len(rows)), pa.int64()), "x": pa.array(rows, kind)})
        return tacit.table(
            table,
            unit="id",
            rows_per_unit=1,
            name="t",
            **({"ledger": ":memory:", "budget": tacit.epsilon(10**6)} | words),
        )

    def total(rows, bounds, epsilon, whole):
        words = {} if bounds is None else {"between": bounds}
        (row,) = protected(rows, whole).sum("x", **words).answer(epsilon=epsilon).to_dicts()
        return row["sum_x"]

    def budget(amount, charge):
        path = Path(tempfile.mkdtemp()) / "ledger.db"
        source = Path(tempfile.mkdtemp()) / "t.csv"
        source.write_text("id,x\n1,1\n2,0\n")
        words = {"unit": "id", "rows_per_unit": 1, "name": "t", "ledger": path, "budget": tacit.epsilon(amount)}
        table = tacit.table(source, columns={"x": {"type": "int"}}, **words)

        def spend(turn):
            try:
                table.where(f"x <> {turn + 7}").count().answer(epsilon=charge)
            except tacit.BudgetExceeded:
                return False
            return True

        return spend

    return SimpleNamespace(laplace=laplace, sum=total, budget=budget, version=tacit.__version__)


def opendp_subject():
    """OpenDP: its measurements, and its privacy filter."""
    import importlib.metadata

    import opendp.prelude as dp

    dp.enable_features("contrib", "honest-but-curious")

    def laplace(epsilon, sensitivity):
        # its own words are a scale and a map from distances to losses; one that promises nothing is refused here
        scale = sensitivity / epsilon
        made = dp.m.make_laplace(dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float), scale=scale)
        if not made.map(sensitivity) < float("inf"):
            raise ValueError("the loss is infinite, and is said to be")
        return made

    def chain(bounds, whole, epsilon):
        if whole:
            start = (dp.vector_domain(dp.atom_domain(T="i64")), dp.symmetric_distance())
        else:
            start = (dp.vector_domain(dp.atom_domain(T=float, nan=True)), dp.symmetric_distance())
            start = start >> dp.t.then_impute_constant(0.0)
        summed = start >> dp.t.then_clamp(bounds) >> dp.t.then_sum()
        return dp.binary_search_chain(lambda scale: summed >> dp.m.then_laplace(scale), d_in=1, d_out=float(epsilon))

    def total(rows, bounds, epsilon, whole):
        return chain(bounds, whole, epsilon)(rows)

    def budget(amount, charge):
        space = (dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance())
        odometer = dp.c.make_fully_adaptive_composition(
            input_domain=space[0], input_metric=space[1], output_measure=dp.max_divergence()
        )
        asked = dp.c.make_privacy_filter(odometer, d_in=1, d_out=float(amount))([1, 0])
        count = space >> dp.t.then_count() >> dp.m.then_laplace(1 / float(charge))

        def spend(_):
            try:
                asked(count)
            except Exception as error:
                if "exhausted" in str(error) or "exceed" in str(error):
                    return False
                raise
            return True

        return spend

    return SimpleNamespace(laplace=laplace, sum=total, budget=budget, version=importlib.metadata.version("opendp"))


def diffprivlib_subject():
    """diffprivlib: its mechanism, its tools, and its accountant."""
    import warnings

    import diffprivlib
    import numpy as np

    warnings.simplefilter("ignore")

    def laplace(epsilon, sensitivity):
        return diffprivlib.mechanisms.Laplace(epsilon=epsilon, sensitivity=sensitivity).randomise

    def total(rows, bounds, epsilon, whole):
        held = np.array(rows, dtype=np.int64 if whole else np.float64)
        return float(diffprivlib.tools.sum(held, epsilon=float(epsilon), bounds=bounds))

    def budget(amount, charge):
        accountant = diffprivlib.BudgetAccountant(epsilon=float(amount))

        def spend(_):
            try:
                diffprivlib.tools.count_nonzero([1, 0], epsilon=float(charge), accountant=accountant)
            except diffprivlib.utils.BudgetError:
                return False
            return True

        return spend

    return SimpleNamespace(laplace=laplace, sum=total, budget=budget, version=diffprivlib.__version__)


def python_dp_subject():
    """python-dp: Google's library in C++; it leaves budgets to its caller."""
    import importlib.metadata

    from pydp.algorithms.laplacian import BoundedSum
    from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

    def laplace(epsilon, sensitivity):
        made = LaplaceMechanism(epsilon, sensitivity)
        return lambda value: made.add_noise(float(value))

    def total(rows, bounds, epsilon, whole):
        given = {} if bounds is None else {"lower_bound": bounds[0], "upper_bound": bounds[1]}
        made = BoundedSum(epsilon=float(epsilon), dtype="int64" if whole else "float", **given)
        return made.quick_result(list(rows))

    return SimpleNamespace(laplace=laplace, sum=total, budget=None, version=importlib.metadata.version("python-dp"))


SUBJECTS = {
    "tacit": tacit_subject,
    "opendp": opendp_subject,
    "diffprivlib": diffprivlib_subject,
    "python-dp": python_dp_subject,
}
