"""Made-up rows by a library: `python made_rows.py LIBRARY FOLDER EPSILON DETAIL MOST` writes made.csv in one thread.

It prints the processor seconds that it took, and is ended after MOST of them.
The folder has `codes.csv`, codes of public bins, and `sizes.json`, how many codes each column has. AIM has a model
of 2 MB at most and 100 iterations a fit, where that can be said: with its own 80 MB and 1,000 it would not end.
"""

import json
import os
import resource
import sys
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ[name] = "1"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"

DELTA = 1e-6
MEGABYTES, ITERATIONS = 2, 100


def dpmm(folder, sizes, epsilon, model):
    """The AIM or the MST that the library ports from Private-PGM to numpy."""
    import numpy as np
    import pandas as pd
    from dpmm.models.aim import AIMGM
    from dpmm.models.mst import MSTGM

    frame = pd.read_csv(folder / "codes.csv")
    start = time.process_time()
    more = {"max_model_size": MEGABYTES} if model == "aim" else {}
    made = (AIMGM if model == "aim" else MSTGM)(
        epsilon=epsilon, delta=DELTA, n_iters=ITERATIONS, compress=False, n_jobs=1, **more
    )
    made.set_domain(sizes)
    made.set_random_state(np.random.RandomState(0))
    made.fit(frame)
    return made.generate(n_records=len(frame))[list(sizes)].astype("int64"), time.process_time() - start


def opendp(folder, sizes, rho):
    """The AIM of the library, fitted by mbi; every key is given, so it needs no delta beyond the conversion of rho."""
    import opendp.prelude as dp
    import polars as pl
    from mbi.estimation import mirror_descent

    dp.enable_features("contrib")
    start = time.process_time()
    rows = pl.scan_csv(folder / "codes.csv")
    count = rows.select(pl.len()).collect().item()
    context = dp.Context.compositor(
        data=rows, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho), split_evenly_over=1
    )
    keys = {name: list(range(size)) for name, size in sizes.items()}

    def fit(domain, loss, *, potentials=None):
        return mirror_descent(domain, loss, potentials=potentials, iters=ITERATIONS)

    algorithm = dp.mbi.AIM(queries=2, max_size=MEGABYTES, estimator=fit)
    table = context.query().select(*sizes).contingency_table(keys=keys, algorithm=algorithm).release()
    return table.synthesize(rows=count).select(*sizes), time.process_time() - start


def main(library, folder, epsilon, detail, most):
    """Make rows, keep them, and say how long it took the processor."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(most), int(most)))
    folder = Path(folder)
    sizes = json.loads((folder / "sizes.json").read_text())
    if library == "dpmm":
        made, seconds = dpmm(folder, sizes, float(epsilon), detail)
        made.to_csv(folder / "made.csv", index=False)
    else:
        made, seconds = opendp(folder, sizes, float(detail))
        made.write_csv(folder / "made.csv")
    print(json.dumps({"seconds": seconds}))


if __name__ == "__main__":
    main(*sys.argv[1:])
