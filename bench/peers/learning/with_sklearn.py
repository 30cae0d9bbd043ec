"""Models that are not private, trained by scikit-learn on the same columns: what a private one may hope for."""

import json
import sys
import warnings
from functools import partial

import numpy as np
from asked import main
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("ignore")


def prepare(rows):
    """Return what trains a model."""
    names = rows.declared["columns"]
    if json.loads(sys.argv[1])["model"] == "logistic":
        table, make = rows.scaled(), lambda _: LogisticRegression(max_iter=500)
    else:
        table = np.column_stack([rows.columns[name] for name in names]).astype(np.float64)
        listed = [name not in rows.declared["ranges"] for name in names]
        table[:, listed] += 1  # a category is a place that is not negative
        make = lambda run: HistGradientBoostingClassifier(categorical_features=listed, random_state=run)  # noqa: E731

    def ready(places, target, _, run):
        return partial(train, make(run), places, target)

    def train(model, places, target):
        model.fit(table[places], target)
        return lambda judged: model.predict_proba(table[judged])[:, 1]

    return ready


if __name__ == "__main__":
    main(prepare)
