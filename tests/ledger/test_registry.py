"""A budget belongs to the people in the data: renaming, uploading again and copying do not give a new one."""

import pytest

from tacit.errors import InvalidParameter
from tacit.privacy.loss import epsilon
from tacit_gauntlet.stage.ledger import DECLARATION, TENTH, ask


def test_the_same_source_under_a_second_name_is_refused_naming_the_first(ledger, table):
    with pytest.raises(InvalidParameter, match=r"already known as 'pay'(.|\n)*same_people_as='pay'"):
        ledger.register(name="wages", declaration=DECLARATION, source="pay.parquet", budget=epsilon(1))


def test_a_table_of_the_same_people_shares_their_budget(ledger, table):
    wages = ledger.register(name="wages", declaration=DECLARATION, source="pay.parquet", same_people_as="pay")
    assert wages.id != table.id
    for turn in range(5):
        assert ask(ledger, wages, str(turn))
        assert ask(ledger, table, str(turn))
    assert ask(ledger, wages, "more") is None
    assert ledger.spent(wages) == ledger.spent(table)


def test_answers_are_not_shared_between_tables_of_the_same_people(ledger, table):
    ask(ledger, table, "q")
    wages = ledger.register(name="wages", declaration=DECLARATION, source="wages.csv", same_people_as="pay")
    assert ledger.recall(wages, question_key="q") is None


def test_a_new_upload_under_the_same_name_goes_on_with_the_same_budget_and_asks_anew(ledger, table):
    ask(ledger, table, "q")
    moved = ledger.register(name="pay", declaration=DECLARATION, source="elsewhere/pay.parquet")
    assert moved.cohort == table.cohort
    assert ledger.recall(moved, question_key="q") is None
    assert ask(ledger, moved, "q")
    assert ledger.spent(table).epsilon == 2 * TENTH


def test_a_source_left_behind_stays_known(ledger, table):
    ledger.register(name="pay", declaration=DECLARATION, source="elsewhere/pay.parquet")
    with pytest.raises(InvalidParameter, match="already known as 'pay'"):
        ledger.register(name="old", declaration=DECLARATION, source="pay.parquet", budget=epsilon(1))


def test_a_name_and_a_source_of_different_people_are_refused_together(ledger, table):
    ledger.register(name="school", declaration=DECLARATION, source="school.csv", budget=epsilon(1))
    with pytest.raises(InvalidParameter, match=r"two different cohorts: .* is known as 'pay'\nhint: ask .* as 'pay'"):
        ledger.register(name="school", declaration=DECLARATION, source="pay.parquet")
    with pytest.raises(InvalidParameter, match=r"two different cohorts: .*, and same_people_as names 'pay'"):
        ledger.register(name="school", declaration=DECLARATION, source="school.csv", same_people_as="pay")


def test_same_people_as_must_name_a_table(ledger, table):
    with pytest.raises(InvalidParameter, match="its tables are: pay"):
        ledger.register(name="wages", declaration=DECLARATION, same_people_as="salaries")


def test_tables_without_a_source_are_told_apart_by_name(ledger):
    one = ledger.register(name="one", declaration=DECLARATION, budget=epsilon(1))
    two = ledger.register(name="two", declaration=DECLARATION, budget=epsilon(1))
    assert one.cohort != two.cohort


@pytest.mark.parametrize("word", ["unit", "neighbours"])
def test_what_a_loss_is_about_may_not_change_while_losses_add_up(ledger, table, word):
    with pytest.raises(InvalidParameter, match=f"declares {word} 'other'"):
        ledger.register(name="pay", declaration={**DECLARATION, word: "other"}, source="pay.parquet")


def test_other_changes_of_the_declaration_leave_an_entry_and_keep_the_id(ledger, table):
    wider = ledger.register(name="pay", declaration={**DECLARATION, "columns": ["income", "age"]}, source="pay.parquet")
    assert (wider.id, wider.cohort) == (table.id, table.cohort)
    assert wider.declaration_hash != table.declaration_hash
    assert wider.entry > table.entry
    again = ledger.register(name="pay", declaration={**DECLARATION, "columns": ["income", "age"]}, source="pay.parquet")
    assert again == wider


def test_a_source_is_kept_as_a_hash_since_it_may_hold_a_password(ledger):
    ledger.register(name="pay", declaration=DECLARATION, source="postgresql://u:hunter2@h/d pay", budget=epsilon(1))
    assert not any("hunter2" in entry.body for entry in ledger.entries())


@pytest.mark.parametrize("words", [{"name": ""}, {"name": 3}, {"name": "x" * 300}, {"declaration": {"a": object()}}])
def test_a_name_is_text_and_a_declaration_is_json(ledger, words):
    with pytest.raises(InvalidParameter):
        ledger.register(**{"name": "pay", "declaration": DECLARATION, "budget": epsilon(1), **words})


@pytest.mark.parametrize("version", [-1, 1.5, "2", True, None])
def test_a_version_is_a_whole_number(ledger, version):
    with pytest.raises(InvalidParameter, match="version"):
        ledger.register(name="pay", declaration={**DECLARATION, "version": version}, budget=epsilon(1))


def test_a_part_of_a_known_source_is_known(ledger):
    year = ledger.register(name="year", declaration=DECLARATION, source="1|2", marks=["1", "2"], budget=epsilon(1))
    with pytest.raises(InvalidParameter, match="already known as 'year'"):
        ledger.register(name="january", declaration=DECLARATION, source="1", budget=epsilon(1))
    with pytest.raises(InvalidParameter, match="already known as 'year'"):
        ledger.register(name="both", declaration=DECLARATION, source="2|3", marks=["2", "3"], budget=epsilon(1))
    shared = ledger.register(
        name="both", declaration=DECLARATION, source="2|3", marks=["2", "3"], same_people_as="year"
    )
    assert shared.cohort == year.cohort
    with pytest.raises(InvalidParameter, match="already known as"):
        ledger.register(name="march", declaration=DECLARATION, source="3", budget=epsilon(1))


def test_parts_of_two_peoples_are_refused_together(ledger):
    for name in ("1", "2"):
        ledger.register(name=name, declaration=DECLARATION, source=name, budget=epsilon(1))
    with pytest.raises(InvalidParameter, match="two different cohorts"):
        ledger.register(name="both", declaration=DECLARATION, source="1|2", marks=["1", "2"], budget=epsilon(1))


def test_marks_that_are_known_leave_no_entry(ledger):
    said = {"name": "year", "declaration": DECLARATION, "source": "1|2", "marks": ["1", "2"]}
    ledger.register(**said, budget=epsilon(1))
    before = len(list(ledger.entries()))
    ledger.register(**said)
    assert len(list(ledger.entries())) == before
    ledger.register(**said | {"marks": ["1", "2", "another link"]})
    assert len(list(ledger.entries())) == before + 1


@pytest.mark.parametrize("unit", [None, "household"])
def test_one_budget_is_for_one_unit(ledger, table, unit):
    with pytest.raises(InvalidParameter, match=r"declares unit(.|\n)*keep unit=(.|\n)*in both tables"):
        ledger.register(
            name="wages", declaration={**DECLARATION, "unit": unit}, source="wages.csv", same_people_as="pay"
        )
