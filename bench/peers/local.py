"""The peers' side of the local bench: runs in their own environment, and prints the seconds that a report takes.

Each library is used as its own documentation shows: clients one by one, then its aggregator on the list of reports.
"""

import json
import sys
import time
import warnings

import numpy as np

EPSILON = 1.0


def multi_freq_ldpy(protocol, domain):
    """Return a client and an aggregator of multi-freq-ldpy."""
    from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
    from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
    from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client

    def hashed(value):
        return LH_Client(value, domain, EPSILON, True)

    return {
        "response": (lambda v: GRR_Client(v, domain, EPSILON), lambda r: GRR_Aggregator_MI(r, domain, EPSILON)),
        "subset": (lambda v: SS_Client(v, domain, EPSILON), lambda r: SS_Aggregator_MI(r, domain, EPSILON)),
        "local-hashing": (hashed, lambda r: LH_Aggregator_MI(r, domain, EPSILON, True)),
    }[protocol]


def pure_ldp(protocol, domain):
    """Return a client and an aggregator of pure-ldp; its domain begins at 1."""
    from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
    from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

    def servers():
        return {
            "response": lambda: DEServer(EPSILON, domain),
            "local-hashing": lambda: LHServer(EPSILON, domain, use_olh=True),
        }[protocol]()

    client = {
        "response": lambda: DEClient(EPSILON, domain),
        "local-hashing": lambda: LHClient(EPSILON, domain, use_olh=True),
    }[protocol]()

    def estimate(reports):
        server = servers()
        server.reset()
        for report in reports:
            server.aggregate(report)
        return server.estimate_all(range(1, domain + 1), suppress_warnings=True)

    return (lambda v: client.privatise(v + 1)), estimate


def best(job, repeats=3):
    """Return the shortest time of a job, and its last result."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        found = job()
        times.append(time.perf_counter() - start)
    return min(times), found


def main(library, protocol, domain, people):
    """Print the seconds that one report takes to make, and to estimate from."""
    warnings.simplefilter("ignore")
    client, aggregate = {"multi-freq-ldpy": multi_freq_ldpy, "pure-ldp": pure_ldp}[library](protocol, domain)
    values = (np.arange(people) * 7919 % domain).tolist()
    client(values[0])  # compiles
    make, reports = best(lambda: [client(value) for value in values])
    estimate, _ = best(lambda: aggregate(reports))
    print(json.dumps({"make": make / people, "estimate": estimate / people}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
