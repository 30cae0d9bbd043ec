"""diffprivlib's logistic regression at its defaults, on scaled columns, told the largest norm that a row can have.

Its promise is another one: pure epsilon, and one person's row is replaced by another, so the number of rows is public.
"""

import warnings
from functools import partial

import numpy as np
from asked import main
from diffprivlib.models import LogisticRegression

warnings.simplefilter("ignore")


def prepare(rows):
    """Return what trains a model."""
    table = rows.scaled()
    norm = float(np.sqrt(len(rows.declared["columns"])))  # each number and each category adds at most 1 to its square

    def ready(places, target, epsilon, run):
        return partial(train, LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=run), places, target)

    def train(model, places, target):
        model.fit(table[places], target)
        return lambda judged: model.predict_proba(table[judged])[:, 1]

    return ready


if __name__ == "__main__":
    main(prepare)
