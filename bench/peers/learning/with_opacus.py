"""Opacus: logistic regression or a network with one hidden layer of 64, on scaled columns.

Batch, epochs and learning rate were chosen among a few on one other split of Adult at epsilon 1, which nobody paid for,
as a user with one table could not.
"""

import json
import sys
import warnings
from functools import partial

import numpy as np
import torch
from asked import DELTA, main
from opacus import PrivacyEngine

warnings.simplefilter("ignore")
torch.set_num_threads(1)
# model -> learning rate, epochs, rows in a batch on average
SETTINGS = {"logistic": (16.0, 20, 1024), "network": (8.0, 10, 1024)}
HIDDEN = 64


def prepare(rows):
    """Return what trains a model."""
    kind = json.loads(sys.argv[1])["model"]
    rate, epochs, batch = SETTINGS[kind]
    table = torch.tensor(rows.scaled(), dtype=torch.float32)

    def ready(places, target, epsilon, run):
        torch.manual_seed(run)
        model = network(table.shape[1]) if kind == "network" else torch.nn.Linear(table.shape[1], 1)
        data = torch.utils.data.TensorDataset(table[places], torch.tensor(target, dtype=torch.float32))
        return partial(train, model, data, epsilon)

    def train(model, data, epsilon):
        model, optimiser, loader = PrivacyEngine().make_private_with_epsilon(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=rate),
            data_loader=torch.utils.data.DataLoader(data, batch_size=batch),
            epochs=epochs,
            target_epsilon=epsilon,
            target_delta=DELTA,
            max_grad_norm=1.0,
        )
        steps = torch.optim.lr_scheduler.LinearLR(optimiser, 1.0, 0.05, epochs * len(loader))
        loss = torch.nn.BCEWithLogitsLoss()
        for _ in range(epochs):
            for inputs, wanted in loader:
                optimiser.zero_grad()
                if len(inputs):
                    loss(model(inputs)[:, 0], wanted).backward()
                    optimiser.step()
                steps.step()
        return lambda judged: probabilities(model, table[judged])

    return ready


def network(columns):
    """Return a network with one hidden layer."""
    return torch.nn.Sequential(torch.nn.Linear(columns, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1))


def probabilities(model, table):
    """Return the probability of 1 for each row."""
    with torch.no_grad():
        return torch.sigmoid(model(table)[:, 0]).numpy().astype(np.float64)


if __name__ == "__main__":
    main(prepare)
