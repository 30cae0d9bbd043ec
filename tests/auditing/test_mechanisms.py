"""Every mechanism we ship is audited on inputs that try it: what is claimed holds, and a planted shortage is seen."""

import pytest

from tacit.auditing.mechanisms import SUBJECTS, audit_mechanism
from tacit.errors import InvalidParameter
from tacit.local.choosing import FREQUENCIES

# A false alarm of a test has a chance of at most 1e-9.
SURE = "0.999999999"
# a shortage that the usual number of draws must see; half of the noise where nothing is said
SHORTAGE = {"quantile": "0.8", "private-keys": "0.5", "local-mean": "0.8"}
# mechanism -> draws after which 0.3 is demonstrated, and half the noise seen, but for a chance far below 1e-6
QUICK = {
    "laplace": 8_000,
    "laplace-vector": 24_000,
    "randomized-response": 8_000,
    "local-response": 12_000,
}


@pytest.mark.parametrize("name", QUICK)
def test_a_mechanism_keeps_its_claim_and_half_the_noise_does_not(name: str):
    right = audit_mechanism(name, epsilon=1, draws=QUICK[name], confidence=SURE)
    assert not right.violated, str(right)
    assert right.demonstrated > 0.3, "this pair of inputs does not try the mechanism"
    assert audit_mechanism(name, epsilon=1, draws=QUICK[name], shortage="0.5").violated


@pytest.mark.parametrize("name", [name for name in SUBJECTS if name not in QUICK])
def test_every_other_mechanism_can_be_drawn_from(name: str):
    assert not audit_mechanism(name, epsilon=1, draws=300, confidence=SURE).violated


@pytest.mark.slow
@pytest.mark.parametrize("name", SUBJECTS)
def test_every_mechanism_keeps_its_claim_at_full_size_and_a_planted_shortage_is_seen(name: str):
    right = audit_mechanism(name, epsilon=1, confidence=SURE)
    assert not right.violated, str(right)
    short = audit_mechanism(name, epsilon=1, shortage=SHORTAGE.get(name, "0.5"))
    assert short.violated, str(short)


def test_a_tenth_too_little_laplace_noise_is_seen_from_the_list():
    assert audit_mechanism("laplace", epsilon=1, shortage="0.1").violated


def test_every_local_protocol_is_listed():
    assert {f"local-{name}" for name in FREQUENCIES} <= set(SUBJECTS)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("laplac", {"epsilon": 1}),
        ("laplace", {"epsilon": 0}),
        ("laplace", {"epsilon": 1, "delta": "1e-6"}),
        ("gaussian", {"epsilon": 1, "delta": 0}),
        ("laplace", {"epsilon": 1, "shortage": 1}),
        ("laplace", {"epsilon": 1, "draws": 5}),
    ],
)
def test_bad_words_are_refused(name: str, words: dict):
    with pytest.raises(InvalidParameter):
        audit_mechanism(name, **words)
