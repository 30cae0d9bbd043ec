"""What a ledger stores of an event is for ever: the name of its kind, of its fields, and how each amount is written."""

import json
from dataclasses import fields
from fractions import Fraction

import pytest

from tacit.errors import InvalidParameter
from tacit.privacy.loss import (
    KINDS,
    ExponentialChoice,
    FailureChance,
    GaussianNoise,
    KeyThreshold,
    LaplaceNoise,
    PureChoice,
    StaircaseNoise,
    SubsampledGaussian,
    event_from_dict,
    event_to_dict,
)

# Never change a line here: ledgers hold these bytes.
STORED = {
    LaplaceNoise(Fraction(7, 2), Fraction(3)): '{"kind":"LaplaceNoise","scale":"7/2","sensitivity":"3"}',
    GaussianNoise(Fraction(9), Fraction(5, 4)): (
        '{"kind":"GaussianNoise","scalar":false,"sensitivity_squared":"5/4","sigma":"9"}'
    ),
    GaussianNoise(Fraction(9), Fraction(1), scalar=True): (
        '{"kind":"GaussianNoise","scalar":true,"sensitivity_squared":"1","sigma":"9"}'
    ),
    StaircaseNoise(Fraction(1, 3), Fraction(8), Fraction(2)): (
        '{"epsilon":"1/3","kind":"StaircaseNoise","sensitivity":"8","width":"2"}'
    ),
    KeyThreshold(Fraction(1, 10**6)): '{"delta":"1/1000000","kind":"KeyThreshold"}',
    FailureChance(Fraction(1, 10**7)): '{"delta":"1/10000000","kind":"FailureChance"}',
    PureChoice(Fraction(1, 10)): '{"epsilon":"1/10","kind":"PureChoice"}',
    ExponentialChoice(Fraction(0)): '{"epsilon":"0","kind":"ExponentialChoice"}',
    SubsampledGaussian(Fraction(3, 2), Fraction(1), Fraction(1, 100)): (
        '{"kind":"SubsampledGaussian","rate":"1/100","sensitivity_squared":"1","sigma":"3/2"}'
    ),
}


def text_of(event) -> str:
    return json.dumps(event_to_dict(event), sort_keys=True, separators=(",", ":"))


def test_one_of_each_kind_is_kept():
    assert {type(event) for event in STORED} == set(KINDS.values())
    assert list(KINDS) == [kind.__name__ for kind in KINDS.values()]


@pytest.mark.parametrize("event", STORED, ids=lambda event: type(event).__name__)
def test_it_is_stored_as_ever_and_read_back(event):
    assert text_of(event) == STORED[event]
    assert event_from_dict(json.loads(STORED[event])) == event


def test_a_gaussian_record_without_scalar_is_one_of_a_vector():
    record = {"kind": "GaussianNoise", "sigma": "2", "sensitivity_squared": "1"}
    assert event_from_dict(record) == GaussianNoise(Fraction(2), Fraction(1), scalar=False)


@pytest.mark.parametrize("event", STORED, ids=lambda event: type(event).__name__)
def test_a_record_that_lacks_a_field_or_has_another_is_no_event(event):
    record = event_to_dict(event)
    for name in {field.name for field in fields(event)} - {"scalar", "rounds"}:
        with pytest.raises(InvalidParameter, match="damaged"):
            event_from_dict({key: value for key, value in record.items() if key != name})
        with pytest.raises(InvalidParameter, match="damaged"):
            event_from_dict(record | {name: "-1"})
    with pytest.raises(InvalidParameter, match="damaged"):
        event_from_dict(record | {"more": "1"})


@pytest.mark.parametrize("rate", ["0", "101/100", "-1/2"])
def test_a_rate_is_a_chance_that_is_not_zero(rate):
    record = {"kind": "SubsampledGaussian", "rate": rate, "sensitivity_squared": "1", "sigma": "1"}
    with pytest.raises(InvalidParameter, match="damaged"):
        event_from_dict(record)


def test_a_kind_of_a_later_version_is_refused_and_never_skipped():
    with pytest.raises(InvalidParameter, match="newer version"):
        event_from_dict({"kind": "SomethingElse", "epsilon": "1"})
