"""Figures: what is drawn, not how it looks."""

import matplotlib as mpl
import numpy as np
import pytest

from tests.helpers.simulations import results_of, tally_of

mpl.use("Agg")

from matplotlib import pyplot as plt

from latebloomer import RisingSR, RisingUCBE, SuccessiveHalving
from latebloomer.errors import SettingError
from latebloomer.page.figures import COLORS
from latebloomer.problems import paper_a
from latebloomer.simulation.results.plots import MORE_STYLES, STYLES, styles_of

POLICIES = {"r-ucbe": RisingUCBE(), "r-sr": RisingSR(), "sh": SuccessiveHalving()}
PROBLEM = paper_a()  # the best arm changes at 70 and 188
RUNS = 50


def made(budgets, wrong=(0.5, 0.2, 0.0)):
    """Results in which each policy errs in a given share of the runs, SH never."""
    tallies = []
    for budget in budgets:
        best = PROBLEM.best(budget)
        errs = np.arange(RUNS) < RUNS * np.array(wrong)[:, None]
        tally = tally_of(POLICIES, PROBLEM.means(budget), budget)
        pulls = np.random.default_rng(budget).integers(1, budget // 5, (3, RUNS, 5))
        tally.add(0, np.where(errs, (best + 1) % 5, best), pulls)
        tallies.append(tally)
    return results_of(PROBLEM, tallies)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("name", "written", "head"),
    [("p.png", "p.png", b"\x89PNG"), ("p.PDF", "p.PDF", b"%PDF"), ("p", "p.png", b"\x89PNG"),
     ("p.", "p.png", b"\x89PNG")],
)  # fmt: skip
def test_the_name_of_the_file_says_the_format(tmp_path, name, written, head):
    made([100]).plot(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [written]
    assert (tmp_path / written).read_bytes().startswith(head)
    assert plt.get_fignums() == []


def lines_by_label(ax):
    return {line.get_label(): line for line in ax.get_lines()}


def test_errors_are_drawn_against_the_budget():
    found = made([100, 200, 400])
    ax = found.plot()
    assert ax.get_xscale() == "log" and ax.get_yscale() == "linear"
    budgets = "budget T (dashed: the best arm changes)"
    assert (ax.get_xlabel(), ax.get_ylabel()) == (budgets, "error probability")
    assert made([400, 800]).plot().get_xlabel() == "budget T"  # it does not
    lines = lines_by_label(ax)
    assert lines["R-SR"].get_xdata().tolist() == [100, 200, 400]
    assert lines["R-SR"].get_ydata().tolist() == [0.2] * 3
    assert lines["SH"].get_ydata().tolist() == [0.0] * 3
    assert [line.get_color() for line in lines.values()][:3] == list(COLORS[:3])
    assert len(ax.collections) == 3  # a band each
    named = [(text.get_text(), text.get_color()) for text in ax.texts]  # where lines end
    assert named == [("SH", COLORS[2]), ("R-SR", COLORS[1]), ("R-UCBE", COLORS[0])]
    band, row = ax.collections[1].get_paths()[0].get_extents(), found.rows()[3]
    assert (row["policy"], row["budget"]) == ("r-sr", 100)
    assert (band.y0, band.y1) == pytest.approx((row["error_low"], row["error_high"]))
    dashed = [line for line in ax.get_lines() if line.get_linestyle() == "--"]
    assert [line.get_xdata()[0] for line in dashed] == [188]  # where the best arm changes


def test_on_a_log_axis_no_error_is_an_open_marker_at_the_bound():
    found = made([100, 200])
    ax = found.plot(log=True)
    assert ax.get_yscale() == "log"
    assert np.isnan(lines_by_label(ax)["SH"].get_ydata()).all()  # a gap, not a line across
    (bound,) = (line for line in ax.get_lines() if line.get_marker() == "v")
    assert bound.get_markerfacecolor() == "none"
    assert bound.get_ydata().tolist() == pytest.approx([1 - 0.05 ** (1 / RUNS)] * 2)


def test_both_are_two_panels():
    found = made([100, 200])
    error, regret = found.plot(what="both")
    assert regret.get_ylabel() == "simple regret"
    assert len(error.texts) == len(regret.texts) == 3
    values = lines_by_label(regret)["R-SR"].get_ydata()
    assert values.tolist() == [row["regret"] for row in found.rows() if row["policy"] == "r-sr"]
    own = plt.subplots(1, 2)[1]
    assert found.plot(what="both", ax=own) == tuple(own)
    with pytest.raises(SettingError, match="2 axes"):
        found.plot(what="both", ax=error)


def test_one_budget_is_a_point_for_each_policy():
    ax = made([200]).plot(log=True)
    assert ax.get_xscale() == "log" and ax.get_xlabel() == "error probability"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["R-UCBE", "R-SR", "SH"]
    assert ax.get_title(loc="left") == "paper-a, T = 200"
    assert [line.get_marker() for line in ax.get_lines()].count("<") == 1  # SH, which never errs


def test_policies_differ_without_colours_too():
    """In black and white: by marker and dashes; ETC, which Rest-Sure often equals, is wide."""
    labels = [*STYLES, *(f"Mine {k}" for k in range(len(MORE_STYLES)))]
    styles = styles_of(labels).values()
    seen = [(style.marker, style.dashes) for style in styles]
    assert len(set(seen)) == len({style.color for style in styles}) == len(labels)
    assert not {"v", "<"} & {marker for marker, _ in seen}  # these mean an upper bound
    assert STYLES["etc"].width > 2 * STYLES["rest-sure"].width
    # markers of lines on each other are at different points
    first, second = (STYLES["etc"].line(place, 10, 22)["markevery"] for place in (7, 8))
    assert first == (7, 10) and second == (8, 10)


def test_the_picture_says_what_its_open_markers_mean():
    said = "open: none seen, at the end of the 95 % interval"
    for size in ((6.4, 4.2), (4, 3)):  # small ones have it in two lines
        for budgets in ([100, 200], [200]):
            figure, ax = plt.subplots(figsize=size, layout="constrained")
            made(budgets).plot(log=True, ax=ax)
            figure.canvas.draw()
            (note,) = (text for text in ax.texts if text.get_text().split() == said.split())
            assert note.get_window_extent().x1 <= ax.get_window_extent().x1
            assert min(text.get_fontsize() for text in ax.texts) >= 9
    assert said not in [text.get_text() for text in made([100, 200]).plot().texts]


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(SettingError, match="what='speed', but what must be 'error', 'regret'"):
        made([100]).plot(what="speed")
    with pytest.raises(SettingError, match=r"must be a file of .*png.*: these can be drawn"):
        made([100]).plot("p.docx")
    with pytest.raises(SettingError, match="there are none"):
        results_of(PROBLEM, []).plot()
