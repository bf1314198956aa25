"""The commands races and show, JSON on stdout, and one vocabulary in Python and on the shell."""

import inspect
import json
import os
import re

from latebloomer import LocalRunner, race, read_verdict, simulate
from latebloomer.cli import race_commands, simulation_commands


def raced(run, *words, learners="kept"):
    journal = [] if "--journal" in words else ["--journal", "races/"]
    ran = run("race", f"mine.py:{learners}", "--budget", 40, *words, *journal)
    assert ran.exit_code == 0, ran.stderr
    return ran


def test_a_race_says_where_it_is_and_the_newest_is_shown(run, tmp_path):
    first, second = raced(run), raced(run, "--seed", 1)
    place = re.compile(r"^Journal: (races/\S+\.db)$", re.M)
    names = [place.search(ran.stdout)[1] for ran in (first, second)]
    assert names[0] != names[1] and f"Journal: {names[0]}\n" in first.stderr
    assert f"Journal: {names[1]}" in run("show").stdout
    assert f"Journal: {names[0]}" in run("show", names[0]).stdout
    assert f"Journal: {names[1]}" in run("show", "races").stdout
    wrote = run("report").stdout
    assert wrote == f"wrote {names[1].replace('.db', '.html')}\n"
    again = run("resume", "mine.py:kept", "--quiet")
    assert again.exit_code == 0 and f"Journal: {names[1]}" in again.stdout


def test_where_there_is_nothing_to_show_it_is_said_in_one_line(run, tmp_path):
    for words in (["show"], ["report"], ["resume", "mine.py:kept"], ["races"]):
        ran = run(*words)
        assert ran.exit_code == 2 and "There is no folder races" in ran.stderr
        assert ran.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["mine.py"]
    ran = run("resume", "a", "b", "c")
    assert (
        ran.exit_code == 2
        and "a b c has too many arguments. Give [JOURNAL] LEARNERS" in ran.stderr
    )


def test_a_file_that_is_there(run, tmp_path):
    raced(run, "--journal", "mine.db")
    refused = run("race", "mine.py:kept", "--budget", 40, "--journal", "mine.db")
    assert refused.exit_code == 2 and "will not be overwritten" in refused.stderr
    again = raced(run, "--journal", "mine.db", "--if-exists", "resume", "--quiet")
    assert "Journal: mine.db" in again.stdout
    new = raced(run, "--journal", "mine.db", "--if-exists", "new", "--quiet")
    assert "Journal: mine-2.db" in new.stdout
    wrong = run("race", "mine.py:kept", "--budget", 40, "--if-exists", "never")
    assert wrong.exit_code == 2 and "'--if-exists': 'never' must be 'error' or" in wrong.stderr


def test_races_are_listed(run, tmp_path):
    raced(run, "--checkpoint-every", 2)
    raced(run, "--budget", 30)
    (tmp_path / "races" / "none.db").touch()
    lines = run("races").stdout.splitlines()
    assert lines[0].split() == [
        "race", "state", "written", "learners", "pulls", "size", "checkpoints", "verdict"
    ]  # fmt: skip
    assert len(lines) == 4
    assert "finished" in lines[1] and " 40 " in lines[1] and "quick, 1.81" not in lines[0]
    assert "quick, 1." in lines[1] and " 30 " in lines[2] and "none.db is empty" in lines[3]


def test_races_as_json_and_cleaned(run, tmp_path):
    raced(run, "--checkpoint-every", 2)
    (found,) = json.loads(run("races", "--json").stdout)["races"]
    assert (found["state"], found["winner"], found["pulls"]) == ("finished", "quick", 40)
    assert found["learners"] == ["slow", "quick"] and found["checkpoint_bytes"] > 0
    ran = run("races", "--clean")
    assert "Removed the checkpoints of 1 learners that lost, in 1 finished races" in ran.stdout
    ran = json.loads(run("races", "races", "--clean", "--json").stdout)
    assert ran["cleaned"] == [] and ran["races"][0]["checkpoint_bytes"] > 0
    assert "Nothing to remove" in run("races", "--clean").stdout


def test_a_race_that_is_over_is_watched_once(run):
    raced(run)
    shown, watched = run("show"), run("show", "--follow")
    assert watched.exit_code == 0 and watched.stdout.strip() == shown.stdout.strip()
    assert run("show", "--follow", "--json").stdout == run("show", "--json").stdout


def test_the_verdict_as_json(run, tmp_path):
    ran = raced(run, "--json", "--report", "race.html", "--save", "w.pkl", "--quiet")
    found = json.loads(ran.stdout)  # one object and nothing else
    assert found["name"] == "quick" and found["over"] and found["spent"] == 40
    assert found["journal"] == read_verdict(found["journal"]).journal
    assert [row["name"] for row in found["rows"]] == ["slow", "quick"]
    assert "wrote w.pkl" in ran.stderr and "wrote race.html" in ran.stderr
    assert json.loads(run("show", "--json").stdout) == found
    assert json.loads(run("resume", "mine.py:kept", "--json", "--quiet").stdout) == found


def test_losses_certificates_retries_and_checkpoints(run):
    found = {}
    for words in (["--minimize"], ["--maximize", "--stop", "certified", "--budget", 400]):
        found[words[0]] = json.loads(raced(run, *words, "--json", "--quiet").stdout)
    assert found["--minimize"]["name"] == "slow" and found["--maximize"]["name"] == "quick"
    sure = found["--maximize"]
    assert sure["certified"] and sure["unspent"] == 400 - sure["spent"] > 0
    for retries, text in ((0, "pull 3 failed once"), (2, "pull 3 failed 3 times")):
        words = ("--retries", retries, "--checkpoint-every", 1, "--json", "--quiet")
        raced(run, *words, learners="failing")
        runner = read_verdict().settings["runner"]
        assert runner["retries"] == retries and runner["checkpoint_every"] == 1
        assert text in read_verdict()["fails"].why


def test_a_plan_as_json(run):
    ran = run("plan", "--learners", 3, "--budget", 12, "--policy", "r-sr", "--json")
    found = json.loads(ran.stdout)
    assert [phase["upto"] for phase in found["phases"]] == [3, 4, 5]
    assert (found["arms"], found["budget"], found["unspent"]) == (3, 12, 0)


def defaults(function):
    parameters = inspect.signature(function).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


def test_simulate_has_the_same_defaults_in_python_and_on_the_command_line():
    shell, python = defaults(simulation_commands.simulate), defaults(simulate)
    assert shell.pop("policy").split(",") == list(python.pop("policies"))
    assert shell.pop("quiet") is not python.pop("progress")
    assert python.pop("budgets") is None  # both must be given one
    for output in ("json", "csv", "plot"):
        assert not shell.pop(output)
    assert shell == python


def test_a_race_has_the_same_defaults_in_python_and_on_the_command_line():
    shell, python = defaults(race_commands.race), defaults(race)
    assert shell.pop("quiet") is not python.pop("progress")
    shared = set(shell) & set(python)
    assert {name: shell[name] for name in shared} == {name: python[name] for name in shared}
    output = {"report", "save", "json", "verbose"}
    programs = {"learners", "run", "score", "step", "finish"}
    ray, runner = {"address", "storage", "cpus", "gpus"}, defaults(LocalRunner)
    assert set(shell) - shared == ray | set(runner) | output | programs
    assert runner == {name: shell[name] for name in runner}
    assert set(python) - shared == {"callbacks"}
