"""REGR_*: all nine, over the rows where both have a value, as DuckDB has them and with an interval that holds them."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from tacit_gauntlet.stage.table import protected

NAMES = ("SLOPE", "INTERCEPT", "R2", "COUNT", "AVGX", "AVGY", "SXX", "SYY", "SXY")


@pytest.fixture(scope="module")
def rows() -> pa.Table:
    rng = np.random.default_rng(0)
    x, gone = rng.integers(0, 31, 4000), rng.integers(0, 40, 4000)
    y = 2 * x + rng.integers(0, 20, 4000)
    return pa.table(
        {"id": np.arange(4000), "x": pa.array(x, mask=gone == 0), "y": pa.array(y, mask=(gone == 1) | (gone == 2))}
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_regression_is_near_the_exact_one_and_its_interval_holds_it(rows, name):
    asked = f"SELECT REGR_{name}(y, x) AS found FROM t"
    ((exact,),) = duckdb.sql(asked.replace("FROM t", "FROM rows")).fetchall()
    columns = {"x": {"between": (0, 30)}, "y": {"between": (0, 80)}}
    # 5000 epsilon: the noise is far below a hundredth of a person
    (answer,) = protected(rows, columns=columns).sql(asked).answer(epsilon=5000, confidence=0.999999999).to_dicts()
    assert answer["found"] == pytest.approx(float(exact), rel=1e-2)
    low, high = answer["found_low"], answer["found_high"]
    assert low <= float(exact) <= high
