"""Equations of three diagonals: solved as numpy solves whole matrices, whatever their length and rows by themselves."""

import numpy as np
import pytest

from tacit.learning.priors import Solved


@pytest.mark.parametrize(("links", "rows"), [(0, 1), (0, 3), (1, 2), (1, 4), (2, 3), (3, 5), (6, 7), (7, 9)])
def test_equations_of_three_diagonals_are_solved(links, rows):
    rng = np.random.default_rng(rows)
    diagonal, beside = 3 + rng.random((rows, 2, 4)), -rng.random((links, 2, 4))
    right = rng.random((rows, 1, 4))
    found = Solved(diagonal, beside, right)
    for place in np.ndindex(2, 4):
        matrix = np.diag(diagonal[:, *place])
        matrix[np.arange(links), np.arange(links) + 1] = matrix[np.arange(links) + 1, np.arange(links)] = beside[
            :, *place
        ]
        inverse = np.linalg.inv(matrix)
        np.testing.assert_allclose(found.solution[:, *place], inverse @ right[:, 0, place[1]], rtol=1e-10)
        np.testing.assert_allclose(found.variances()[:, *place], np.diag(inverse), rtol=1e-10)
        np.testing.assert_allclose(found.log_determinant()[place], np.linalg.slogdet(matrix)[1], rtol=1e-10)
