"""The demo of holdouts: luck is told as skill by a plain one, less by a noisy one, and the theorem's widths."""

from tacit_classroom.overfitting import Overfitting, Told, by_splitting, fooled, guaranteed


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


def test_the_picture_shows_the_numbers_of_the_text(tmp_path):
    plain, noisy = Told(11, 0.565, 0.506, 0.502), Told(11, 0.565, 0.517, 0.502)
    story = Overfitting((plain,), (noisy,))
    drawn = story.plot(tmp_path / "story.svg").read_text()
    assert "A plain holdout reports 50.6% for pure luck; with noise it reports 51.7%" in drawn
    assert all(
        words in drawn for words in ("on the training rows", "the truth, of new people", "noisy answers, at best")
    )
    told, promised = story.plot().to_dict()["hconcat"]
    values = {(each["line"], each["y"]) for layer in told["layer"] for each in _values(layer) if "line" in each}
    assert values == {
        ("on the training rows", 0.565),
        ("a plain holdout says", 0.506),
        ("a noisy holdout says", 0.517),
        ("the truth, of new people", 0.502),
    }
    widths = {each["y"] for layer in promised["layer"] for each in _values(layer)}
    assert guaranteed(100_000, 1_000) in widths
    assert by_splitting(100_000, 1_000) in widths


def _values(layer):
    return layer.get("data", {}).get("values", [])
