"""Memory: asked for before it is taken, and refused in words."""

import pytest

from latebloomer._util import memory
from latebloomer._util.memory import FreeMemory, free_memory, need_memory
from latebloomer.errors import ChunkError


def test_what_is_refused_says_how_much_it_takes_how_much_is_free_and_what_to_do():
    free = FreeMemory(10**9, "says the test")
    words = r"a table takes 2,000,000,000 bytes, but 1,000,000,000 are free \(says the test\): cut"
    with pytest.raises(ChunkError, match=words):
        need_memory(2 * 10**9, "a table", "cut it", free)
    need_memory(10**9, "a table", "cut it", free)
    need_memory(memory.SMALL, "a short list", "no advice", FreeMemory(0, "is not asked"))


def test_the_limit_of_the_process_counts(in_little_memory):
    code = "from latebloomer._util.memory import free_memory; print(*free_memory(), sep='|')"
    size, told_by = in_little_memory(code, limit=2 * 2**30).split("|", 1)
    assert int(size) < 2 * 2**30
    assert told_by.startswith("RLIMIT_AS of 2,147,483,648")


SECOND = ("memory.max", "memory.current", "inactive_file")
FIRST = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


@pytest.mark.parametrize(
    ("group", "line", "names"),
    [("job", "0::/job", SECOND), ("", "0::/job", SECOND), ("memory/job", "4:memory:/job", FIRST)],
)
def test_the_limit_of_a_container_counts(group, line, names, tmp_path, monkeypatch):
    """Of version 2 and of version 1; the group may be our own or one around it.

    It has 900 bytes, 500 of them in use, of which 100 are pages of files.
    """
    (tmp_path / "own").write_text(f"9:cpu:/\n{line}\n")
    (tmp_path / group).mkdir(parents=True, exist_ok=True)
    texts = ("900\n", "500\n", f"anon 400\n{names[2]} 100\n")
    for name, text in zip((*names[:2], "memory.stat"), texts, strict=True):
        (tmp_path / group / name).write_text(text)
    monkeypatch.setattr(memory, "OWN_GROUPS", tmp_path / "own")
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    assert free_memory() == (500, f"{tmp_path / group / names[0]} less what is used")


def test_no_limit_no_groups_and_no_word_of_what_is_free(tmp_path, monkeypatch):
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "memory.max").write_text("max\n")
    monkeypatch.setattr(memory, "GROUPS", tmp_path)
    for own in (tmp_path / "own", tmp_path / "nothing"):
        monkeypatch.setattr(memory, "OWN_GROUPS", own)
        assert 0 < free_memory().size < 2**60
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "nothing")  # then it has what it has
    assert free_memory().size > 2**20
