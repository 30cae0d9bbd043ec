"""The pages that teach: open to everybody, quick whatever is typed, and their numbers are the mechanisms' own."""

import asyncio
import re
from fractions import Fraction
from html import unescape

import httpx
import pytest

import tacit
from tacit.server import Visits, make_app
from tacit_classroom.theory import experiments, risks, selections
from tacit_classroom.theory.lessons import TOPICS, found_in, picture_of
from tests.server.conftest import House

ODD = (
    "nan",
    "inf",
    "-1",
    "1e400",
    "1e-400",
    "9" * 5000,
    "0x10",
    "1_000",
    "½",
    "٣",
    "\x00",
    "<b>&\"'",
    "{{ 7 * 7 }}",
    "1,5",
)


def look(house: House, *addresses: str, headers: dict[str, str] | None = None) -> list[httpx.Response]:
    """Return what a browser without a cookie is shown, by one server."""

    async def exchange() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app=make_app(house.desk, Visits(b"k" * 32)), raise_app_exceptions=False)
        accepted = {"Accept": "text/html", **(headers or {})}
        async with httpx.AsyncClient(transport=transport, base_url="https://test", headers=accepted) as client:
            return [await client.get(address) for address in addresses]

    return asyncio.run(exchange())


def numbers_of(page: httpx.Response) -> dict[str, str]:
    """Return the numbers of a page by their words."""
    return {unescape(words): number for words, number in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page.text)}


def without_marks(picture: str) -> str:
    """Return a picture without the numbers of its clip paths, which are counted on from picture to picture."""
    return re.sub(r"clip\d+", "clip", picture)


def test_the_topics_are_open_and_listed_with_their_pictures(house):
    (index,) = look(house, "/theory")
    assert index.status_code == 200
    for name in TOPICS:
        assert f'href="/theory/{name}"' in index.text
        assert f'src="/theory/{name}.svg"' in index.text
    assert "script-src 'self'" in index.headers["content-security-policy"]
    assert "unsafe" not in index.headers["content-security-policy"]
    assert look(house, "/theory/nothing", "/theory/nothing.svg")[0].status_code == 404


@pytest.mark.parametrize("name", TOPICS)
def test_a_page_its_picture_and_its_part_show_one_draw(house, name):
    (page,) = look(house, f"/theory/{name}")
    assert page.status_code == 200
    address = unescape(re.findall(r'<figure><img src="([^"]+)"', page.text)[0])
    (picture,) = look(house, address)
    assert (picture.status_code, picture.headers["content-type"]) == (200, "image/svg+xml")
    assert picture.text.startswith("<svg")
    assert picture.headers["content-security-policy"].startswith("default-src 'none'")
    picture_of.cache_clear()  # another worker, which has drawn nothing
    assert without_marks(look(house, address)[0].text) == without_marks(picture.text)
    if TOPICS[name].is_drawn:
        drawn = httpx.URL(address).params["drawn"]
        assert (
            look(
                house,
                address.replace(f"drawn={drawn}", "drawn=7"),
                address.replace(f"drawn={drawn}", "drawn=" + "9." * 3000 + "9"),
            )[1].status_code
            == 200
        )
    (part,) = look(house, f"/theory/{name}", headers={"Tacit-Part": "live"})
    assert "<html" not in part.text
    assert numbers_of(part).keys() == numbers_of(page).keys()
    assert not house.desk.ledger.entries() or all(entry.kind != "charge" for entry in house.desk.ledger.entries())


@pytest.mark.parametrize("name", TOPICS)
def test_whatever_is_typed_the_page_answers_in_words(house, name):
    fields = TOPICS[name].fields
    asked = [(field, str(httpx.QueryParams({field.name: text}))) for field in fields for text in ODD]
    pages = look(house, *(f"/theory/{name}?{query}" for _, query in asked))
    for (field, _), page in zip(asked, pages, strict=True):
        assert page.status_code == 422
        may_be = "must be one of" if field.choices else f"must be a number from {field.least} to {field.most}."
        assert may_be in page.text
        assert "<img" not in page.text.partition("<main")[2]
        assert "<b>&" not in page.text
    pictures = look(house, *(f"/theory/{name}.svg?{query}" for _, query in asked))
    assert {picture.status_code for picture in pictures} == {422}
    last = fields[0]
    twice = f"/theory/{name}?{last.name}=nan&{last.name}={last.begins}&other=1&drawn=..&{fields[-1].name}="
    assert [reply.status_code for reply in look(house, twice, twice.replace("?", ".svg?"))] == [200, 200]


@pytest.mark.parametrize("name", TOPICS)
def test_the_ends_of_every_input_are_shown(name):
    for low in (True, False):
        given = {}
        for field in TOPICS[name].fields:
            ends = (field.choices[0], field.choices[-1]) if field.choices else (field.least, field.most)
            given[field.name] = field.read(ends[0] if low else ends[1])
        found = found_in(name, tuple(given.items()))
        assert all(number for _, number in found.rows)
        assert found_in(name, tuple(given.items()), found.drawn).drawn == found.drawn
        picture = TOPICS[name].draw(found)
        assert "NaN" not in str(picture)
        assert "title" not in picture


@pytest.mark.parametrize("name", TOPICS)
def test_the_same_in_python_runs(name, capsys):
    found = found_in(name, tuple((field.name, field.read("")) for field in TOPICS[name].fields))
    exec(compile(found.python, name, "exec"), {})
    printed = capsys.readouterr().out
    expected = {
        "randomized-response": "0.95 interval",
        "odds": "guessed right: 0.7",
        "reconstruction": "at most, by any attack on ε = 1",
    }
    assert expected.get(name, "") in printed
    if name == "laplace-or-gaussian":
        assert printed.startswith(f"{found.here.laplace} {found.here.gaussian}\n")
    if name == "composition":
        assert found.total in printed.splitlines()[0]


def test_the_debiased_estimate_is_the_truth_but_for_its_error_and_the_reports_are_not():
    """Fails by chance at most once in 10^10: the mechanism's own error at that confidence."""
    found = experiments.poll(people=100_000, share=Fraction(30), epsilon=Fraction(1))
    last, asking = found.polls[-1], tacit.RandomizedResponse(epsilon=1)
    bound = asking.error(people=100_000, confidence=Fraction(10**10 - 1, 10**10))
    assert last.yes == 30_000
    assert bound < 0.03
    assert abs(last.estimate - 0.3) <= bound
    assert abs(last.reported / last.people - 0.3) > 0.08  # 0.408 expected: what debiasing takes out
    assert [poll.people for poll in found.polls] == [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000]
    assert all(abs(poll.yes - 0.3 * poll.people) < 1 for poll in found.polls)


def test_the_errors_shown_are_the_mechanisms_own(house):
    (page,) = look(house, "/theory/laplace-or-gaussian?counts=50&epsilon=0.5&delta=1e-9")
    shown = numbers_of(page)
    laplace = tacit.Laplace(sensitivity=50, epsilon=0.5).error(coordinates=50)
    gaussian = tacit.Gaussian(sensitivity=7.0711, epsilon=0.5, delta=1e-9).error(coordinates=50, dtype=int)
    assert shown["Laplace: no count is off by more than"] == f"{laplace:,} (95 %)"
    assert shown["Gaussian: no count is off by more than"] == f"{gaussian:,} (95 %)"
    assert laplace > gaussian
    few = experiments.compare_noises(counts=1, epsilon=Fraction(1), delta=Fraction(1, 10**6))
    assert few.here.laplace < few.here.gaussian


def test_the_attacker_reaches_the_bound_and_no_more():
    """Fails by chance less than once in 10^10: by Hoeffding with probability 2·exp(-2·0.035²·10000) at most."""
    found = experiments.attack_odds(epsilon=Fraction(1), belief=Fraction(10))
    meaning = tacit.explain(1).one
    assert (found.after, found.most_right) == (meaning.posterior(Fraction(1, 10)), meaning.accuracy)
    assert abs(found.right / experiments.TRIES - float(meaning.accuracy)) < 0.035
    assert all(after >= before for before, after in found.curve)


def test_the_totals_shown_are_those_of_compose(house):
    (page,) = look(house, "/theory/composition?questions=50&epsilon=0.1&delta=1e-6")
    batch = tacit.compose([tacit.Laplace(epsilon=0.1)] * 50, delta=1e-6)
    shown = numbers_of(page)
    assert shown["The smallest total"] == f"{batch.loss} ({batch.way})"
    assert {way.name: str(way.loss) for way in batch.ways if way.loss}.items() <= shown.items()


def test_exact_counts_give_the_secrets_back_and_a_budget_does_not():
    """Fails by chance less than once in 10^10.

    A random 100 by 20 matrix of coins has less than full rank with probability below 20²·2^-99. At ε = 0.1 a
    guess is right with probability 0.525 at most, whatever is known of the other secrets, so that 70 % of 400 are right
    with probability below exp(-2·0.175²·400), by Azuma.
    """
    found = experiments.rebuild_secrets(questions=100, epsilon=Fraction(1, 10))
    assert found.share(experiments.EXACT) == 1
    assert found.share(experiments.BUDGET) < 0.7
    assert dict(found.guesses)[experiments.EXACT] == found.secrets
    large = experiments.rebuild_secrets(questions=100, epsilon=Fraction(10**6))
    assert large.share(experiments.BUDGET) == 1  # noise is drawn: with so little of it the attack succeeds


def test_one_address_cannot_take_all_turns(house):
    async def rush() -> list[int]:
        transport = httpx.ASGITransport(app=make_app(house.desk, Visits(b"k" * 32)))
        async with httpx.AsyncClient(transport=transport, base_url="https://test") as client:
            asked = [client.get("/theory/composition", headers={"Accept": "text/html"}) for _ in range(40)]
            return [reply.status_code for reply in await asyncio.gather(*asked)]

    statuses = asyncio.run(rush())
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 20


def test_the_winner_is_found_where_its_error_is_below_its_lead():
    """Fails by chance at most once in 10^10, by the mechanism's own error, in each of 100 picks."""
    confidence = Fraction(10**12 - 1, 10**12)
    picking = tacit.NoisyMax(epsilon=Fraction(2), monotone=True)
    assert picking.error(candidates=20, confidence=confidence) < selections.LEAD
    found = selections.pick_best(candidates=20, epsilon=Fraction(2))
    assert {way: share for way, at, share in found.along if at == found.epsilon}["max"] == 1


def test_the_risk_of_a_delta_is_that_of_as_many_coins():
    assert risks.risk_of(100, Fraction(1, 100)) == pytest.approx(1 - 0.99**100, rel=1e-12)
    assert selections.watch_count(threshold=250, epsilon=Fraction(1)).true_day == 30
