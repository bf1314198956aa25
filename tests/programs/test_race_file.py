"""Races of programs from the command line: a TOML file, or --run."""

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from latebloomer.cli import app
from latebloomer.errors import SettingError
from latebloomer.programs.race_file import race_of, read_race_file

pytestmark = pytest.mark.filterwarnings("ignore:the first .* arrived at once")
SCRIPT = """
import sys, time
best = float(sys.argv[1])
for n in range(1, 13):
    print(f"epoch {n} val_acc={best * n / (n + 1)}")
    time.sleep(0.001)
print("the end")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    return CliRunner().invoke(app, [*map(str, words)])


def test_a_grid_is_raced_resumed_and_finished(folder):
    (folder / "race.toml").write_text(
        f"""
        score = "val_acc"
        trainings = 1.5
        full_steps = 12
        policy = "r-sr"
        run = "'{sys.executable}' -S train.py {{best}}"
        [grid]
        best = [0.5, 0.9]
        """
    )
    done = run("race", "race.toml", "--journal", "r.db", "--quiet", "--finish")
    assert done.exit_code == 0, done.output
    assert "Keep best=0.9" in done.output and done.output.rstrip().endswith("the end")
    assert "Log: r.db.logs/best=0.9.log" in done.output
    more = run("resume", "r.db", "race.toml", "--trainings", "2", "--quiet")
    assert more.exit_code == 0 and "Keep best=0.9" in more.output, more.output
    (folder / "race.toml").write_text(
        (folder / "race.toml").read_text().replace("0.5, 0.9", "0.5, 0.8")
    )
    other = run("resume", "r.db", "race.toml", "--quiet")
    assert other.exit_code == 2 and "best=0.8" in other.output


def test_programs_are_named_on_the_command_line_and_an_option_replaces_the_file_s(folder):
    program = f"'{sys.executable}' -S train.py"
    programs = ["--run", f"low={program} 0.5", "--run", f"high={program} 0.9"]
    words = [*programs, "--score", "val_acc", "--budget", "14", "--journal", "r.db", "--quiet"]
    done = run("race", *words)
    assert done.exit_code == 0 and "Keep high" in done.output, done.output
    again = run("resume", "r.db", *programs, "--score", "val_acc", "--quiet")
    assert again.exit_code == 0 and "Keep high" in again.output, again.output
    (folder / "race.toml").write_text(
        f"score = 'val_acc'\nbudget = 20\n[learners]\n"
        f'low = "{program} 0.5"\nhigh = {{run = "{program} {{best}}", best = 0.9}}\n'
    )
    file = run("race", "race.toml", "--budget", "12", "--journal", "f.db", "--quiet", "--json")
    assert file.exit_code == 0 and '"spent": 12' in file.output, file.output


def test_a_race_is_resumed_from_another_folder(folder, monkeypatch):
    (folder / "sub").mkdir()
    (folder / "train.py").rename(folder / "sub" / "train.py")
    (folder / "sub" / "race.toml").write_text(
        f"score='val_acc'\nbudget=6\nrun=\"'{sys.executable}' -S train.py {{best}}\"\n"
        "[grid]\nbest=[0.5, 0.9]"
    )
    first = run("race", "sub/race.toml", "--journal", "r.db", "--quiet")
    assert first.exit_code == 0 and "Runs in: sub\n" in first.output, first.output
    monkeypatch.chdir(folder / "sub")
    again = run("resume", "../r.db", "race.toml", "--budget", "8", "--quiet")
    assert again.exit_code == 0 and "Runs in: .\n" in again.output, again.output


def test_the_plan_of_a_file_is_that_of_its_race(folder):
    (folder / "race.toml").write_text(
        "score='acc'\nrun='train {lr} {steps}'\nfull_steps=300\ntrainings=2\n[grid]\nlr=[1,2,3]"
    )
    plan = run("plan", "race.toml")
    assert plan.exit_code == 0 and "Plan for 3 learners" in plan.output, plan.output
    assert "2 full trainings = 20 pulls of 1/10 training each" in plan.output
    assert "= 30 pulls" in run("plan", "race.toml", "--trainings", "3").output
    for words in (["plan", "--budget", "9"], ["plan", "race.toml", "--learners", "3"]):
        assert "Give --learners" in run(*words).output


def test_runs_up_to_a_step_have_ten_pulls():
    given = {"run": "train {lr} {steps}", "score": "acc", "trainings": 2, "full_steps": 300}
    made = race_of(given | {"grid": {"lr": [0.1, 0.01]}}, Path())
    assert made.settings == {"trainings": 2, "pulls_per_training": 10}
    assert [*made.learners] == ["lr=0.1", "lr=0.01"]
    assert made.learners["lr=0.1"].settings["command"] == "train 0.1 {steps}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("scores = 'acc'", "'scores' is unknown. Did you mean 'score'?"),
        ("score = 'acc'\nrun = 'x'", r"give \[grid\]"),
        ("score = 'acc'\n[grid]\nlr = [1]", "run is missing. Add a line"),
        ("run = 'train {lr}'\n[grid]\nlr = [1]", "score is missing"),
        ("score = 'acc'\nrun = 'train {rate}'\n[grid]\nlr = [1]", r"\{rate\} in .* is unknown"),
        ("score = ", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path, text, said):
    (tmp_path / "race.toml").write_text(text)
    with pytest.raises(SettingError, match=rf"race\.toml.*{said}"):
        read_race_file(tmp_path / "race.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["race", "--budget", "9"], "The learners are missing"),
        (["race", "--run", "a=x", "--budget", "9"], "--run needs --score"),
        (["race", "--run", "x", "--score", "acc", "--budget", "9"], "give NAME='COMMAND'"),
        (["race", "mine.py:l", "--score", "acc", "--budget", "9"], "--score 'acc' needs --run"),
        (
            ["race", "m.py:l", "--run", "a=x", "--score", "y", "--budget", "9"],
            "both name learners",
        ),
        (["race", "no.toml"], "no.toml cannot be read"),
        (
            ["race", "--run", "a=x", "--score", "y", "--budget", "9", "--save", "a.pkl"],
            "a program has no pickle",
        ),
    ],
)
def test_what_is_wrong_on_the_command_line(words, said):
    done = run(*words)
    assert done.exit_code == 2 and said in done.output, done.output


@pytest.mark.filterwarnings("default:'a' has printed")
def test_a_warning_on_the_command_line_is_a_sentence(folder):
    (folder / "many.py").write_text("for n in range(60): print('epoch', n, 'loss=0.5')")
    programs = ["--run", f"a='{sys.executable}' -S many.py", "--run", "b=false"]
    done = run("race", *programs, "--score", "acc", "--budget", "9", "--quiet")
    assert done.exit_code == 2
    assert "Warning: 'a' has printed 50 lines with numbers" in done.output
    assert "RuntimeWarning" not in done.output
