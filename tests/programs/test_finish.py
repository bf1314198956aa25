"""The winner's program runs to its end: what it prints, and what the verdict says of it."""

import json
import sys
from functools import partial

import pytest
from typer.testing import CliRunner

from latebloomer import read_verdict
from latebloomer.cli import app
from latebloomer.errors import LearnerError
from latebloomer.programs.command import Command

pytestmark = pytest.mark.filterwarnings("ignore:the first .* arrived at once")
PRINTS = """
print("reading data")
for n in range(1, {last} + 1):
    print(f"epoch {n} acc={n / 10}\\n  saved after epoch {n}")
print()
print("the end", flush=True)
raise SystemExit({code})
"""


def program(tmp_path, last=4, code=0):
    """Words that run a program which prints all of its lines at once."""
    path = tmp_path / "prints.py"
    path.write_text(PRINTS.replace("{last}", str(last)).replace("{code}", str(code)))
    return [sys.executable, "-S", str(path)]


def lines_after(epoch, last=4):
    """Lines of the program after the score of an epoch."""
    lines = [f"  saved after epoch {epoch}"]
    for n in range(epoch + 1, last + 1):
        lines += [f"epoch {n} acc={n / 10}", f"  saved after epoch {n}"]
    return [*lines, "", "the end"]


@pytest.mark.parametrize("pulls", [1, 3, 4])
@pytest.mark.parametrize("ended", [False, True])
def test_every_line_after_the_last_counted_score_is_written_once(tmp_path, pulls, ended):
    learner, lines = Command(program(tmp_path), "acc")(0), []
    learner.pull(pulls)
    if ended:
        learner.pull(4 - pulls or 1) if pulls < 4 else None
        with pytest.raises(StopIteration):
            learner.pull()
        pulls = 4
    learner.finish(lines.append)
    assert lines == lines_after(pulls)
    learner.finish(lines.append)
    assert lines == lines_after(pulls)


SAVES = """
import json, pathlib, sys
state = pathlib.Path(sys.argv[1]) / "state.json"
n = json.loads(state.read_text()) if state.exists() else 0
print("from epoch", n)
while n < 8:
    n += 1
    print(f"epoch={n} acc={n / 10}", flush=True)
    print(f"after {n}", flush=True)
    if n % 3 == 0:
        state.write_text(json.dumps(n))
"""


def test_a_program_from_a_checkpoint_is_started_and_repeats_no_line(tmp_path):
    (tmp_path / "saves.py").write_text(SAVES)
    words = [sys.executable, "-S", str(tmp_path / "saves.py"), "{folder}"]
    command = Command(words, "acc", step="epoch")
    learner, lines = command.build_in_race(0, "net", tmp_path / "logs"), []
    learner.pull(5)
    (tmp_path / "saved").mkdir()
    learner.save(tmp_path / "saved")
    again = command.build_in_race(0, "net", tmp_path / "other")
    again.load(tmp_path / "saved")
    again.finish(lines.append)
    scores = [line for line in lines if line.startswith("epoch")]
    assert scores == [f"epoch={n} acc={n / 10}" for n in (6, 7, 8)]
    assert lines[-1] == "after 8"


def test_an_until_program_is_trained_up_to_its_full_training(tmp_path):
    text = "import sys; print('acc=0.5'); print('trained to', sys.argv[1])"
    make = partial(Command, [sys.executable, "-S", "-c", text, "{steps}"], "acc")
    learner, lines = make(full_steps=9)(0), []
    learner.pull(4)
    learner.finish(lines.append)
    assert lines == ["trained to 4", "acc=0.5", "trained to 9"]
    with pytest.raises(LearnerError, match="give the command full_steps="):
        make()(0).finish()


def test_a_program_that_fails_after_the_race_is_an_error_with_its_log(tmp_path):
    learner = Command(program(tmp_path, code=3), "acc").build_in_race(0, "net", tmp_path / "logs")
    learner.pull()
    with pytest.raises(LearnerError, match=r"exit code 3 after the race.*logs/net\.log"):
        learner.finish(lambda line: None)


def test_the_verdict_names_the_program_its_values_and_its_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    program(tmp_path)
    (tmp_path / "race.toml").write_text(
        "score = 'acc'\nstep = 'epoch'\nbudget = 6\n"
        f"run = \"'{sys.executable}' -S prints.py {{best}} {{seed}} {{folder}}\"\n"
        "[grid]\nbest = [1, 'a b']\n"
    )
    done = CliRunner().invoke(app, ["race", "race.toml", "--journal", "r.db", "--quiet"])
    name = next(name for name in ("best=1", "best=a b") if f"Keep '{name}'" in done.output
                or f"Keep {name}" in done.output)  # fmt: skip
    value = name.partition("=")[2]
    verdict = read_verdict("r.db")
    shown = [done.output, str(verdict), verdict.details()]
    for text in shown:
        lines = text.splitlines()
        assert f"Log: r.db.logs/{name}.log" in lines
        assert f"Folder: r.db.logs/{name}" in lines
        line = next(line for line in lines if line.startswith("Program: "))
        assert f"prints.py {value if value == '1' else repr(value)} " in line
    assert f"Settings: best={value}" in done.output.splitlines()
    assert "{seed}" not in done.output
    assert json.loads(verdict.to_json())["about"]["Log"] == f"r.db.logs/{name}.log"


def test_finish_without_programs_is_an_error_before_the_race(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("learners = {'a': lambda: 1 / 0, 'b': lambda: 1 / 0}")
    done = CliRunner().invoke(app, ["race", "mine.py:learners", "--budget", "9", "--finish"])
    assert done.exit_code == 2 and "--finish is for programs" in done.output
    assert not (tmp_path / "races").exists()
