"""Users' objects as text: without exceptions, without control characters, and not too long.

Also tables: rows as a data frame, and plain HTML for notebooks.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from html import escape
from math import isfinite, isnan
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

from latebloomer.errors import LearnerError, SettingError, extra

MOST = 80  # maximum characters of a value in a message
NAME = 40  # maximum characters of a name in a table
WORD = 2**63  # larger integers are shown and stored as text
LONGEST = 2000  # maximum characters of an exception's message
MOST_ROWS = 60  # maximum rows of a table for a notebook; longer tables are cut in the middle


def printable(text: str, keep: str = "\n\t") -> str:
    r"""Return text that can be shown and stored, with control and half characters escaped.

    >>> print(printable("net\x1b[31m\udc80"))
    net\x1b[31m\udc80
    """
    if text.isprintable():
        return text
    shown = (c if c in keep or c.isprintable() else ascii(c)[1:-1] for c in text)
    return "".join(shown)


def one_line(text: str) -> str:
    r"""Return printable text in one line, with line breaks escaped, too.

    >>> one_line("two\nlines")
    'two\\nlines'
    """
    return printable(text, keep="")


def plain_repr(value: object) -> str:
    """Return a value's `repr` without addresses in memory: the same in every process.

    >>> plain_repr([len, object()])
    '[<built-in function len>, <object object>]'
    """
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))


def plain_or_text(value: Any) -> Any:
    """Return a user's value if it is plain, else text that is the same in each process.

    >>> plain_or_text(0.5), plain_or_text({"b", "a"}), plain_or_text(len)
    (0.5, "{'a', 'b'}", '<built-in function len>')
    """
    if value is None or type(value) in (bool, str) or (type(value) is int and abs(value) < WORD):
        return value
    if isinstance(value, float) and isfinite(value):
        return float(value)
    try:
        text = _stable_text(value)
    except Exception:  # error of a user's own class, or of a number with thousands of digits
        return brief(value)
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return text if len(text) <= MOST else f"{one_line(text[:MOST])}... ({digest})"


def _stable_text(value: Any) -> str:
    """Return a `repr` without addresses and with sorted sets: both depend on the process."""
    if type(value) in (set, frozenset) and value:
        inner = f"{{{', '.join(sorted(map(_stable_text, value)))}}}"
        return inner if type(value) is set else f"frozenset({inner})"
    if type(value) is dict:
        items = (f"{_stable_text(key)}: {_stable_text(each)}" for key, each in value.items())
        return f"{{{', '.join(items)}}}"
    if type(value) is list:
        return f"[{', '.join(map(_stable_text, value))}]"
    if type(value) is tuple:
        end = "," if len(value) == 1 else ""
        return f"({', '.join(map(_stable_text, value))}{end})"
    if type(value) is int and abs(value) >= WORD:
        return hex(value)
    return plain_repr(value)


def brief(value: object) -> str:
    """Return a value as short text, even if its own `repr` fails.

    >>> brief([1, 2]), brief("x" * 200)[-5:], brief(10**5000)
    ('[1, 2]', 'xx...', 'an int that cannot be shown (ValueError)')
    """
    try:
        text = repr(value)
    except Exception as error:  # error of a user's own class, or a number with too many digits
        kind = type(value).__name__
        article = "an" if kind[:1].lower() in "aeiou" else "a"
        return f"{article} {kind} that cannot be shown ({type(error).__name__})"
    return one_line(text if len(text) <= MOST else f"{text[: MOST - 3]}...")


def reason_of(error: BaseException) -> str:
    r"""Return an exception as one line: its kind and its message.

    The message of a `LearnerError` keeps its lines, which may be a program's output.

    >>> reason_of(ValueError("no such\n  thing")), reason_of(KeyboardInterrupt())
    ('ValueError: no such thing', 'KeyboardInterrupt')
    """
    try:
        text = str(error)
    except Exception as broken:  # error of a user's own class
        text = f"its message cannot be shown ({type(broken).__name__})"
    text = shortened(text, LONGEST)
    keep = "\n" if isinstance(error, LearnerError) else ""
    if not keep:
        text = " ".join(map(str.strip, text.split("\n")))
    return printable(f"{type(error).__name__}: {text}" if text else type(error).__name__, keep)


def shortened(text: str, most: int) -> str:
    """Return a long text without its middle, because the ends often say more.

    >>> shortened("net, 3 layers", 20), shortened("MLPClassifier(hidden=(8,), alpha=0.001)", 20)
    ('net, 3 layers', 'MLPClassi…pha=0.001)')
    """
    if len(text) <= most:
        return text
    end = most // 2
    return f"{text[: most - 1 - end]}…{text[-end:]}"


def as_sentence(text: str) -> str:
    """Return a text with a capital letter and a full stop.

    >>> as_sentence("the budget is spent")
    'The budget is spent.'
    """
    return stopped(text[:1].upper() + text[1:])


def stopped(text: str) -> str:
    """Return a text that ends in one full stop, which others' messages may already have.

    >>> stopped("it failed: no such file."), stopped("it failed")
    ('it failed: no such file.', 'it failed.')
    """
    return text if text.endswith((".", "!", "?")) else f"{text}."


def short_name(name: str) -> str:
    """Return a learner's name for a narrow column."""
    return shortened(one_line(name), NAME)


def quoted(name: str) -> str:
    """Return a learner's name for a sentence, in quotes if it has several words.

    >>> print(quoted("forest"), quoted("random forest"))
    forest "random forest"
    """
    return f'"{name}"' if re.search(r"\s", name) else name


def score_text(value: float) -> str:
    """Return a score with four digits, as it is shown everywhere; a dash if there is none.

    >>> score_text(0.123456), score_text(20.0), score_text(12345.678), score_text(float("nan"))
    ('0.1235', '20', '12345.7', '–')
    """
    if not isfinite(value):
        return "–" if isnan(value) else "∞" if value > 0 else "−∞"
    return f"{value:.4g}" if abs(value) < 9999 else f"{value:.6g}"


def scores_apart(one: float, other: float) -> tuple[str, str]:
    """Return two scores for a comparison, with more digits if they are equal in four.

    >>> scores_apart(0.5, 0.25), scores_apart(0.83642, 0.83644), scores_apart(0.5, 0.5)
    (('0.5', '0.25'), ('0.83642', '0.83644'), ('0.5', '0.5'))
    """
    texts = score_text(one), score_text(other)
    for digits in range(5, 18):
        if texts[0] != texts[1] or one == other:
            break
        texts = f"{one:.{digits}g}", f"{other:.{digits}g}"
    return texts


def estimate_against(own: float, rival: str, rivals: float) -> str:
    """Return text that compares an estimate with the estimate of a rival.

    >>> estimate_against(0.5, "random forest", 0.75), estimate_against(0.5, "net", 0.5)
    ('estimate 0.5, versus 0.75 for "random forest"', 'estimate 0.5, a tie with net')
    """
    mine, theirs = scores_apart(own, rivals)
    if mine == theirs:
        return f"estimate {mine}, a tie with {quoted(rival)}"
    return f"estimate {mine}, versus {theirs} for {quoted(rival)}"


def short_seconds(seconds: float) -> str:
    """Return seconds as text for a table.

    >>> short_seconds(0.00042), short_seconds(0.042), short_seconds(4200.4)
    ('<0.01', '0.042', '4,200')
    """
    if 0 < seconds < 0.01:
        return "<0.01"
    return f"{seconds:.3g}" if seconds < 999.5 else f"{seconds:,.0f}"


def span_of_time(seconds: float) -> str:
    """Return a duration in its two largest units.

    >>> span_of_time(0.2), span_of_time(75), span_of_time(7300)
    ('0 s', '1 min 15 s', '2 h 1 min')
    """
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def number_or_text(text: str) -> int | float | str:
    """Return the text of a setting as a number, or unchanged if it is not a number.

    >>> number_or_text("3"), number_or_text("1e-3"), number_or_text("window")
    (3, 0.001, 'window')
    """
    for read in (int, float):
        with suppress(ValueError):
            return read(text)
    return text


def wrapped(text: str, width: int | None, indent: int = 0) -> str:
    r"""Return a text wrapped between words to `width` characters; unchanged if that is None.

    Words that are longer than a line, such as paths, are not broken. Lines that continue another
    one begin with `indent` blanks.

    >>> print(wrapped("train all learners to 23 pulls", 16))
    train all
    learners to 23
    pulls
    """
    if width is None:
        return text
    break_at = TextWrapper(
        width, break_long_words=False, break_on_hyphens=False, subsequent_indent=" " * indent
    )
    lines = (break_at.wrap(line) if len(line) > width else [line] for line in text.split("\n"))
    return "\n".join("\n".join(parts) for parts in lines)


# --- tables ---


def aligned(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Return rows as lines; `sides` has "<" or ">" for each column.

    >>> aligned([["policy", "error"], ["r-sr", "0.5"]], "<>")
    ['policy  error', 'r-sr      0.5']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    line = "  ".join(f"{{:{side}{n}}}" for side, n in zip(sides, widths, strict=True))
    return [line.format(*row).rstrip() for row in rows]


def data_frame(
    rows: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    index: str | Sequence[str] | None = None,
) -> Any:
    """Return rows, or columns by name, as a pandas data frame.

    `index` names columns for the index of the data frame.

    >>> data_frame([{"name": "a", "pulls": 3}], index="name").loc["a", "pulls"].item()
    3
    """
    pandas = extra("pandas", "data frames", "pandas")
    frame = pandas.DataFrame(rows if isinstance(rows, Mapping) else list(rows))
    if index is None:
        return frame
    for name in [index] if isinstance(index, str) else index:
        if name not in frame.columns:
            raise SettingError(
                f"index={name!r}, but index must be of the columns {', '.join(frame.columns)}"
            )
    return frame.set_index(index if isinstance(index, str) else list(index))


def html_table(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """Return an HTML table with a title above and sentences below; all text is escaped.

    >>> html_table("a <title>", ["arm"], [["b"]])
    '<p><b>a &lt;title&gt;</b></p><table><thead><tr><th ...>arm</th></tr></thead>...>b</td>...'
    """
    lines = [_line(row, "td") for row in rows]
    more = len(lines) - MOST_ROWS
    if more > 0:
        cut = f'<tr><td colspan="{len(head)}">… {more} more …</td></tr>'
        lines = [*lines[: MOST_ROWS // 2], cut, *lines[-MOST_ROWS // 2 :]]
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return (
        f"<p><b>{escape(title)}</b></p><table><thead>{_line(head, 'th')}</thead>"
        f"<tbody>{''.join(lines)}</tbody></table>{below}"
    )


def _line(cells: Sequence[str], tag: str) -> str:
    left = 'style="text-align: left"'  # notebooks align cells to the right
    return f"<tr>{''.join(f'<{tag} {left}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"


def near(path: Path) -> str:
    """Return a path relative to the current folder, if it is inside that folder."""
    if not has_current_folder() or not path.is_relative_to(Path.cwd()):
        return str(path)
    return str(path.relative_to(Path.cwd()))


def has_current_folder() -> bool:
    """Return whether the current folder still exists; it may have been temporary."""
    try:
        return bool(Path.cwd())
    except FileNotFoundError:
        return False
