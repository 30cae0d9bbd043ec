"""Which questions are the same: those whose plans add the same noise to the same sums.

Names, order of columns, HAVING, ORDER BY, LIMIT and confidence are post-processing and do not count.
"""

import hashlib

from tacit.plan.plan import Plan


def question_key(plan: Plan) -> str:
    """Return a text that two plans share just when they release the same integers of the same table version."""
    parts = (
        plan.table,
        plan.version,
        plan.unit,
        plan.neighbours,
        plan.where,
        tuple((key.expression, key.type) for key in plan.keys),
        plan.public_keys,
        plan.rows_per_unit,
        plan.groups_per_unit,
        plan.measured,
        plan.products,
        plan.releases,
        plan.quantiles,
        plan.distincts,
        plan.choice,
        plan.threshold,
    )
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
