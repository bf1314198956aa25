"""The report in a browser, scripts off: fit for a phone and a desk, light and dark."""

import random
from itertools import count

import pytest
from page_checks import check_page

from latebloomer import race


def curve(slow, best, end=None, fail=None):
    def scores(seed):
        rng = random.Random(seed)
        for n in count(1) if end is None else range(1, end):
            if n == fail:
                raise ValueError("out of <memory> & time")
            yield best * n / (n + slow) + rng.gauss(0, 0.01)

    return scores


HOSTILE = {
    "late": curve(37, 1.0),
    "<script>hacked = 1</script>": curve(10, 0.88),
    "<img src=x onerror='hacked = 1'>": curve(12, 0.85),
    '"><svg onload=hacked=1>': curve(11, 0.8),
    "a_name_without_a_break_" * 6: curve(1, 0.78),
    "ends by itself": curve(4, 0.7, end=30),
    "fails": curve(4, 0.7, fail=20),
}
MANY = {f"learner number {k}": curve(3 + k, 0.5 + k / 60) for k in range(40)}
RACES = {
    "hostile": lambda: race(HOSTILE, 900, journal=None, progress=False, winner_share=0.2),
    "many": lambda: race(MANY, 1500, journal=None, progress=False),
    "losses": lambda: race(
        {"low": lambda: (0.1 + 10 / n for n in count(1)), "high": lambda: (3e6 for _ in count())},
        60, journal=None, progress=False, maximize=False,
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=RACES)
def report(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    return request.param, RACES[request.param]().report(folder / f"{request.param}.html")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [360, 768, 1400])
def test_it_fits_and_can_be_read(new_page, report, picture, width, dark):
    name, file = report
    page = new_page(width=width, scripts=False, dark=dark)
    page.open(file.as_uri())
    for is_open in ("true", "false"):
        details = "document.querySelectorAll('details')"
        page.value(f"{details}.forEach((one) => {{ one.open = {is_open} }})")
        check_page(page)
    page.screenshot(picture(f"{name}-{width}-{'dark' if dark else 'light'}"))
    assert page.requests() == [file.as_uri()]


def test_names_are_text(new_page, tmp_path):
    file = RACES["hostile"]().report(tmp_path / "race.html")
    page = new_page()  # scripts on: nothing of a name may run
    page.open(file.as_uri())
    assert page.value("typeof hacked") == "undefined"
    for name in HOSTILE:
        assert name in page.value("document.querySelector('#rows').textContent")
    check_page(page)


def test_individual_scores_can_be_hidden(new_page, tmp_path):
    page = new_page(scripts=False)
    page.open(RACES["hostile"]().report(tmp_path / "race.html").as_uri())
    shown = "getComputedStyle(document.querySelector('path.raw')).display"
    assert page.value(shown) == "inline"
    page.value("document.querySelector('label[for=raw]').click()")
    assert page.value(shown) == "none"
