"""Rows with their unit in another table: the same integers as with the unit's column copied down, on every engine."""

import pyarrow as pa
import pytest

import tacit
from tacit.errors import InvalidParameter, QueryRefused
from tacit.ledger import open_ledger
from tacit_gauntlet.stage.table import bounded_table, protected
from tests.engine.exact import on_path

BOUNDS = {"rows_per_unit": 64, "groups_per_unit": 64, "most_rows_per_unit": 64}
ORDERS = pa.table(
    {
        "order_id": [1, 2, 3, 4, 4, 4, 5, None, 6, 9],
        "customer": ["a", "a", "b", "b", "c", "b", None, "d", "é", "e"],
        "region": ["n", "n", "s", "s", "n", "n", "n", "n", "s", "s"],
    }
)
LINES = pa.table(
    {
        "order_id": pa.array([1, 1, 2, 3, 4, 5, 6, 7, None], pa.int32()),
        "qty": [1, 2, 4, 8, 16, 32, 64, 128, 256],
        "item": ["x", "y", "x", "y", "x", "y", "x", "y", "x"],
    }
)
OWNED = {"budget": None, "ledger": None}
QTY = {"columns": {"qty": {"between": (0, 500)}, "item": {"keys": ["x", "y"]}}}


def copied(orders=ORDERS, lines=LINES):
    """The lines with the unit's column copied down, by plain loops."""
    owners = set(zip(orders["order_id"].to_pylist(), orders["customer"].to_pylist(), strict=True))
    rows = [
        {**line, "customer": unit}
        for line in lines.to_pylist()
        for key, unit in sorted(owners, key=repr)
        if line["order_id"] is not None and key == line["order_id"] and unit is not None
    ]
    return pa.Table.from_pylist(rows, schema=lines.schema.append(pa.field("customer", pa.string())))


def shop(engine, orders=ORDERS, lines=LINES, **declared):
    owners = engine(orders, unit="customer", name="orders", **BOUNDS)
    return owners, engine(lines, unit=owners, via="order_id", name="lines", **BOUNDS, **QTY, **OWNED, **declared)


def asked(table):
    by_item = table.group_by("item").agg(n=tacit.count(), s=tacit.sum("qty"), people=tacit.count_units())
    return [
        by_item,
        table.where("qty > 3").mean("qty"),
        table.group_by("item").quantile("qty", 0.5),
        table.agg(kinds=tacit.count_distinct("item", per_unit=3)),
        table.per_unit(n=tacit.count()).mean("n"),
    ]


def test_rows_count_for_their_owners_as_with_the_column_copied_down(engine):
    _, lines = shop(engine)
    plain = engine(copied(), unit="customer", name="copied", **BOUNDS, **QTY)
    for mine, theirs in zip(asked(lines), asked(plain), strict=True):
        found, wanted = bounded_table(mine), bounded_table(theirs)
        assert (found.keys, found.sums) == (wanted.keys, wanted.sums)


@pytest.mark.parametrize("path", ["sql", "kernel", "patient"])
def test_every_path_has_the_integers_of_plain_loops(path, kernel):
    _, lines = shop(protected)
    question = lines.group_by("item").sum("qty")
    question.session.engine._path = path
    with on_path("sql" if path == "sql" else "kernel", or_patient=path == "patient"):
        exact = bounded_table(question)
    # 1, 4 of a; 16 of b and of c; 64 of é. 2 of a, 8 of b; 32, 128 and 256 are nobody's
    assert dict(zip(exact.keys, exact.sums["total_0"], strict=True)) == {("x",): 1 + 4 + 16 + 16 + 64, ("y",): 2 + 8}


def test_a_line_is_joined_with_its_order_by_the_key_alone(engine):
    orders, lines = shop(engine)
    sql = "SELECT region, SUM(qty) AS s FROM lines JOIN orders USING (order_id) GROUP BY region"
    question = lines.sql(sql, tables=[orders], between={"s": (0, 500)})
    exact = bounded_table(lines.join(orders, on="order_id").group_by("region", keys=["n", "s"]).sum("qty"))
    # of b: order 4 stands twice, once in each region
    assert dict(zip(exact.keys, exact.sums["total_0"], strict=True)) == {
        ("n",): 1 + 2 + 4 + 16 + 16,
        ("s",): 8 + 16 + 64,
    }
    assert question.session.relation == lines.join(orders, on=["customer", "order_id"]).session.relation


def test_two_tables_of_one_owner_are_joined_by_its_key():
    orders, lines = shop(protected)
    parcels = pa.table({"nr": [1, 3, 6], "kg": [1, 2, 3]})
    parcels = protected(parcels, name="parcels", unit=orders, via={"nr": "order_id"}, **BOUNDS, **OWNED)
    exact = bounded_table(lines.join(parcels, on={"order_id": "nr"}).where("kg > 1").sum("qty"))
    assert exact.sums["total_0"] == [8 + 64]
    with pytest.raises(QueryRefused, match="joined on something other than their unit"):
        lines.join(parcels, on={"qty": "kg"})


def test_a_chain_of_tables_has_its_unit_at_the_end(engine):
    _, lines = shop(engine)
    notes = pa.table({"item": ["x", "y", "y", "z"], "words": [1, 2, 4, 8]})
    notes = engine(notes, unit=lines, via="item", name="notes", **BOUNDS, **OWNED)
    exact = bounded_table(notes.agg(people=tacit.count_units(), s=tacit.sum("words", between=(0, 9))))
    # x is in lines of a, b, c and é; y in lines of a and b
    assert exact.sums["total_0"] == [4 * 1 + 2 * (2 + 4)]


@pytest.mark.parametrize("orders", [ORDERS.slice(0, 0), ORDERS])
def test_no_rows_at_all_are_a_table_like_another(engine, orders):
    _, lines = shop(engine, orders=orders, lines=LINES.slice(0, 0) if len(orders) else LINES)
    assert bounded_table(lines.group_by("item").count()).sums["rows"] == [0, 0]


def test_an_answer_says_whose_rows_are_not_counted_and_has_the_owners_budget():
    ledger = open_ledger(":memory:")
    orders = tacit.table(ORDERS, unit="customer", name="orders", budget=tacit.epsilon(3), ledger=ledger)
    lines = tacit.table(LINES, unit=orders, via="order_id", name="lines", **QTY, rows_per_unit=9, groups_per_unit=2)
    answer = lines.group_by("item").count().answer(epsilon=1, accept_noise=True)
    words = (
        "Rows of lines with no order_id in orders are not counted; a row with several customer there counts for each."
    )
    assert words in str(answer)
    assert orders.left.laplace == lines.left.laplace == 2
    assert lines.frame.declaration.unit == "customer"


def test_a_new_version_of_the_owners_makes_new_answers():
    def opened(version):
        ledger = open_ledger(":memory:")
        orders = tacit.table(
            ORDERS, unit="customer", name="orders", budget=tacit.epsilon(9), ledger=ledger, version=version
        )
        return tacit.table(LINES, unit=orders, via="order_id", name="lines", version=1).session.key_of("q")

    assert opened(1) == opened(1) != opened(2)


REFUSED = {
    "no via": ({"via": None}, "via must name the columns"),
    "no such column": ({"via": "order"}, "via names 'order', which is not a column of these rows"),
    "none there": ({"via": {"qty": "amount"}}, "via names 'amount', which is not a column of 'orders'"),
    "two types": ({"via": {"item": "order_id"}}, "stored as string, with order_id of 'orders', stored as int64"),
    "a budget": ({"budget": tacit.epsilon(1)}, "share its budget"),
    "blocks": ({"block": {"column": "day", "every": "month"}}, "have no blocks"),
}


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED.keys())
def test_what_is_wrong_in_a_declaration_is_said(words):
    given, said = words
    orders, _ = shop(protected)
    with pytest.raises((QueryRefused, InvalidParameter), match=said):
        tacit.table(LINES, unit=orders, name="lines", **{"via": "order_id", **given})


def test_owners_without_a_column_of_people_or_with_blocks_or_rounded_keys_are_refused():
    floats = pa.table({"order_id": [1.0], "customer": ["a"], "day": pa.array([0], pa.date32())})
    ledger = open_ledger(":memory:")
    lines = floats.drop(["customer"])
    opened = tacit.table(floats, unit="customer", name="o", budget=tacit.epsilon(1), ledger=ledger)
    with pytest.raises(QueryRefused, match="a key must be whole numbers, text, dates, bytes or UUIDs"):
        tacit.table(lines, unit=opened, via="order_id", name="l")
    with pytest.raises(QueryRefused, match="these rows have a column 'customer' themselves"):
        tacit.table(floats, unit=opened, via="day", name="l")
    rows = tacit.table(floats, unit=tacit.ROW, name="r", budget=tacit.epsilon(1), ledger=ledger)
    with pytest.raises(QueryRefused, match="every row of 'r' is its own unit"):
        tacit.table(lines, unit=rows, via="day", name="l")
    block = {"column": "day", "every": "month"}
    blocks = tacit.table(floats, unit="customer", name="b", budget=tacit.epsilon(1), ledger=ledger, block=block)
    with pytest.raises(QueryRefused, match="have no blocks"):
        tacit.table(lines, unit=blocks, via="day", name="l")
    with pytest.raises(InvalidParameter, match="a stored table as it is declared"):
        tacit.table(lines, unit=opened.where("order_id > 1"), via="day", name="l")
    with pytest.raises(InvalidParameter, match="via= is for rows with their unit in another table"):
        tacit.table(lines, unit="day", via="day", name="l")
