"""A certificate says what was released and what it cost, and anyone can check it without the ledger."""

import copy
import json
from fractions import Fraction

import pytest

from tacit.errors import InvalidParameter, LedgerError
from tacit.ledger.certificate import deployment, verify_certificate
from tacit.ledger.chain import canonical, link, new_key
from tacit.privacy.loss import GaussianNoise, KeyThreshold, epsilon
from tacit_gauntlet.stage.ledger import charge

ANSWER = '{"state": ["CA"], "income": [51200.5]}'


@pytest.fixture
def certificate(ledger, table):
    return ledger.certificate(charge(ledger, table, "q").commit(ANSWER).number)


def test_it_says_what_was_released_to_whom_it_matters_and_what_it_cost(certificate, table):
    found = verify_certificate(json.loads(json.dumps(certificate)))
    assert found["answer"] == ANSWER
    assert (found["unit"], found["neighbours"]) == ("person_id", "add or remove")
    assert found["table"]["table"] == table.id
    assert found["table"]["declaration_hash"] == table.declaration_hash
    assert found["events"] == [{"kind": "PureChoice", "epsilon": "1/10"}]
    assert found["loss"]["epsilon"] == "1/10"
    assert found["software"].startswith("tacit ")


def test_the_charge_names_the_same_certificate(ledger, certificate):
    by_charge = ledger.certificate(certificate["chain"]["charge"]["number"])
    assert by_charge == certificate


@pytest.mark.parametrize("number", [1, 2, 3, 99])
def test_what_is_no_answer_has_no_certificate(ledger, table, number):
    charge(ledger, table, "unanswered")
    with pytest.raises(InvalidParameter, match="is not an answer"):
        ledger.certificate(number)


def paths(value, path=()):
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from paths(inner, (*path, place))
    else:
        yield path


def changed(record, path):
    other = copy.deepcopy(record)
    inner = other
    for step in path[:-1]:
        inner = inner[step]
    old = inner[path[-1]]
    inner[path[-1]] = old + 1 if isinstance(old, int) else f"{old}x"
    return other


def test_any_change_is_found(certificate):
    for path in paths(certificate):
        with pytest.raises(LedgerError, match="does not verify"):
            verify_certificate(changed(certificate, path))


def test_a_change_signed_by_another_key_shows_that_key(certificate):
    key = new_key()
    forged = {name: value for name, value in certificate.items() if name != "signature"} | {"public_key": key.public}
    forged["signature"] = key.sign(forged)
    assert verify_certificate(forged)["key"] != verify_certificate(certificate)["key"]


def signed(certificate, key, **entries):
    """A certificate whose maker holds a key and rewrites its entries consistently."""
    forged = copy.deepcopy({name: value for name, value in certificate.items() if name != "signature"})
    for name, change in entries.items():
        record = json.loads(forged["chain"][name]["body"])
        record.update(change)
        body = canonical(record)
        forged["chain"][name] |= {"body": body, "hash": link(forged["chain"][name]["previous"], body)}
        forged |= (
            {"loss": {key: record[key] for key in ("epsilon", "rho", "delta", "delta_noise")}}
            if name == "charge"
            else {}
        )
        forged |= {"events": record["events"]} if name == "charge" else {}
    forged["public_key"] = key.public
    return {**forged, "signature": key.sign(forged)}


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ({"charge": {"epsilon": "1/1000"}}, "cost more"),
        ({"charge": {"rho": "1/1000000"}}, "cost more"),
        ({"charge": {"declared": 1}}, "belong together"),
        ({"answer": {"charge": 1}}, "belong together"),
        ({"table": {"declaration": {"unit": "person_id", "neighbours": "add or remove"}}}, "declaration is wrong"),
    ],
)
def test_even_its_signer_cannot_make_it_contradict_itself(certificate, entries, fault):
    with pytest.raises(LedgerError, match=fault):
        verify_certificate(signed(certificate, new_key(), **entries))


@pytest.mark.parametrize(
    "change",
    [
        {"epsilon": "1e20000"},
        {"rho": "9" * 10**5},
        {"delta": "1/0"},
        {"epsilon": 1},
        {"events": [{"kind": "LaplaceNoise", "scale": "0", "sensitivity": "1"}]},
        {"events": [{"kind": "GaussianNoise", "sigma": "1e20000", "sensitivity_squared": "1"}]},
        {"events": [{"kind": "PureChoice", "epsilon": True}]},
        {"events": [{"kind": "PureChoice"}]},
    ],
)
def test_numbers_that_we_would_not_write_do_not_verify(certificate, change):
    with pytest.raises(LedgerError, match="does not verify"):
        verify_certificate(signed(certificate, new_key(), charge=change))


@pytest.mark.parametrize("value", [None, 3, [], {}, {"what": "tacit certificate 1"}, "text"])
def test_what_is_no_certificate_is_refused(value):
    with pytest.raises(LedgerError, match="does not verify"):
        verify_certificate(value)


def test_nothing_in_it_is_computed_from_rows_but_the_answer(certificate):
    text = json.dumps(certificate)
    assert text.count("51200.5") == 2
    assert "rows" not in text


def fields_of(yaml: str) -> dict[str, object]:
    """Return the values of a registry's entry by their names, which are its lines."""
    lines = [line.strip().partition(": ") for line in yaml.splitlines() if not line.endswith(":")]
    return {name: json.loads(value) for name, _, value in lines[::-1]}  # of two names the first: the product's


def test_the_registry_has_the_loss_and_the_unit(ledger, certificate):
    fields = fields_of(deployment(certificate))
    assert (fields["epsilon"], fields["status"], fields["privacy_unit"]) == (0.1, "Draft", certificate["unit"])
    assert 'dp_flavor:\n    name: "Pure DP"' in deployment(certificate)
    assert fields["publication_date"] == certificate["time"][:10]


def test_the_registry_names_the_notion_of_an_answer_with_gaussian_noise(ledger):
    table = ledger.register(
        name="g", declaration={"unit": "ROW", "neighbours": "replace"}, budget=epsilon(3, delta=1e-6)
    )
    events = [GaussianNoise(sigma=Fraction(10), sensitivity_squared=Fraction(1)), KeyThreshold(Fraction(1, 10**8))]
    receipt = ledger.reserve(table, events, question_key="q").commit("1")
    yaml = deployment(ledger.certificate(receipt.number))
    assert 'dp_flavor:\n    name: "Zero-concentrated DP"' in yaml
    assert "privacy_parameters:\n      rho: 0.005\n      delta: 1.0e-08\n" in yaml


def test_every_value_of_the_yaml_is_a_quoted_text_a_list_or_a_number(certificate):
    quoted = {**certificate, "table": {**certificate["table"], "name": 'a "b": $c'}}
    fields = fields_of(deployment(quoted))
    assert len(fields) > 20
    assert fields["name"] == f'a "b": $c, answer {certificate["number"]}'


@pytest.mark.parametrize("scale", ["1/" + "9" * 15_000, "9" * 15_000, "1/0", "0", "1e9", ""])
def test_an_amount_that_no_noise_has_is_no_certificate(certificate, scale):
    key = new_key()
    forged = copy.deepcopy({name: value for name, value in certificate.items() if name != "signature"})
    body = json.loads(forged["chain"]["charge"]["body"])
    body["events"] = forged["events"] = [{"kind": "LaplaceNoise", "scale": scale, "sensitivity": "9" * 15_000}]
    entry = forged["chain"]["charge"]
    entry["body"] = canonical(body)
    entry["hash"] = link(entry["previous"], entry["body"])
    forged["public_key"] = key.public
    forged["signature"] = key.sign(forged)
    with pytest.raises(LedgerError, match="the certificate does not verify"):
        verify_certificate(forged)
