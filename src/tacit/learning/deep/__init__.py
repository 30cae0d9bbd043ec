"""Deep nets, learned from protected rows with torch: `train` returns a new module, its receipt and its certificate.

torch (the extra `deep`) is imported only when `train` is called.
"""

from tacit.learning.deep.training import Trained, columns, train

__all__ = ["Trained", "columns", "train"]
