"""One number about a million people: `python one.py LIBRARY FILE` prints errors of repeated answers at epsilon 1.

Values are in 0 … 1000. What is exact is worked out once where the library lets us, and noise is drawn anew for each
answer. Each statistic takes a few seconds, and as many answers as fit. A note says where the promise differs.
"""

import json
import sys
import time
import warnings

import numpy as np

EPSILON, LOW, HIGH = 1.0, 0.0, 1000.0
SECONDS, SECONDS_MEDIAN = 6.0, 30.0
ANSWERS_MOST = 10_000
STATISTICS = ("count", "sum", "mean", "variance", "median")
TRUTH = {"count": len, "sum": np.sum, "mean": np.mean, "variance": np.var, "median": np.median}


def tacit(values):
    """The public door's plan and engine once, then its release again and again."""
    import pyarrow as pa

    import tacit as library
    from tacit.answer.columns import noisy_columns
    from tacit.numbers import decimal_meaning
    from tacit.release.noisy import release

    people = library.table(
        pa.table({"person": np.arange(len(values)), "value": values}),
        unit="person",
        rows_per_unit=1,
        columns={"value": {"between": (0, 1000)}},
        budget=library.epsilon(1),
        ledger=":memory:",
    )
    asked = {
        "count": people.count(),
        "sum": people.sum("value"),
        "mean": people.mean("value"),
        "variance": people.variance("value"),
        "median": people.median("value"),
    }

    def answers(question):
        plan = question.plan(epsilon=1).plan
        exact = question.session.engine.aggregate(plan, "a salt that bounds nothing away")
        level = decimal_meaning(0.95, name="confidence")
        return lambda: noisy_columns(plan, release(plan, exact), level)[0].values[0]

    notes = {"median": "with an interval, which takes 2/5 of epsilon"}
    return {
        name: (lambda question=question: answers(question), notes.get(name, "")) for name, question in asked.items()
    }


def opendp(values):
    """Its transformations once, then its measurements: cents as integers, since floats get more noise."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    top = 100 * int(HIGH)
    cents = np.rint(100 * values).astype(np.int64)
    metric = dp.symmetric_distance()
    whole = dp.vector_domain(dp.atom_domain(T="i64"))

    def noisy(transformation, data, epsilon):
        exact, far = transformation(data), float(transformation.map(1))
        space = transformation.output_domain, transformation.output_metric
        measurement = dp.m.make_laplace(*space, scale=far / epsilon)
        return lambda: measurement(exact)

    def counted(epsilon):
        return noisy(dp.t.make_count(whole, metric), cents, epsilon)

    def added(data, most, epsilon):
        bounded = dp.vector_domain(dp.atom_domain(T="i64", bounds=(0, most)))
        return noisy(dp.t.make_sum(bounded, metric), data, epsilon)

    def total():
        draw = added(cents, top, EPSILON)
        return lambda: draw() / 100

    def mean():
        count, total = counted(EPSILON / 2), added(cents, top, EPSILON / 2)
        return lambda: total() / 100 / max(count(), 1)

    def variance():
        count, total = counted(EPSILON / 3), added(cents, top, EPSILON / 3)
        squares = added(np.rint(values**2).astype(np.int64), int(HIGH) ** 2, EPSILON / 3)

        def once():
            many = max(count(), 1)
            return squares() / many - (total() / 100 / many) ** 2

        return once

    def median():
        domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
        candidates = [place / 100 for place in range(top + 1)]
        chosen = dp.binary_search_param(
            lambda scale: dp.m.make_private_quantile(
                domain, metric, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=scale
            ),
            d_in=1,
            d_out=EPSILON,
            T=float,
        )
        measurement = dp.m.make_private_quantile(
            domain, metric, dp.max_divergence(), candidates=candidates, alpha=0.5, scale=chosen
        )
        data = values.tolist()
        return lambda: measurement(data)

    return {
        "count": (lambda: counted(EPSILON), ""),
        "sum": (total, ""),
        "mean": (mean, "a count and a sum, half of epsilon each"),
        "variance": (variance, "a count, a sum and a sum of squares, a third of epsilon each: its own needs n public"),
        "median": (median, "over a grid of 0.01"),
    }


def python_dp(values):
    """Google's algorithms: filled once, written down, and read back for each answer."""
    from pydp.algorithms import laplacian

    data = values.tolist()
    bounds = {"lower_bound": LOW, "upper_bound": HIGH}

    def answers(kind, **words):
        filled = kind(epsilon=EPSILON, dtype="float", **words)
        filled.add_entries(data)
        written = filled.serialize()

        def once():
            fresh = kind(epsilon=EPSILON, dtype="float", **words)
            fresh.merge(written)
            return fresh.result()

        return once

    return {
        "count": (lambda: answers(laplacian.Count), ""),
        "sum": (lambda: answers(laplacian.BoundedSum, **bounds), ""),
        "mean": (lambda: answers(laplacian.BoundedMean, **bounds), ""),
        "variance": (lambda: answers(laplacian.BoundedVariance, **bounds), ""),
        "median": (lambda: answers(laplacian.Median, **bounds), "no interval"),
    }


def diffprivlib(values):
    """Its tools, on the array each time."""
    from diffprivlib import tools

    bounds = (LOW, HIGH)
    promise = "n is public (replace one), and its floats fail the precision attack"
    return {
        "count": (
            lambda: lambda: tools.count_nonzero(values + 1, epsilon=EPSILON),
            "capped at n, so biased; " + promise,
        ),
        "sum": (lambda: lambda: tools.sum(values, epsilon=EPSILON, bounds=bounds), promise),
        "mean": (lambda: lambda: tools.mean(values, epsilon=EPSILON, bounds=bounds), promise),
        "variance": (lambda: lambda: tools.var(values, epsilon=EPSILON, bounds=bounds), promise),
        "median": (lambda: lambda: tools.median(values, epsilon=EPSILON, bounds=bounds), promise),
    }


def smartnoise_sql(values):
    """SQL on a pandas frame, each row a person; its exact aggregates once, handed back for each answer.

    A mean costs twice the epsilon it is told and a variance three times, so they are told a half and a third.
    """
    import pandas as pd
    import snsql

    frame = pd.DataFrame({"value": values})
    facts = {"row_privacy": True, "censor_dims": False, "value": {"type": "float", "lower": LOW, "upper": HIGH}}

    def answers(written, numbers):
        privacy = snsql.Privacy(epsilon=EPSILON / numbers, delta=1e-9)
        reader = snsql.from_connection(frame, privacy=privacy, metadata={"": {"bench": {"people": facts}}})
        query = f"SELECT {written} AS x FROM bench.people"
        inner, _ = reader._rewrite_ast(reader.parse_query_string(query))
        exact = np.array(reader._get_reader(inner)._execute_ast(inner)[1:], dtype=float)
        return lambda: reader.execute(query, pre_aggregated=exact)[1][0]

    asked = {
        "count": ("COUNT(*)", 1),
        "sum": ("SUM(value)", 1),
        "mean": ("AVG(value)", 2),
        "variance": ("VARIANCE(value)", 3),
    }
    note = "told a half or a third of epsilon, since it charges for each number inside"
    return {
        name: (lambda how=how: answers(*how), note if name in ("mean", "variance") else "")
        for name, how in asked.items()
    }


def repeated(once, truth, seconds):
    """Return the mean absolute error, how far it may be off (one standard error), answers, and seconds an answer."""
    errors, start = [], time.perf_counter()
    while len(errors) < 5 or (time.perf_counter() - start < seconds and len(errors) < ANSWERS_MOST):
        errors.append(abs(float(once()) - truth))
    took = time.perf_counter() - start
    spread = float(np.std(errors)) / len(errors) ** 0.5
    return {"error": float(np.mean(errors)), "off": spread, "answers": len(errors), "seconds": took / len(errors)}


def main(library, file):
    """Print a record for each statistic; what fails is named by its class."""
    warnings.simplefilter("ignore")
    values = np.load(file)
    found = {}
    for name, (make, note) in globals()[library.replace("-", "_")](values).items():
        try:
            seconds = SECONDS_MEDIAN if name == "median" else SECONDS
            found[name] = {**repeated(make(), float(TRUTH[name](values)), seconds), "note": note}
        except Exception as error:  # noqa: BLE001  a peer's failure is a result too
            found[name] = {"failed": type(error).__name__, "note": note}
            print(f"{name}: {error}", file=sys.stderr)
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
