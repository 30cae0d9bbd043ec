"""What tests of tables in PostgreSQL share: their address, protected tables, and what was spent on them."""

import tacit

BUDGET = tacit.epsilon(1000, delta=1e-6)


def at(run, name, **words):
    more = "".join(f"&{word}={value}" for word, value in words.items())
    return f"{run.address}{more}&table={run.schema}.{name}"


def opened(run, name="t", **declared):
    usual = {"unit": "id", "budget": BUDGET, "ledger": ":memory:", "most_rows_per_unit": 1}
    return tacit.table(at(run, name), **(usual | {"rows_per_unit": 2, "groups_per_unit": 2} | declared))


def spent(table):
    return table.session.ledger.spent(table.session.registered).epsilon or 0
