"""The commands race, resume, report, show and repair: what they take, print and write."""

import errno
import os
import pickle
import sqlite3
from pathlib import Path

import pytest

from latebloomer import read_verdict


@pytest.fixture
def full_disk(monkeypatch):
    """The disk is full for files of a name."""

    def make_full(name):
        real = os.replace

        def replace(draft, target):
            if Path(target).name == name:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            real(draft, target)

        monkeypatch.setattr(os, "replace", replace)
        return lambda: monkeypatch.setattr(os, "replace", real)

    return make_full


def test_a_race_from_the_command_line(run, tmp_path, monkeypatch):
    ran = run("race", "mine:learners", "--budget", 40, "--report", "race.html", "--save", "w.pkl")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.startswith("Keep quick: score ")
    assert ran.stderr.startswith("Racing 2 learners with policy foresight (chosen by auto).")
    assert ran.stdout.count("Keep quick") == 1 and "Keep quick" not in ran.stderr
    assert "Keep quick" in (tmp_path / "race.html").read_text()
    monkeypatch.syspath_prepend(tmp_path)
    assert pickle.loads((tmp_path / "w.pkl").read_bytes()).step == 2.0
    shown = run("show", "race.db")
    assert shown.exit_code == 0 and "slow" in shown.stdout and "dropped at pull" in shown.stdout
    assert run("report", "race.db", "--out", "again.html").stdout == "wrote again.html\n"
    assert (tmp_path / "again.html").read_text() == (tmp_path / "race.html").read_text()
    again = run("resume", "race.db", "mine:learners", "--quiet")
    assert again.exit_code == 0 and again.stdout == ran.stdout.partition("wrote ")[0]


def test_a_share_for_the_winner_from_the_command_line(run):
    words = ["--budget", 40, "--winner-share", 0.5, "--policy", "r-sr", "--max-in-memory", 1]
    ran = run("race", "mine:learners", *words)
    assert ran.exit_code == 0, ran.stderr
    assert "Selected quick at race pull 20" in ran.stdout
    assert " after 31 pulls, 20 of them after selection." in ran.stdout
    assert "then trained for 20 more pulls" in run("show", "race.db", "--verbose").stdout


@pytest.mark.parametrize(("text", "low", "high"), [("0,9", 0.0, 9.0), ("-2.5,", -2.5, None)])
def test_the_range_of_scores_from_the_command_line(run, text, low, high):
    ran = run("race", "mine:learners", "--budget", 20, "--score-range", text, "--json")
    assert ran.exit_code == 0, ran.stderr
    assert read_verdict("race.db").settings["score_range"] == (low, high)
    assert (
        "--score-range" in run("race", "mine:learners", "--budget", 9, "--score-range", "1").stderr
    )


def test_a_race_is_extended_with_a_new_learner(run):
    assert run("race", "mine:learners", "--budget", 20, "--quiet").exit_code == 0
    words = ["resume", "race.db", "mine:more", "--budget", 90, "--add", "new"]
    ran = run(*words)
    assert ran.exit_code == 0 and "Keep new" in ran.output, ran.output
    again = run(*words, "--quiet")
    assert again.exit_code == 0 and "Keep new" in again.output  # repeated unchanged
    more = run(*words[:-2], "--horizon", 99, "--no-revive", "--quiet")
    assert more.exit_code == 0, more.output


NOT_EXTENDED = [
    (["--budget", 10], "--budget 10 is below the race's budget of 20 pulls"),
    (["--budget", 40, "--add", "none"], "--add none is not one of the learners given: slow"),
    (["--budget", 40, "--add", "slow"], "'slow' is in this race already"),
    (["--address", "auto"], "--address, --storage, --cpus and --gpus need --runner ray"),
]


@pytest.mark.parametrize("words, text", NOT_EXTENDED)
def test_what_cannot_be_extended_is_one_line_and_code_2(run, words, text):
    run("race", "mine:learners", "--budget", 20, "--quiet")
    ran = run("resume", "race.db", "mine:learners", *words)
    assert ran.exit_code == 2 and text in ran.output


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_prints_the_command_that_goes_on(run, tmp_path):
    (tmp_path / "interrupt").touch()
    ran = run("race", "mine:learners", "--budget", 40, "--quiet")
    assert ran.exit_code == 130
    assert "Stopped after pull 13 of 40" in ran.stderr
    assert "\nResume with: latebloomer resume race.db mine:learners\n" in ran.stderr
    (tmp_path / "interrupt").unlink()
    assert run("resume", "race.db", "mine:learners", "--quiet").stdout.startswith("Keep quick")


WRONG = [
    (["race", "mine:learners"], "No budget was given. Give exactly one of --trainings 3 (full"),
    (["resume", "none.db"], "missing. Write: latebloomer resume none.db mine.py:learners.\n"),
    (["race", "mine:learners", "--budget=9", "--journal", "/proc/no/"], " with --journal.\n"),
    (["race", "mine:learners", "--budget", "1"], "BudgetError: --budget 1 is too small for 2"),
    (["plan", "--policy", "r-ucbe", "--learners", "8", "--budget", "20"],
     "BudgetError: --budget 20 is too small for 8 learners: r-ucbe needs at least 32 (4 pulls"),
    (["show", "none.db"], "There is no journal none.db"),
    (["resume", "none.db", "mine:learners"], "There is no journal none.db"),
    (["repair", "none.db"], "There is no journal none.db"),
]  # fmt: skip


@pytest.mark.parametrize("words, text", WRONG)
def test_a_wrong_call_is_one_line_and_code_2(run, words, text):
    ran = run(*words)
    assert ran.exit_code == 2
    assert text in ran.stderr and ran.stderr.count("\n") == 1


def test_control_characters_of_names_never_reach_the_terminal(run, tmp_path):
    text = (tmp_path / "mine.py").read_text()
    (tmp_path / "mine.py").write_text(text.replace('"quick"', r'"\x1b[31mquick\x07"'))
    shown = (["races", "."], ["races", ".", "--json"], ["show", "race.db", "--follow"],
             ["show", "race.db", "--json"])  # fmt: skip
    ran = [run("race", "mine:learners", "--budget", 40), *(run(*words) for words in shown)]
    ran.append(run("resume", "race.db", "mine:learners"))
    (tmp_path / "mine.py").write_text(text)
    ran.append(run("resume", "race.db", "mine:learners"))
    assert [one.exit_code for one in ran] == [0] * 6 + [2]
    for one in ran:
        assert r"\x1b[31mquick\x07" in one.output or r"\u001b[31mquick" in one.output
        assert not set(one.output) & set("\x1b\x07")


BESIDE = """
def learners():
    return {"slow": lambda: iter([0.1] * 99), "quick": lambda: iter([0.2] * 99)}
"""


PLACES = [
    (".", "mine:learners"),
    (".", "mine:LEARNERS"),  # the dict itself
    (".", "mine.py:learners"),
    ("sub", "../mine.py:learners"),
    ("sub", "{here}/mine.py:learners"),
    (".", "sub.beside:learners"),
    (".", "sub/beside.py:learners"),
    (".", "sub/with-a-dash.py:learners"),
]


@pytest.mark.parametrize("folder, where", PLACES)
def test_learners_are_named_by_module_or_by_file(run, tmp_path, monkeypatch, folder, where):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "beside.py").write_text(BESIDE)
    # A file finds what lies beside it.
    (tmp_path / "sub" / "with-a-dash.py").write_text("from beside import learners")
    monkeypatch.chdir(tmp_path / folder)
    ran = run("race", where.format(here=tmp_path), "--budget", 20, "--quiet")
    assert ran.exit_code == 0 and ran.stdout.startswith("Keep quick"), ran.stderr


NO_LEARNERS = [
    ("mine", "must be module:name or path/to/file.py:name"),
    ("mine.py", "or path/to/file.py:name"),
    (":learners", "must be module:name or path/to/file.py:name"),
    ("nowhere:f", "There is no module 'nowhere' here"),
    ("nowhere.at:f", "Run the command where nowhere/at.py is"),
    ("mine.at:f", "There is no module 'mine.at' here"),
    ("no.py:f", "There is no file no.py. Check the path"),
    ("../mine:f", "For a file, give ../mine.py:f"),
    ("a..b:f", "'a..b' is not the name of a module"),
    ("mine:f", "Module 'mine' has no 'f'. Give a name that it has"),
    ("mine:learner", "Module 'mine' has no 'learner'. Did you mean 'learners'?"),
    ("mine:nothing", "returned int, but it must be a dict"),
    ("mine:NUMBER", "is int, but it must be a dict"),
    ("mine:Counter", "is type, but it must be a dict"),
    ("mine.py:asks", "Give a function that needs no arguments"),
    ("os:system", "Give a function that needs no arguments"),
    ("os:getcwd", "returned str, but it must be a dict"),
]


@pytest.mark.parametrize("where, text", NO_LEARNERS)
def test_what_gives_no_learners_is_one_line_and_code_2(run, where, text):
    ran = run("race", where, "--budget", 40)
    assert ran.exit_code == 2
    assert ran.stderr.startswith("LearnerError: ") and ran.stderr.count("\n") == 1
    assert text in ran.stderr


def test_a_file_with_the_name_of_a_module_in_use_is_told_so(run, tmp_path):
    (tmp_path / "pickle.py").write_text(BESIDE)
    ran = run("race", "pickle.py:learners", "--budget", 40)
    assert ran.exit_code == 2
    assert "pickle.py has the name of a module in use, 'pickle'. Rename it" in ran.stderr


FAILING = {  # code: where it fails, and with what
    "import no_such_package": ("line 1, in <module>", "No module named 'no_such_package'"),
    "def f(:": ("line 1", "SyntaxError: invalid syntax"),
    "def f(): return {}['x']": ("line 1, in f", "KeyError: 'x'"),
    "def f():\n    g()\ndef g():\n    raise ValueError('\\x1b')": ("line 4, in g", r"Error: \x1b"),
    "def f():\n    raise SystemExit(0)": ("line 2, in f", "SystemExit: 0"),
    "import latebloomer\ndef f():\n    latebloomer.none": ("line 3, in f", "AttributeError"),
    "from latebloomer import Session\nSession('none', 3, 9)": ("line 2, in <mod", "UnknownName"),
    "def __getattr__(name):\n    raise OSError(name)": ("line 2, in __getattr__", "OSError: f"),
    "def f():\n    try: 1 / 0\n    except Exception: g()": ("line 3, in f", "NameError: name 'g'"),
}


@pytest.mark.parametrize("where", ["theirs:f", "theirs.py:f"])
@pytest.mark.parametrize("code", FAILING)
def test_what_the_user_s_code_raises_is_shown_with_its_own_lines(run, tmp_path, where, code):
    (tmp_path / "theirs.py").write_text(code)
    ran = run("race", where, "--budget", 40)
    place, text = FAILING[code]
    assert ran.exit_code == 2 and "\x1b" not in ran.stderr
    assert f'File "{tmp_path / "theirs.py"}", {place}' in ran.stderr
    assert text in ran.stderr and "There is no module" not in ran.stderr
    frames = [line for line in ran.stderr.splitlines() if line.startswith("  File ")]
    assert all(str(tmp_path) in frame for frame in frames)  # and none of ours
    last = ran.stderr.splitlines()[-1]
    assert last.startswith(f"LearnerError: {where} raised ") and "Fix the line" in last


BAD_PATHS = [
    ("none/out", "Cannot write none/out, because there is no folder none. Make it"),
    ("mine.py/out", "there is no folder mine.py. Make it, or give another path"),
    ("folder", "because it is a folder. Give the name of a file"),
    ("race.db", "the journal and {} are both 'race.db': give two files"),
]


@pytest.mark.parametrize("option", ["--report", "--save"])
@pytest.mark.parametrize("command", ["race", "resume"])
@pytest.mark.parametrize("path, text", BAD_PATHS)
def test_a_bad_path_is_said_before_the_race(run, tmp_path, option, command, path, text):
    (tmp_path / "folder").mkdir()
    words = ["race", "mine:learners", "--budget", 40]
    if command == "resume":
        run(*words)
        words = ["resume", "race.db", "mine:learners"]
    before = sorted(tmp_path.iterdir())
    ran = run(*words, option, path)
    assert ran.exit_code == 2 and not ran.stdout
    assert ran.stderr.startswith("OutputError: ") and ran.stderr.count("\n") == 1
    assert text.format(option) in ran.stderr
    assert sorted(tmp_path.iterdir()) == before  # no race has begun, no draft is left


def test_winner_and_report_are_two_files(run):
    ran = run("race", "mine:learners", "--budget", 40, "--report", "out", "--save", "./out")
    assert ran.stderr == "OutputError: --report and --save are both 'out': give two files\n"


BOTH = ["--report", "race.html", "--save", "w.pkl", "--quiet"]


FULL = [
    ("race.html", "w.pkl", ["report", "race.db", "--out", "race.html"]),
    ("w.pkl", "race.html", ["resume", "race.db", "mine:learners", "--save", "w.pkl"]),
]


@pytest.mark.parametrize("full, other, command", FULL)
def test_a_full_disk_does_not_cost_the_other_file(run, tmp_path, full_disk, full, other, command):
    (tmp_path / full).write_text("an old one")
    end = full_disk(full)
    ran = run("race", "mine:learners", "--budget", 40, *BOTH)
    assert ran.exit_code == 2 and ran.stdout.startswith("Keep quick")
    assert ran.stdout.endswith(f"wrote {other}\n") and ran.stderr.count("\n") == 1
    assert ran.stderr.startswith(f"OutputError: Cannot write {full} (No space left on")
    assert (tmp_path / other).exists() and (tmp_path / full).read_text() == "an old one"
    again = ran.stderr.rpartition("Then: latebloomer ")[2].split()
    end()
    assert again == command and run(*again).exit_code == 0
    assert (tmp_path / full).read_bytes() != b"an old one"


def test_where_neither_can_be_written_both_are_said(run, tmp_path, full_disk):
    full_disk("race.html")
    ran = run("race", "mine:unpicklable", "--budget", 40, *BOTH)
    assert ran.exit_code == 2 and not (tmp_path / "w.pkl").exists()
    kinds = [line.partition(":")[0] for line in ran.stderr.splitlines()]
    assert kinds == ["OutputError", "LearnerError"]


def change_row(path, what="score = 0.5", row="30"):
    with sqlite3.connect(path) as db:
        db.execute(f"UPDATE events SET {what} WHERE id = {row}")
    db.close()


def test_a_damaged_journal_is_repaired_and_goes_on(run, tmp_path):
    whole = run("race", "mine:learners", "--budget", 40, "--quiet")
    change_row(tmp_path / "race.db")
    before = (tmp_path / "race.db").read_bytes()
    shown = run("show", "race.db")
    assert shown.exit_code == 2 and "latebloomer repair race.db" in shown.stderr
    ran = run("repair", "race.db")
    assert ran.exit_code == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "race.db is damaged after event 29 (its checksum differs).",
        "Wrote race.repaired.db with 25 pulls; race.db is unchanged.",
        "Resume with: latebloomer resume race.repaired.db LEARNERS",
    ]
    assert (tmp_path / "race.db").read_bytes() == before
    again = run("resume", "race.repaired.db", "mine:learners", "--quiet")
    assert again.stdout == whole.stdout.replace("race.db", "race.repaired.db")


def test_a_sound_journal_is_left_alone(run, tmp_path):
    run("race", "mine:learners", "--budget", 40, "--quiet")
    said = run("repair", "race.db").stdout
    assert said == "race.db is not damaged: all its 40 pulls are intact. Nothing was written.\n"
    assert not list(tmp_path.glob("*repaired*"))


def test_a_repair_overwrites_nothing(run, tmp_path):
    run("race", "mine:learners", "--budget", 40, "--quiet")
    change_row(tmp_path / "race.db")
    (tmp_path / "race.repaired.db").write_text("mine")
    ran = run("repair", "race.db")
    assert ran.exit_code == 2 and "exists and is not overwritten. Give another file" in ran.stderr
    assert (tmp_path / "race.repaired.db").read_text() == "mine"
    assert run("repair", "race.db", "--out", "race.db").exit_code == 2
    assert run("repair", "race.db", "--out", "none/new.db").exit_code == 2
    assert run("repair", "race.db", "--out", "new.db").exit_code == 0


def test_checkpoints_go_on_with_the_repaired_journal(run, tmp_path):
    run("race", "mine:kept", "--budget", 40, "--quiet")
    change_row(tmp_path / "race.db", "at = 0", "(SELECT max(id) FROM events)")
    said = run("repair", "race.db").stdout
    assert "\nTo use its checkpoints, first: mv race.db.checkpoints race.repaired.db.check" in said
    (tmp_path / "race.db.checkpoints").rename(tmp_path / "race.repaired.db.checkpoints")
    ran = run("resume", "race.repaired.db", "mine:kept")
    assert "Every learner is restored from its checkpoint" in ran.stderr


GENERATORS = """
from itertools import count

class Model:
    pass

def scores(best):
    for n in count(1):
        yield best * n / (n + 3)

def models(best):
    model = Model()
    for model.n in count(1):
        yield best * model.n / (model.n + 3), model

def bare():
    return {"a": lambda: scores(0.5), "b": lambda: scores(0.9)}

def one_bare():
    return {"a": lambda: scores(0.9), "b": lambda: models(0.5), "c": lambda: models(0.7)}
"""


def test_bare_generators_are_refused_where_the_winner_is_to_be_saved(run, tmp_path):
    (tmp_path / "generators.py").write_text(GENERATORS)
    ran = run("race", "generators:bare", "--budget", 40, "--save", "w.pkl", "--quiet")
    assert ran.exit_code == 2 and not (tmp_path / "w.pkl").exists()
    assert ": pull 1 failed twice: LearnerError: it yields only scores, and --save" in ran.stderr
    assert "Yield (score, model), or omit --save" in ran.stderr
    assert run("race", "generators:bare", "--budget", 40, "--quiet").exit_code == 0  # without


def test_the_model_of_a_generator_is_saved_even_if_another_is_bare(run, tmp_path, monkeypatch):
    (tmp_path / "generators.py").write_text(GENERATORS)
    ran = run("race", "generators:one_bare", "--budget", 40, "--journal", "races/", "--save", "1")
    assert ran.exit_code == 0 and ran.stdout.startswith("Keep c: "), ran.stderr
    assert "wrote 1" in ran.stdout and "a failed: pull 1 failed twice" in ran.stderr
    assert run("resume", "generators:one_bare", "--save", "2", "--quiet").exit_code == 0
    monkeypatch.syspath_prepend(tmp_path)
    first, again = (pickle.loads((tmp_path / name).read_bytes()) for name in "12")
    assert first.n == again.n > 10


FASTIDIOUS = """
def picky():
    raise ValueError("policy=None is not allowed, seed=3 neither, or runner=None")
    yield


learners = {"a": picky, "b": picky}


def none():
    raise ValueError("give seed=3, or budget=None")
"""


def test_the_words_of_the_user_s_code_stay_as_they_are(run, tmp_path):
    """Messages of this library name options; the messages of others are not edited."""
    (tmp_path / "fastidious.py").write_text(FASTIDIOUS)
    lines = run("race", "fastidious.py:learners", "--budget", 20).output.splitlines()
    said = "ValueError: policy=None is not allowed, seed=3 neither, or runner=None"
    assert lines[-1] == f"  a, b: pull 1 failed twice: {said}"
    told = run("race", "fastidious.py:none", "--budget", 20).output
    assert "raised ValueError: give seed=3, or budget=None. Fix the line" in told
