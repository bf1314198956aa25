"""What may enter a journal is what comes back; all else is refused where it enters."""

import json
import math
import re
import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latebloomer import LocalRunner, race, read_verdict, resume
from latebloomer._util.text import plain_or_text
from latebloomer.errors import JournalError, SettingError
from latebloomer.policies.rising_sr import RisingSR
from latebloomer.racing.journal import event_log, schema
from latebloomer.racing.journal.schema import FIELDS, Entry, checksum, entry_of, row_of
from latebloomer.racing.journal.value_codec import NotPlain, from_json, to_json
from latebloomer.session.events import KINDS, Created, ScoreReported
from tests.helpers.learners import LEARNERS
from tests.helpers.races import run

TEXTS = st.text(st.characters(), max_size=8) | st.sampled_from(["\0", "a\0b", "\udc80", "$float"])
FLOATS = st.floats(allow_nan=False) | st.sampled_from([-0.0, math.inf, -math.inf, 5e-324, 1e308])
WORDS = st.integers(-(2**63), 2**63 - 1)
NUMPY = st.one_of(
    WORDS.map(np.int64),
    st.integers(0, 255).map(np.uint8),
    FLOATS.map(np.float64),
    st.floats(width=32, allow_nan=False).map(np.float32),
    st.booleans().map(np.bool_),
)
LEAVES = st.none() | st.booleans() | st.integers() | FLOATS | TEXTS | NUMPY
KEYS = TEXTS | st.integers() | st.tuples(st.integers(), TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=6,
)
DICTS = st.dictionaries(TEXTS, VALUES, max_size=3)
NUMBERS = FLOATS | st.integers(-1000, 1000) | NUMPY.filter(lambda x: not isinstance(x, np.bool_))
WHOLE = WORDS | WORDS.map(np.int64)
OF_TYPE = {
    int: WHOLE,
    int | None: st.none() | WHOLE,
    float: NUMBERS,
    float | None: st.none() | NUMBERS,
    bool: st.booleans() | st.booleans().map(np.bool_),
    str: TEXTS,
    tuple[str, ...]: st.lists(TEXTS, max_size=3).map(tuple),
    tuple[float, ...]: st.lists(FLOATS, max_size=3).map(tuple),
    tuple[int, ...]: st.lists(WHOLE, max_size=3).map(tuple),
    Mapping[str, str]: st.dictionaries(TEXTS, TEXTS, max_size=3),
    Mapping[str, object]: DICTS,
}
ANY_DICT = next(declared for declared in schema.CHECKS if "Any]" in str(declared))


def of_type(declared):
    """Values of a field's declared type."""
    if declared in OF_TYPE:
        return OF_TYPE[declared]
    return DICTS if declared == ANY_DICT else st.none() | DICTS


def events():
    """Events of every kind, with any value of its type in each field."""
    return st.one_of(
        st.builds(kind, **{name: of_type(declared) for name, declared in FIELDS[kind].items()})
        for kind in KINDS.values()
    )


def same(one, other):
    """Whether two values are equal to the last bit: 0.0 is not -0.0, and a tuple is no list."""
    if isinstance(one, np.generic):
        one = one.item()
    if isinstance(one, float) and isinstance(other, float):
        return struct.pack("d", one) == struct.pack("d", other)
    if isinstance(one, Mapping):
        keys = len(one) == len(other) and all(map(same, one, other))
        return keys and all(same(one[key], other[key]) for key in one)
    if isinstance(one, tuple | list):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


def same_field(entered, back, declared):
    """As `same`, but a whole number that enters as a float comes back as one."""
    if declared in (float, float | None) and entered is not None:
        return same(float(entered), back)
    return same(entered, back)


@settings(max_examples=400)
@given(event=events(), elapsed=FLOATS)
def test_every_field_of_every_event_comes_back_from_sqlite_as_it_entered(event, elapsed):
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for statement in schema.TABLES.split(";\n")[:-1]:
            db.execute(statement)
        row = row_of(Entry(1, 1.0, elapsed, event))
        mark = checksum(0, row)
        db.execute(schema.INSERT, (*row[:-1], mark))
        (stored,) = db.execute(schema.SELECT, (0,))
        assert checksum(0, stored) == stored[-1] == mark
        back = entry_of(stored).event
        for name, declared in FIELDS[type(event)].items():
            assert same_field(getattr(event, name), getattr(back, name), declared), name
        # Every SQLite can read the JSON.
        assert db.execute("SELECT sum(json_valid(coalesce(data, '0'))) FROM events").fetchone()[0]


@given(VALUES)
def test_json_has_no_constants_that_only_python_reads(value):
    text = to_json(value)
    assert text.isascii() and json.loads(text, parse_constant=pytest.fail) is not pytest
    assert same(value, from_json(text))


def test_integers_of_any_length_come_back():
    """Python itself reads and writes no more than 4300 digits of an integer in decimals."""
    for number in (2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**5000, -(10**5000)):
        assert same(from_json(to_json(number)), number)


def test_a_number_that_is_not_one_comes_back_inside_a_dict_and_not_as_a_score():
    assert math.isnan(from_json(to_json({"x": math.nan}))["x"])
    with pytest.raises(NotPlain, match=r"ScoreReported.score=nan, but it must be a number"):
        row_of(Entry(1, 1.0, 0.0, ScoreReported(0, math.nan)))


@pytest.mark.parametrize(
    "value",
    [Fraction(1, 3), Decimal("0.1"), {1, 2}, b"x", object(), 1j, np.zeros(2), np.array(3)],
    ids=lambda value: type(value).__name__,
)
def test_other_values_are_refused_with_the_place_and_what_is_possible(value):
    said = re.escape("a.b[1]=") + ".* cannot be stored in a journal, which can store a number"
    with pytest.raises(NotPlain, match=said):
        to_json({"a": {"b": (0, value)}})


@pytest.mark.parametrize("text", ['{"$float": "1"}', '{"$new": 1}', '{"$int": 1}', "NaN", "[1"])
def test_json_that_the_codec_has_not_written_is_refused(text):
    with pytest.raises((ValueError, KeyError, TypeError)):
        from_json(text)


def deep():
    value = ()
    for _ in range(100_000):
        value = (value,)
    return value


def test_what_is_nested_too_deeply_is_refused():
    with pytest.raises(NotPlain, match="nested too deeply"):
        to_json({"x": deep()})


# --- races ---


def ends_at_zero():
    for n in range(1, 10**6):
        yield -round(1 / n**3, 2)  # -1.0, -0.12, ... -0.01, -0.0, -0.0


def test_a_race_with_scores_of_minus_zero_is_read_and_resumed(path):
    learners = {"a": ends_at_zero, "b": lambda: (-1 / n for n in range(1, 10**6))}
    verdict = race(learners, 60, journal=path, progress=False)
    assert read_verdict(path).summary() == verdict.summary()
    curve = read_verdict(path).curve("a")
    assert math.copysign(1, curve[-1]) == -1.0
    assert resume(path, learners, budget=80, progress=False).spent == 80


@pytest.mark.parametrize("score_range", [(0, math.inf), (-math.inf, 1), (None, 1)])
def test_an_open_score_range_is_resumed(path, score_range):
    run(path, score_range=score_range)
    assert resume(path, LEARNERS, budget=60, progress=False).spent == 60


@pytest.mark.parametrize(
    "settings",
    [
        {"winner_share": Fraction(1, 4)},
        {"budget": np.array(60)},
        {"horizon": np.array(30)},
        {"min_pulls": np.array(3), "policy": "r-sr"},
        {"seed": np.int64(3)},
        {"score_range": np.array([0, 1])},
        {"runner": LocalRunner(timeout=Fraction(600))},
        {"policy": RisingSR(window=np.float32(0.3))},
        {"policy": RisingSR(window=np.float64(0.3))},
        {"trainings": Fraction(3, 2), "full_steps": 40, "budget": None},
        {"trainings": 2, "full_steps": 40, "pulls_per_training": np.int64(20), "budget": None},
    ],
    ids=lambda settings: "-".join(f"{name}:{type(v).__name__}" for name, v in settings.items()),
)
def test_numbers_of_other_types_become_python_numbers_where_they_enter(path, settings):
    verdict = run(path, **{"budget": 60} | settings)
    again = resume(path, LEARNERS, progress=False)
    assert again.summary() == verdict.summary()
    same_call = run(path, **{"budget": 60} | settings, if_exists="resume")
    assert same_call.summary() == verdict.summary()


def test_a_setting_of_a_policy_that_no_journal_can_keep_is_refused_at_the_call(path):
    said = r"policy=RisingSR\(.*\): window=Fraction.* cannot be stored in a journal"
    with pytest.raises(SettingError, match=said):
        run(path, policy=RisingSR(window=Fraction(1, 3)))
    assert not path.exists()


def test_settings_of_learners_are_the_same_text_in_every_process():
    words = {"age", "sex", "income", "town", "street"}
    assert plain_or_text({"columns": words}) == (
        "{'columns': {'age', 'income', 'sex', 'street', 'town'}}"
    )
    assert len(plain_or_text(10**5000)) < 120


def test_an_event_that_no_journal_can_keep_leaves_it_as_it_was(tmp_path):
    from latebloomer.racing.journal import files

    created = Created("race", {}, ("a", "b"))
    with closing(files.create(tmp_path / "race.db", created)) as journal:
        with pytest.raises(JournalError, match=r"Created.settings.x=.* cannot be stored"):
            journal.append(Created("race", {"x": object()}, ()))
        journal.append(ScoreReported(np.int64(0), np.float32(0.5)))
        assert [entry.event for entry in journal.read()] == [created, ScoreReported(0, 0.5)]
    assert event_log.DAMAGE  # what a reader takes for damage
