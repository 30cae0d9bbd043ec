"""The demo of holdouts: luck is told as skill by a plain one, less by a noisy one, and the theorem's widths."""

from tacit.learning.scoring.overfitting import by_splitting, fooled, guaranteed


def test_a_plain_holdout_is_fooled_and_a_noisy_one_is_fooled_less():
    plain, noisy = fooled(noisy=False)[-1], [fooled(noisy=True)[-1] for _ in range(6)]
    # The coins have a seed. What the noisy one says has a s.d. of about 0.011, so the mean of six one of 0.005; it is
    # 0.04 below, 8 s.d.: a false alarm has a chance below 1e-12.
    assert plain.told > 0.57
    assert sum(each.told for each in noisy) / 6 < plain.told
    assert all(0.46 < each.truth < 0.54 for each in (plain, *noisy))


def test_the_theorem_beats_new_people_for_each_question_only_beyond_some_hundreds():
    widths = [round(guaranteed(100_000, questions), 3) for questions in (100, 1_000, 10_000)]
    assert widths == [0.107, 0.197, 0.358]
    assert [round(by_splitting(100_000, questions), 3) for questions in (100, 1_000, 10_000)] == [0.064, 0.23, 0.803]
    assert guaranteed(100_000, 500) > by_splitting(100_000, 500)
    assert guaranteed(100_000, 600) < by_splitting(100_000, 600)
