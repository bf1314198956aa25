"""Programs as learners: the same scores as without a race, paused in between, none left behind."""

import gc
import json
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from latebloomer import LocalRunner, race, resume
from latebloomer.errors import AllFailed, LearnerError, SettingError
from latebloomer.programs import guardian as guarding
from latebloomer.programs import process_tree, running_program
from latebloomer.programs.command import Command
from latebloomer.programs.guardian import Guardian
from latebloomer.programs.output_log import LARGEST, OutputLog
from latebloomer.programs.process_tree import descendants, started_at
from latebloomer.programs.score_reader import Lines, Pattern

pytestmark = [
    pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals"),
    # On a busy machine these quick scripts train ahead of their pulls.
    pytest.mark.filterwarnings("ignore:the first .* arrived at once"),
]
QUIET = {"progress": False, "journal": None}


@pytest.fixture
def script(tmp_path):
    """A function that writes a Python script and returns the words that run it."""

    def write(text, name="train.py"):
        path = tmp_path / name
        path.write_text(textwrap.dedent(text))
        return [sys.executable, "-S", str(path)]

    return write


@pytest.fixture(autouse=True)
def no_program_is_left():
    yield
    gc.collect()
    guarding.guardian().close()
    left = [pid for pid in descendants({os.getpid()}) if _is_marked(pid)]
    assert [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in left] == []


def _is_marked(pid):
    try:
        return b"LATEBLOOMER_PROGRAM=" in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


CURVE = """
    import random, sys, time
    best, seed, steps = float(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    random.seed(seed)
    for n in range(1, steps + 1):
        value = best * n / (n + 3) + random.gauss(0, 0.01)
        print(f"epoch {n}: loss {1 / n:.3f} val_acc={value!r}")
        time.sleep(0.0005)
"""


def curve(words, best, seed=1, steps=400):
    return [*words, str(best), str(seed), str(steps)]


def scores_of(words):
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return [float(line.partition("val_acc=")[2]) for line in said.splitlines()]


def test_a_program_that_is_paused_and_continued_prints_the_same_scores(script):
    words = script(CURVE)
    commands = {
        name: Command(curve(words, best, steps=60), "val_acc")
        for name, best in (("low", 0.5), ("high", 0.9), ("middle", 0.7))
    }
    verdict = race(commands, budget=90, policy="r-sr", **QUIET)
    assert verdict.name == "high" and verdict.spent == 90
    for name, best in (("low", 0.5), ("high", 0.9), ("middle", 0.7)):
        whole = scores_of(curve(words, best, steps=60))
        assert verdict.curve(name) == whole[: verdict.pulls[name]]


def state_of(pid):
    """A letter for what a process does: T if it is stopped."""
    said = subprocess.run(["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True)
    return said.stdout.strip()[:1]


def test_a_program_stops_between_its_pulls_and_burns_no_cpu(script):
    learner = Command(curve(script(CURVE), 0.9), "val_acc")(1)
    assert learner.pull() and learner.pull(3) and learner.steps == 4
    limit = time.monotonic() + 10
    while state_of(learner.pid) != "T":
        assert time.monotonic() < limit


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("val_acc=0.91", 0.91),
        ('{"epoch": 3, "val_acc": 9.1e-1}', 0.91),
        ("val_acc: -0.3 val_acc_best: 0.9", -0.3),
        ("'val_acc': np.float64(0.5)", 0.5),
        ("val_acc nan", None),
        ("step 3 | val_acc = inf", float("inf")),
        ("best_val_acc=0.1 val_acc=1_000.5", 1000.5),
        ("val_accuracy=0.3", ()),
        ("val_acc=high", ()),
    ],
)
def test_a_name_finds_what_programs_print(line, value):
    found = Pattern("val_acc").scores_in(line)
    if value == ():
        assert found is None
    elif value is None:
        assert found.value != found.value
    else:
        assert found.value == value


def test_lines_are_joined_ended_by_carriage_returns_and_freed_of_colors():
    whole = b"\x1b[32mstep 1\x1b[0m acc=0.1\r\x1b]0;title\x07step 2 acc=0.2\nstep 3 acc=0.3"
    expected = ["step 1 acc=0.1", "step 2 acc=0.2", "step 3 acc=0.3"]
    for size in (1, 2, 7, 100):
        lines = Lines()
        pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
        assert [line for one in pieces for line in lines.add(one)] + [*lines.rest()] == expected
    endless = Lines()
    assert sum(len(line) for _ in range(64) for line in endless.add(b"\x00" * 4096)) > 0


def test_progress_bars_and_both_streams_are_read(script):
    words = script(
        """
        import sys
        for n in range(1, 6):
            sys.stderr.write(f"\\r{n * 20:3d}%|###| {n}/5 [00:01, acc={n / 10}]")
            sys.stderr.flush()
        """
    )
    learner = Command(words, r"(?P<step>\d+)/5 .*acc=(?P<score>[\d.]+)")(0)
    assert [learner.pull() for _ in range(5)] == [0.1, 0.2, 0.3, 0.4, 0.5]
    with pytest.raises(StopIteration):
        learner.pull()


def test_a_burst_of_scores_waits_for_its_pulls_and_the_last_line_counts(script):
    words = script("print('\\n'.join(f'acc={n}' for n in range(2000)), end='', flush=True)")
    learner = Command(words, "acc")(0)
    with pytest.warns(RuntimeWarning, match="arrived at once.* `stdbuf -oL`"):
        first = learner.pull()
    assert [first, *(learner.pull() for _ in range(1999))] == [*range(2000)]


def test_rows_of_a_file_are_scores(script, tmp_path):
    words = script(
        """
        import sys
        with open(sys.argv[1], "w") as file:
            file.write("epoch,loss,val_acc\\n")
            for n in range(1, 6):
                file.write(f"{n},{1 / n},\\n")       # rows of another kind
                file.write(f"{n},,{n / 10}\\n")
                file.flush()
        """
    )
    for name in ("metrics.csv", "again.csv"):
        place = tmp_path / name
        learner = Command([*words, str(place)], "val_acc", score_file=f"{place}:val_acc")(0)
        assert [learner.pull() for _ in range(5)] == [0.1, 0.2, 0.3, 0.4, 0.5]
        with pytest.raises(StopIteration):
            learner.pull()
    wrong = Command([*words, str(place)], "acc", score_file=f"{place}:acc")
    with pytest.raises(LearnerError, match=r"no column 'acc'. It has: epoch, loss, val_acc"):
        wrong(0).pull()


SAVES = """
    import json, pathlib, sys, random
    folder, last = pathlib.Path(sys.argv[1]), int(sys.argv[2])
    state = folder / "state.json"
    n = json.loads(state.read_text()) if state.exists() else 0
    while n < last:
        n += 1
        random.seed(n)
        print(f"epoch={n} acc={random.random()!r}", flush=True)
        if n % 4 == 0:
            state.write_text(json.dumps(n))
"""


def numbers(last):
    return [random.Random(n).random() for n in range(1, last + 1)]


def test_a_program_that_saves_itself_is_ended_started_again_and_no_step_counts_twice(
    script, tmp_path
):
    command = Command([*script(SAVES), "{folder}", "40"], "acc", step="epoch")
    learner = command.build_in_race(0, "net", tmp_path / "logs")
    assert [learner.pull() for _ in range(6)] == numbers(6)
    (tmp_path / "saved").mkdir()
    learner.save(tmp_path / "saved")
    assert learner.pull() == numbers(7)[-1]
    del learner
    again = command.build_in_race(0, "net", tmp_path / "other")
    again.load(tmp_path / "saved")
    assert [again.pull() for _ in range(4)] == numbers(10)[6:]
    with pytest.raises(SettingError, match="give step="):
        Command("train {folder}", "acc")


def test_a_new_learner_does_not_continue_from_what_another_process_has_left(script, tmp_path):
    command = Command([*script(SAVES), "{folder}", "40"], "acc", step="epoch")
    for _ in range(2):
        learner = command.build_in_race(0, "net", tmp_path / "logs")
        assert [learner.pull() for _ in range(6)] == numbers(6)


def test_a_program_that_does_not_continue_exactly_is_reported(script, tmp_path):
    text = SAVES.replace("random.seed(n)", "random.seed()").replace("n % 4 == 0", "n == 4")
    command = Command([*script(text), "{folder}", "20000"], "acc", step="epoch")
    learner = command.build_in_race(0, "net", tmp_path / "logs")
    learner.pull(6)
    (tmp_path / "saved").mkdir()
    learner.save(tmp_path / "saved")
    learner.load(tmp_path / "saved")
    with pytest.warns(RuntimeWarning, match=r"for step 5 after its restart, and .* before"):
        learner.pull(19000)  # beyond what the program had printed ahead


def test_a_program_may_be_run_once_for_each_pull(script, tmp_path):
    command = Command(
        [*script(SAVES.replace("n % 4", "n % 1")), "{folder}", "{steps}"], "acc", full_steps=20
    )
    learner = command.build_in_race(0, "net", tmp_path / "logs")
    assert [learner.pull(5), learner.pull(3), learner.pull(50)] == [
        numbers(5)[-1], numbers(8)[-1], numbers(20)[-1],
    ]  # fmt: skip
    with pytest.raises(StopIteration):
        learner.pull()
    log = (tmp_path / "logs" / "net.log").read_text().splitlines()
    assert len(log) == 20  # no step was trained twice


def test_a_killed_race_leaves_no_program_and_resumes(script, tmp_path):
    """The race's process is killed; its guardian ends the programs by itself."""
    words = script(CURVE)
    (tmp_path / "r.py").write_text(
        textwrap.dedent(
            f"""
            import os, signal
            from latebloomer import race
            from latebloomer.programs.command import Command
            from latebloomer.session.events import ScoreReported
            words = {words!r}
            own = lambda b: Command([*words, str(b), "1", "400"], "val_acc")
            learners = {{"0.5": own(0.5), "0.9": own(0.9)}}
            def kill(event, view):
                if isinstance(event, ScoreReported) and view.spent == 11:
                    os.kill(os.getpid(), signal.SIGKILL)
            if __name__ == "__main__":
                race(learners, 30, journal="r.db", progress=False, callbacks=[kill])
            """
        )
    )
    done = subprocess.run([sys.executable, "r.py"], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL
    left = [path for path in (tmp_path / "r.db.logs").glob("*.pid")]
    assert len(left) == 2
    limit = time.monotonic() + 10
    for path in left:
        pid, since, *_ = json.loads(path.read_text())
        while started_at(pid) == since and time.monotonic() < limit:
            pass
        assert started_at(pid) != since
    learners = {str(b): Command(curve(words, b), "val_acc") for b in (0.5, 0.9)}
    verdict = resume(tmp_path / "r.db", learners, progress=False)
    assert verdict.spent == 30 and verdict.name == "0.9"
    assert verdict.curve("0.9") == scores_of(curve(words, 0.9))[: verdict.pulls["0.9"]]


STUBBORN = """
    import os, signal, subprocess, sys, time
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-S", "-c", "import signal, time; "
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"], start_new_session=True)
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:  # a daemon: its parent ends
            time.sleep(600)
        os._exit(0)
    os.wait()
    print("child", child.pid, flush=True)
    for n in range(100):
        print(f"acc={n}", flush=True)
        time.sleep(0.001)
"""


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds daemons on Linux")
def test_descendants_stop_and_end_with_their_program(script):
    own = Guardian()
    reading = own.start("one", script(STUBBORN), dict(os.environ), None)
    text = b""
    while b"acc=0" not in text:
        text += os.read(reading.output, 1000)
    own.pause("one")
    family = descendants({own._process.pid})
    assert len(family) == 3  # the program, its child in another session, the daemon
    limit = time.monotonic() + 10
    while {state_of(pid) for pid in family} != {"T"}:  # each stops when it is scheduled next
        assert time.monotonic() < limit
    own.close()  # SIGTERM is ignored: SIGKILL follows
    assert [pid for pid in family if started_at(pid)] == []
    os.close(reading.output)


def test_signals_have_their_usual_effect_on_programs(script):
    words = script(
        """
        import signal
        for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGINT):
            print(f"acc={int(signal.getsignal(n) != signal.SIG_IGN)}", flush=True)
        print(f"acc={signal.SIGTERM}", flush=True)
        """
    )
    learner = Command(words, "acc")(0)
    assert [learner.pull() for _ in range(5)] == [1, 1, 0, 1, 15]


def test_failures_show_the_last_lines(script):
    cases = [
        (
            "print('hello'); print('acc 1'); raise SystemExit(3)",
            "accuracy",
            r"exit code 3[^|]*\| hello",
        ),
        (
            "print('loss 0.3'); print('done')",
            "acc",
            r"no line of its output has the score 'acc'[\s\S]*1 of them",
        ),
        ("print('acc is high')", "acc is (.*)", "the score is 'high' in the line 'acc is high'"),
        ("import os; os.kill(os.getpid(), 11)", "acc", "ended by signal 11"),
        (
            "import os, time; os.close(1); os.close(2); time.sleep(60)",
            "acc",
            "has closed its output",
        ),
    ]
    for text, score, said in cases:
        with pytest.raises(LearnerError, match=said):
            Command(script(text), score)(0).pull()
    with pytest.raises(LearnerError, match="'no-such-program' cannot be started"):
        Command("no-such-program --x", "acc")(0).pull()
    good, bad = Command(curve(script(CURVE), 0.9), "val_acc"), Command(["false"], "val_acc")
    verdict = race({"good": good, "better": good, "bad": bad}, 12, **QUIET)
    assert verdict["bad"].state == "failed" and "exit code 1" in verdict["bad"].why
    with pytest.raises(AllFailed, match="exit code 1"):
        race({"one": bad, "other": bad}, 12, **QUIET)


def test_a_program_that_ends_well_without_a_score_is_not_run_again(script, tmp_path):
    words = script("import sys; open(sys.argv[1], 'a').write('x'); print('loss 1')")
    wrong = Command([*words, str(tmp_path / "runs")], "acc")
    good = Command(curve(script(CURVE, "good.py"), 0.9), "val_acc")
    verdict = race({"good": good, "better": good, "wrong": wrong}, 9, **QUIET)
    assert verdict["wrong"].state == "failed" and "failed once" in verdict["wrong"].why
    assert (tmp_path / "runs").read_text() == "x"


@pytest.mark.parametrize("runner", [LocalRunner(isolate=True)])
def test_a_program_that_is_paused_cannot_be_sent_to_another_process(script, runner):
    paused = Command(curve(script(CURVE), 0.9), "val_acc")
    with pytest.raises(SettingError, match=r"pause='signal', which only.*default runner"):
        race({"a": paused, "b": paused}, 9, runner=runner, **QUIET)
    with pytest.raises(LearnerError, match="a program has no pickle"):
        pickle.dumps(paused(0))


def test_a_program_that_only_writes_in_its_folder_is_not_restored_from_it(script, tmp_path):
    with pytest.raises(SettingError, match="in the row of the score"):
        Command("train {folder}", "acc", score_file="{folder}/m.csv:acc")
    command = Command([*script(CURVE), "0.9", "1", "9", "{folder}"], "val_acc", pause="signal")
    assert not hasattr(command.build_in_race(0, "net", tmp_path), "save")


@pytest.mark.parametrize(
    ("run", "more", "said"),
    [
        ("train {lr}", {}, r"\{lr\} in 'train \{lr\}' is unknown. Known are \{seed\}"),
        ("train {", {}, "braces"),
        ("", {}, "run='', but run must be a text or a list of words"),
        ("train 'x", {}, "is not a command: No closing quotation"),
        ("train", {"pause": "until"}, r"has no \{steps\}"),
        ("train", {"pause": "restart"}, r"has no \{folder\}"),
        ("train {steps}", {"pause": "signal"}, "is for pause='until' alone"),
        ("train", {"pause": "nap"}, "pause='nap', but pause must be 'signal'"),
        ("train", {"values": {"seed": 3}}, "values='seed', but values must be none of"),
        ("train", {"score": "("}, "is not a regular expression"),
        ("train", {"score": "acc.*"}, "has no group"),
        ("train", {"score_file": "metrics.txt:acc"}, "must be a .csv or .jsonl file"),
        ("train", {"full_steps": 0}, "full_steps=0"),
    ],
)
def test_what_is_wrong_is_said_before_a_program_starts(run, more, said):
    with pytest.raises(SettingError, match=said):
        Command(run, **{"score": "acc"} | more)(0)


def test_placeholders_are_words_and_a_shell_gets_quoted_values(script, tmp_path):
    show = script("import sys; print('acc=0.5', *sys.argv[1:], sep='|')")
    one = Command(
        [*show, "{seed}", "{name}", "{text}", "{{}}"], "acc", values={"text": "a b; echo acc=9"}
    )
    learner = one.build_in_race(7, "net", tmp_path)
    assert learner.pull() == 0.5
    assert (tmp_path / "net.log").read_text() == "acc=0.5|7|net|a b; echo acc=9|{}\n"
    shell = Command("echo acc=0.7; printf %s {text} > out", "acc", shell=True, cwd=str(tmp_path),
                    values={"text": "$HOME; x"}, env={"SECRET": "s3cret"})  # fmt: skip
    assert shell(0).pull() == 0.7
    assert "s3cret" not in str(shell.settings)


def test_the_page_shows_the_last_lines_of_each_program(script, tmp_path):
    words = script(CURVE)
    learners = {"<b>low": Command(curve(words, 0.5), "val_acc"),
                "high/er": Command(curve(words, 0.9), "val_acc")}  # fmt: skip
    verdict = race(learners, 12, policy="rr", journal=tmp_path / "r.db", progress=False)
    verdict.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    section = page.partition("<h2>Output")[2].partition("</section>")[0]
    assert "<h3>&lt;b&gt;low</h3>" in section and "<h3>high/er</h3>" in section
    assert section.count("val_acc=0.") >= 4


def test_scores_are_found_among_many_megabytes_of_other_bytes(script):
    words = script(
        """
        import os
        for n in range(3):
            for _ in range(100):
                os.write(1, os.urandom(1 << 16).replace(b"acc", b""))
            os.write(1, b"\\nacc=%d\\n" % n)
        """
    )
    learner = Command(words, "acc")(0)
    assert [learner.pull() for _ in range(3)] == [0.0, 1.0, 2.0]
    assert learner.log.stat().st_size <= LARGEST


def test_a_log_keeps_its_newer_half(tmp_path):
    log = OutputLog(tmp_path / "a.log")
    line = b"x" * 999 + b"\n"
    for n in range(LARGEST // 1000 + 2000):
        log.write(line if n else b"first\n")
    log.write(b"last\n")
    data = (tmp_path / "a.log").read_bytes()
    assert len(data) <= LARGEST and data.endswith(b"last\n") and b"first" not in data
    gone = OutputLog(tmp_path / "a.log" / "b.log")  # a full disk or a wrong folder loses the log
    gone.begin()
    gone.write(b"lost")


def called(pid):
    """The command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def wait_until(condition):
    """Wait until something is true; fail after some seconds."""
    limit = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < limit


def test_a_running_program_stops_while_its_race_is_stopped(script, tmp_path):
    """Ctrl-Z stops the race's process; the guardian stops and continues the program that runs."""
    runs = script("import time; print('acc=1', flush=True); time.sleep(600)")
    race_of_two = f"""
        from latebloomer.programs.command import Command
        paused, running = (Command({runs!r}, "acc")(0) for _ in range(2))
        paused.pull(), running.pull()
        print(paused.pid, running.pid, flush=True)
        running.pull()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(race_of_two)], stdout=subprocess.PIPE
    ) as stopped:
        try:
            paused, running = map(int, stopped.stdout.readline().split())
            wait_until(lambda: (state_of(paused), state_of(running)) == ("T", "S"))
            stopped.send_signal(signal.SIGSTOP)
            wait_until(lambda: state_of(running) == "T")
            stopped.send_signal(signal.SIGCONT)
            wait_until(lambda: state_of(running) == "S")
            assert state_of(paused) == "T"
        finally:
            stopped.kill()
    wait_until(lambda: started_at(running) is None and started_at(paused) is None)


def test_whether_a_process_is_stopped_is_known_without_proc(monkeypatch):
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            for linux in (True, False):
                monkeypatch.setattr(process_tree, "LINUX", linux)
                other.send_signal(signal.SIGCONT)
                wait_until(lambda: not process_tree.is_stopped(other.pid))
                other.send_signal(signal.SIGSTOP)
                wait_until(lambda: process_tree.is_stopped(other.pid))
        finally:
            other.kill()


@pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="sees open files on Linux")
def test_saving_waits_for_a_checkpoint_but_not_for_a_log_that_stays_open(
    script, tmp_path, monkeypatch
):
    words = script(
        """
        import os, sys, time
        folder, signs = sys.argv[1:]
        def wait_for(sign):
            while not os.path.exists(f"{signs}/{sign}"):
                time.sleep(0.001)
        log = open(folder + "/events.log", "w")
        for n in (1, 2, 3):
            wait_for(n)
            if n == 3:
                checkpoint = open(folder + "/state", "w")
                checkpoint.write("half")
            print(f"epoch={n} acc={n}", flush=True)
        wait_for("continued")
        checkpoint.write(" whole")
        checkpoint.close()
        time.sleep(600)
        """
    )
    command = Command([*words, "{folder}", str(tmp_path)], "acc", step="epoch")
    learner, waits = command.build_in_race(0, "net", tmp_path), []

    def sleep(seconds):
        (tmp_path / "continued").touch()
        waits.append(time.sleep(seconds))

    monkeypatch.setattr(running_program, "sleep", sleep)
    for n in (1, 2):
        (tmp_path / str(n)).touch()
        assert learner.pull() == n
    (tmp_path / "one").mkdir()
    learner.save(tmp_path / "one")
    assert waits == []  # the log was open at the first pause, too
    (tmp_path / "3").touch()
    assert learner.pull() == 3  # in the middle of a checkpoint
    (tmp_path / "two").mkdir()
    learner.save(tmp_path / "two")
    assert waits and (tmp_path / "two" / "folder" / "state").read_text() == "half whole"


def test_a_program_whose_pull_takes_too_long_is_ended_and_its_output_is_shown(script, tmp_path):
    silent = script("import time; print('reading', flush=True); time.sleep(600)", "silent.py")
    commands = {
        "good": Command(curve(script(CURVE), 0.9), "val_acc"),
        "silent": Command(silent, "val_acc"),
        "better": Command(curve(script(CURVE), 0.95), "val_acc"),
    }
    runner = LocalRunner(timeout=1.0, retries=0)
    journal = tmp_path / "r.db"
    verdict = race(commands, 9, runner=runner, progress=False, journal=journal)
    assert "timeout=1 s. Its last lines:\n  | reading\nAll of its" in verdict["silent"].why
    wait_until(
        lambda: not [pid for pid in descendants({os.getpid()}) if b"silent.py" in called(pid)]
    )


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads environments on Linux")
def test_programs_of_a_guardian_that_was_killed_are_ended_and_trained_again(script, tmp_path):
    words = script(
        """
        import itertools, os, subprocess, sys, time
        sleeps = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
        subprocess.Popen(sleeps, start_new_session=True)
        for n in itertools.count(1):
            print(f"acc={n}", flush=True)
            time.sleep(0.001)
        """
    )
    far = 10**6  # more scores than a program can have printed ahead
    made = Command(words, "acc")
    one, other = (made.build_in_race(0, name, tmp_path / "logs") for name in ("one", "other"))
    one.pull(), other.pull()
    guard = guarding.guardian()._process.pid
    family = descendants({guard})
    assert len(family) == 4
    os.kill(guard, signal.SIGKILL)
    with pytest.raises(LearnerError, match="guards the programs of this race has ended"):
        one.pull(far)
    wait_until(lambda: [pid for pid in family if started_at(pid)] == [])
    with pytest.raises(LearnerError, match="ended from outside"):
        other.pull(far)
    again = made.build_in_race(0, "one", tmp_path / "logs")
    assert again.pull(2) == 2


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads environments on Linux")
def test_what_a_race_has_left_that_was_killed_with_its_guardian_is_ended_by_the_next(
    script, tmp_path
):
    words = script("import time; print('acc=1', flush=True); time.sleep(600)")
    race_of_two = f"""
        import os, signal
        from pathlib import Path
        from latebloomer.programs import guardian
        from latebloomer.programs.command import Command
        logs = Path({str(tmp_path / "logs")!r})
        both = [Command({words!r}, "acc").build_in_race(0, name, logs) for name in ("a", "b")]
        print(*[int(learner.pull()) for learner in both], *[one.pid for one in both], flush=True)
        guard = guardian.guardian()._process
        guard.kill(), guard.wait()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    killed = [sys.executable, "-c", textwrap.dedent(race_of_two)]
    said = subprocess.run(killed, stdout=subprocess.PIPE, text=True).stdout.split()
    left = [int(pid) for pid in said[2:]]
    assert len(left) == 2 and all(started_at(pid) for pid in left)
    Command(words, "acc").build_in_race(0, "b", tmp_path / "logs")
    assert [pid for pid in left if started_at(pid)] == []
