"""interpret's DP-EBM at its defaults, told the public ranges; its categories it reads from the training rows itself.

It takes no missing number, so such a one is the middle of its range, and a missing category is a category.
"""

import warnings
from functools import partial

import pandas as pd
from asked import DELTA, main
from interpret.privacy import DPExplainableBoostingClassifier

warnings.simplefilter("ignore")


def prepare(rows):
    """Return what trains a model."""
    ranges, names = rows.declared["ranges"], rows.declared["columns"]
    types = ["continuous" if name in ranges else "nominal" for name in names]
    table = pd.DataFrame({name: rows.complete(name) if name in ranges else words(rows, name) for name in names})
    bounds = {name: tuple(ends) for name, ends in ranges.items()}

    def ready(places, target, epsilon, run):
        model = DPExplainableBoostingClassifier(
            feature_names=names,
            feature_types=types,
            epsilon=epsilon,
            delta=DELTA,
            privacy_bounds=bounds,
            random_state=run,
        )
        return partial(train, model, table.iloc[places], target)

    def train(model, inputs, target):
        model.fit(inputs, target)
        return lambda judged: model.predict_proba(table.iloc[judged])[:, 1]

    return ready


def words(rows, name):
    """Return a category as it is written in the table."""
    listed = [*map(str, rows.declared["keys"][name]), "missing"]
    return [listed[place] for place in rows.columns[name]]


if __name__ == "__main__":
    main(prepare)
