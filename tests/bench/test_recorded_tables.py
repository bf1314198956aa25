"""The recorded tables of the package: what they hold, how small they are, and their halves."""

import numpy as np
import pytest

from latebloomer.bench import recorded_tables
from latebloomer.bench.curve_sets import names_of, read_sets
from latebloomer.bench.recorded_tables import DESIGN, FRESH, REPORT, read_collection


def test_the_file_is_small_and_holds_what_its_page_says():
    assert recorded_tables.FILE.stat().st_size <= 800_000
    page = recorded_tables.FILE.with_suffix(".md").read_text(encoding="utf-8")
    for name in ("tables", "fresh"):
        kept = read_collection(name)
        problems, splits, learners, pulls = kept.valid.shape
        assert f"| `{name}` | {problems} | {splits} | {learners} | {pulls} |" in page
        assert (len(kept.problems), len(kept.learners)) == (problems, learners)
        assert len(set(kept.problems)) == problems
        for scores in (kept.valid, kept.test):
            assert scores.shape == kept.valid.shape
            assert scores.min() >= -1 and scores.max() <= 1
        for seconds in (kept.train_seconds, kept.score_seconds):
            assert seconds.min() > 0 and seconds.max() < 1


def test_halves_follow_from_names_alone_and_are_apart():
    problems, skipped = read_sets(names_of(["tables"]))
    assert not skipped
    names = {group: [one.name for one in problems if one.group == group]
             for group in (DESIGN, REPORT, FRESH)}  # fmt: skip
    assert {group: len(own) for group, own in names.items()} == {DESIGN: 27, REPORT: 26, FRESH: 26}
    assert all(recorded_tables.is_for_design(name) for name in names[DESIGN])
    assert not any(recorded_tables.is_for_design(name) for name in names[REPORT])
    one = problems[0]
    assert one.runs.shape == one.test.shape == one.seconds.shape == (12, 3, 100)
    assert np.array_equal(one.means, one.runs.mean(axis=1))


def test_what_is_packed_comes_back_within_its_rounding(rng, tmp_path):
    shape = (2, 3, 4, 50)
    arrays = {
        "problems": ["a", "b"], "learners": ["w", "x", "y", "z"],
        "valid": rng.uniform(-1, 1, shape), "test": rng.uniform(-1, 1, shape),
        "train_seconds": 10 ** rng.uniform(-6, 4, shape),
        "score_seconds": 10 ** rng.uniform(-6, 4, shape),
    }  # fmt: skip
    file = tmp_path / "kept.npz"
    np.savez_compressed(file, **recorded_tables.packed_collection("toy", arrays))
    kept = read_collection("toy", file)
    assert (kept.problems, kept.learners) == (arrays["problems"], arrays["learners"])
    for what in ("valid", "test"):
        assert np.abs(getattr(kept, what) - arrays[what]).max() <= 0.5001e-4
    for what in ("train_seconds", "score_seconds"):
        assert getattr(kept, what) == pytest.approx(arrays[what], rel=0.022)


def test_differences_of_any_sign_come_back(rng):
    numbers = rng.integers(-16_000, 16_000, (3, 40))
    assert np.array_equal(recorded_tables.unpacked(recorded_tables.packed(numbers)), numbers)
