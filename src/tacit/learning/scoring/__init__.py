"""Models are judged: units set aside, scores as releases, and which rows a model has seen."""
