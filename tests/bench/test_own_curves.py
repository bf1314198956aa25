"""A user's own files: numbered rows, replicate runs, finished races, and messages about them."""

import csv
import errno
import os

import numpy as np
import pytest
from typer.testing import CliRunner

from latebloomer import LocalRunner, race, resume
from latebloomer.bench import bench, curve_sets
from latebloomer.bench.curve_sets import read_sets
from latebloomer.bench.own_curves import read_folder
from latebloomer.bench.report import line_styles, what_is_drawn
from latebloomer.cli import app
from latebloomer.errors import CurveError
from tests.helpers.pictures import shows

T = np.arange(1, 31)
CURVES = np.array([0.9 * T / (T + 9), 0.7 * T / (T + 2), 0.5 * T / (T + 1)])


def write(path, header, columns):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *zip(*columns, strict=True)])


def only(folder, **settings):
    (found,), skipped = read_folder(folder, **settings)
    assert not skipped
    return found


LEARNERS = {
    name: lambda own=own: iter(own.tolist()) for name, own in zip("xyz", CURVES, strict=True)
}


def bench_command(*words):
    return CliRunner().invoke(app, ["bench", *map(str, words)])


@pytest.fixture
def folder(tmp_path):
    """Two good problems, in two sets, and one of each kind of bad file."""
    (tmp_path / "deep").mkdir()
    np.savez(tmp_path / "deep" / "good.npz", curves=CURVES)
    write(tmp_path / "good.csv", "abc", CURVES)
    write(tmp_path / "gap.csv", "ab", [[1, "", 4], [2, 3, 5]])
    write(tmp_path / "uneven.csv", "ab", [[1, 2], [2, ""]])
    write(tmp_path / "alone.csv", "a", [[1, 2]])
    write(tmp_path / "short.csv", "ab", [[1], [2]])
    (tmp_path / "notes.txt").write_text("not curves")
    (tmp_path / "broken.npz").write_bytes(b"no archive")
    (tmp_path / "latin.csv").write_bytes(b"a,b\n\xff,1\n")
    return tmp_path


def test_bad_files_are_skipped_and_each_is_named_with_its_reason(folder):
    found, skipped = read_folder(folder)
    assert [(curves.group, curves.name) for curves in found] == [
        ("deep", "good.npz"), (folder.name, "good.csv")
    ]  # fmt: skip
    reasons = {what: why for what, why in skipped}
    assert len(reasons) == 7
    assert "'a' is nan at pull 2" in reasons["gap.csv"]
    assert "unequal length: 'a' ends at pull 2, 'b' ends at pull 1" in reasons["uneven.csv"]
    assert "1 arm, but a problem needs at least 2" in reasons["alone.csv"]
    assert "1 pull, but a race needs at least 4" in reasons["short.csv"]
    assert "not a file of curves" in reasons["notes.txt"]
    assert "not an .npz" in reasons["broken.npz"] and "cannot be read" in reasons["latin.csv"]


def test_a_folder_without_curves_is_an_error_that_says_so(tmp_path):
    with pytest.raises(CurveError, match="no curves in it that can be used: it is empty"):
        read_folder(tmp_path)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(CurveError, match=r"a\.txt: not a file of curves"):
        read_folder(tmp_path)
    with pytest.raises(CurveError, match="there is no such folder"):
        read_folder(tmp_path / "nowhere")


def test_the_command_writes_a_report_a_table_and_a_picture(folder, tmp_path):
    ran = bench_command(
        folder, "--policies", "r-sr,asha:workers=9", "--budgets", "1,2", "--draws", "2",
        "--sigma", "0.02", "--baseline", "asha", "--out", tmp_path / "out",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    assert "## Skipped: 7" in ran.stdout and "gap.csv: arm 'a' is nan" in ran.stdout
    assert "skipped 7" in ran.stderr
    assert (tmp_path / "out" / "bench.md").read_text() in ran.stdout
    styles = line_styles(["r-sr", "asha:workers=9", "asha"]).values()
    assert shows(tmp_path / "out" / "bench.png", *(style.color for style in styles))
    with (tmp_path / "out" / "bench.csv").open() as file:
        rows = list(csv.DictReader(file))
    # 3 policies with the baseline, 2 sets and all, 2 budgets and all
    assert len(rows) == 27 and {row["budget"] for row in rows} == {"1", "2", "all"}


def test_a_full_disk_keeps_the_old_report_and_the_new_one_is_shown(folder, tmp_path, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    out = tmp_path / "out"
    out.mkdir()
    (out / "bench.md").write_text("old")
    monkeypatch.setattr("os.fsync", full)
    ran = bench_command(folder, "--policies", "r-sr", "--budgets", 1, "--draws", 1, "--out", out)
    assert ran.exit_code == 2 and "OutputError: " in ran.stderr and "# " in ran.stdout
    assert [path.read_text() for path in out.iterdir()] == ["old"]


@pytest.mark.parametrize("name", ["epoch", "step", "Iteration", "index", "", "Unnamed: 0"])
@pytest.mark.parametrize("numbers", [range(30), range(100, 3100, 100)])
def test_a_column_that_numbers_the_rows_is_not_a_learner(tmp_path, name, numbers):
    pandas = pytest.importorskip("pandas")
    named = dict(zip("xyz", CURVES, strict=True))
    write(tmp_path / "a.csv", [name, *named], [numbers, *CURVES])
    pandas.DataFrame(named, index=numbers).to_parquet(tmp_path / "b.parquet")
    np.savez(tmp_path / "c.npz", epoch=numbers, **named)
    found, skipped = read_folder(tmp_path)
    assert len(found) == 3 and not skipped
    assert all(np.array_equal(curves.means, CURVES) for curves in found)


def test_runs_are_one_problem_from_one_file_or_several(tmp_path, rng):
    runs = CURVES[:, None] + 0.01 * rng.standard_normal((3, 11, 30))
    (tmp_path / "one").mkdir()
    (tmp_path / "several").mkdir()
    np.savez(tmp_path / "one" / "digits.npz", curves=runs, names=np.array(["x", "y", "z"]))
    for run in range(11):  # run10 comes after run9, not after run1
        write(tmp_path / "several" / f"digits.run{run}.csv", "xyz", runs[:, run])
    one, several = read_folder(tmp_path)[0]
    assert (several.group, several.name) == ("several", "digits.csv")
    for curves in (one, several):
        assert np.array_equal(curves.runs, runs)
        assert curves.means == pytest.approx(runs.mean(axis=1))
    tables = one.tables(20, seed=0)  # each learner shows one of its own runs, whole
    assert all(
        any(np.array_equal(row, run) for run in runs[arm])
        for table in tables
        for arm, row in enumerate(table)
    )
    assert len(np.unique(tables[:, 0, 0])) > 1


def test_one_run_is_a_curve_and_runs_of_other_learners_or_another_length_are_skipped(tmp_path):
    write(tmp_path / "a.run1.csv", "xyz", CURVES)
    alone = only(tmp_path, sigma=0.1)  # which is for curves
    assert alone.runs is None and alone.sd == 0.1
    write(tmp_path / "a.run2.csv", "xyz", CURVES)
    both = only(tmp_path, sigma=0.1)
    assert both.runs.shape == (3, 2, 30) and both.sd is None
    write(tmp_path / "a.run2.csv", "xyw", CURVES)
    write(tmp_path / "b.run1.csv", "xyz", CURVES)
    write(tmp_path / "b.run2.csv", "xyz", CURVES[:, :20])
    write(tmp_path / "good.csv", "xyz", CURVES)
    found, skipped = read_folder(tmp_path)
    assert [curves.name for curves in found] == ["good.csv"]
    assert dict(skipped) == {
        "a.csv": "a.run2 holds other learners than a.run1",
        "b.csv": "runs of unequal length: 30 pulls in b.run1, 20 in b.run2",
    }


def test_a_finished_race_is_a_problem_up_to_where_all_are_known(tmp_path):
    verdict = race(LEARNERS, budget=40, journal=tmp_path / "race.db", policy="r-sr",
                   progress=False)  # fmt: skip
    pulls = [arm.pulls for arm in verdict.learners]
    known = min(pulls)
    assert known < max(pulls)
    curves = only(tmp_path)
    assert np.array_equal(curves.means, CURVES[:, :known])
    assert f"compared at pull {known}, up to which all are known" in curves.note
    report = bench(tmp_path, ["r-sr"], [1.0], 2)
    assert f"- race.db: learners are compared at pull {known}" in str(report)


def test_losses_are_turned_and_learners_that_failed_are_left_out(tmp_path):
    def breaks():
        yield 0.5
        raise RuntimeError("no")

    race(LEARNERS | {"w": breaks}, budget=60, journal=tmp_path / "race.db", policy="rr",
         maximize=False, runner=LocalRunner(retries=0), progress=False)  # fmt: skip
    curves = only(tmp_path)
    assert np.array_equal(curves.means, -CURVES[:, : curves.length])
    assert curves.note.endswith("without w, which failed")


def test_unfinished_races_other_databases_and_files_next_to_them(tmp_path):
    def interrupted():
        yield from (0.1, 0.2)
        raise KeyboardInterrupt

    race(LEARNERS, budget=40, journal=tmp_path / "finished.db", progress=False)
    with pytest.raises(KeyboardInterrupt):
        race(LEARNERS | {"w": interrupted}, budget=40, journal=tmp_path / "unfinished.db",
             progress=False)  # fmt: skip
    (tmp_path / "u.db.checkpoints").mkdir()
    for name in ("finished.db-wal", "finished.db.lock", "u.db.checkpoints/arm-0.npz"):
        (tmp_path / name).touch()
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\x00 and no more")
    found, skipped = read_folder(tmp_path)
    assert [curves.name for curves in found] == ["finished.db"]
    assert [what for what, _ in skipped] == ["broken.db", "unfinished.db"]
    assert dict(skipped)["broken.db"].startswith("is not a journal")
    assert dict(skipped)["unfinished.db"] == "the race is not finished"


def test_a_learner_that_joined_an_extended_race_has_its_curve(tmp_path):
    first, joins = ({name: LEARNERS[name] for name in names} for names in ("xy", "z"))
    race(first, budget=20, journal=tmp_path / "race.db", policy="rr", progress=False)
    resume(tmp_path / "race.db", first, budget=36, add=joins, progress=False)
    assert np.array_equal(only(tmp_path).means, CURVES[:, :12])


def test_the_report_mentions_draws_only_if_something_is_drawn(tmp_path):
    np.savez(tmp_path / "a.npz", curves=CURVES)
    recorded = str(bench(tmp_path, ["r-sr"], [1.0], 3))
    assert "Rewards are as recorded, the learners in 3 random orders; 1 of" in recorded
    assert "draws of" not in recorded
    assert "3 draws of the noise; 1 of" in str(bench(tmp_path, ["r-sr"], [1.0], 3, sigma=0.1))
    np.savez(tmp_path / "b.npz", curves=np.stack([CURVES, CURVES], axis=1))
    both = read_folder(tmp_path, 0.1)[0]
    assert what_is_drawn(both[1:], 5) == "5 draws of a recorded run that all learners share"
    said = "5 draws of the noise and of a recorded run that all learners share"
    assert what_is_drawn(both, 5) == said


def test_a_set_without_its_data_says_where_they_come_from(tmp_path, monkeypatch):
    for where, said in [(None, "is not set"), (str(tmp_path), "there is no")]:
        monkeypatch.delenv("LATEBLOOMER_DATA", raising=False)
        if where:
            monkeypatch.setenv("LATEBLOOMER_DATA", where)
        for name, source in [
            ("lcdb10", "`latebloomer download lcdb FOLDER` makes one"),
            ("lcdb11-linear", "no command fetches lcdb11: its curves are LCDB 1.1"),
            ("taskset", "no command fetches taskset: its curves are in github.com/"),
            ("srb-imdb", "no command fetches srb-imdb: its curves are in github.com/"),
            ("yahpo", "no command fetches yahpo: it was evaluated with the model lcbench of"),
        ]:
            ran = bench_command("--quiet", "--sets", name)
            assert ran.exit_code == 2 and ran.stderr.count("\n") == 1
            for words in (name, said, source, "the sets tables and random need no files"):
                assert words in ran.stderr, words
        _, skipped = read_sets([*curve_sets.PUBLIC, "paper-b"])
        names = ", ".join(what for what, _ in skipped).split(", ")
        assert sorted(names) == sorted(curve_sets.PUBLIC)
