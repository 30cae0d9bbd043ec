"""Tacit's additive classifier as it comes: a table with a ledger, the public ranges and lists, and an epsilon.

The model is (epsilon, DELTA)-DP, as the peers' are. A budget keeps an eighth of its delta for noise, so that of the
table is 8 DELTA. The other kind, "within", has a budget of DELTA in all, and a model that has an eighth of it.

The time is from the protected table to the model: the charge, the rounds over the rows and what is made of them.
"""

import json
import sys
import warnings
from functools import partial

import pyarrow.parquet as pq
from asked import DELTA, main

import tacit
from tacit.engine.kernel import compiled
from tacit.learning import AdditiveClassifier

warnings.simplefilter("ignore", tacit.LargeEpsilonWarning)


def prepare(rows):
    """Return what trains a model; the kernel is compiled and loaded first, as after any process's first question."""
    compiled.compile_now()
    compiled.load()
    is_within = json.loads(sys.argv[1])["model"] == "within"
    declared = rows.declared
    table = pq.read_table(rows.path)
    columns = {name: {"between": tuple(ends)} for name, ends in declared["ranges"].items()}
    columns |= {name: {"keys": keys} for name, keys in declared["keys"].items()}
    columns["target"] = {"keys": [0, 1]}

    def ready(places, _, epsilon, run):
        protected = tacit.table(
            table.take(places),
            name=f"{declared['name']}{run}",
            unit="person_id",
            most_rows_per_unit=1,
            budget=tacit.epsilon(epsilon, delta=DELTA if is_within else 8 * DELTA),
            columns=columns,
            ledger=tacit.TRYOUT,
            accept_large_delta=True,
        )
        return partial(train, protected, epsilon)

    def train(protected, epsilon):
        model = AdditiveClassifier(epsilon=epsilon, delta=None if is_within else DELTA)
        model.fit(protected, target="target", features=declared["columns"])
        return lambda judged: model.predict_proba(table.take(judged).select(declared["columns"]))[:, 1]

    return ready


if __name__ == "__main__":
    main(prepare)
