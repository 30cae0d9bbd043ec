"""diffprivlib's logistic regression at its defaults, on scaled columns, told the largest norm that a row can have.

Its promise is another one: pure epsilon, and one person's row is replaced by another, so the number of rows is public.
"""

import warnings

import numpy as np
from asked import main
from diffprivlib.models import LogisticRegression

warnings.simplefilter("ignore")


def prepare(rows):
    """Return what trains a model."""
    table = rows.scaled()
    norm = float(np.sqrt(len(rows.declared["columns"])))  # each number and each category adds at most 1 to its square

    def train(places, target, epsilon, run):
        model = LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=run)
        model.fit(table[places], target)
        return lambda judged: model.predict_proba(table[judged])[:, 1]

    return train


if __name__ == "__main__":
    main(prepare)
