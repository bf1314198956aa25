"""Make the word counts for the figure `imdb-live` from the public data set of reviews.

Download https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz (Maas et al., ACL 2011;
84 MB), then run::

    python -m latebloomer.paper.imdb_reviews aclImdb_v1.tar.gz FOLDER

and set ``LATEBLOOMER_DATA=FOLDER``. The 50,000 labeled reviews take about a minute. Words are
lower-case letters and digits, with apostrophes inside; HTML tags are removed; the 10,000 most
frequent words are kept, the most frequent first.
"""

import io
import re
import sys
import tarfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import numpy as np

from latebloomer._util.atomic_files import make_folder, write_file
from latebloomer.errors import CurveError, LatebloomerError, SettingError
from latebloomer.paper.live_imdb import FILE

MOST_WORDS = 10_000
TAG, WORD = re.compile(r"<[^>]*>"), re.compile(r"[a-z0-9]+(?:'[a-z]+)*")
PARTS = ("train/neg", "train/pos", "test/neg", "test/pos")  # subfolders of the folder aclImdb


class Review(NamedTuple):
    """Words of a review with their counts, and whether it is positive."""

    words: Counter[str]
    positive: bool


def words_in(text: str) -> Counter[str]:
    """Return the words of a review with their counts.

    >>> words_in("Don't miss it.<br />It's not a 10!")
    Counter({"don't": 1, 'miss': 1, 'it': 1, "it's": 1, 'not': 1, 'a': 1, '10': 1})
    """
    return Counter(WORD.findall(TAG.sub(" ", text.lower())))


def reviews_in(archive: Path) -> Iterator[Review]:
    """Yield the labeled reviews of the archive, by part and file name."""
    reviews: dict[str, list[tuple[str, Counter[str]]]] = {part: [] for part in PARTS}
    try:
        with tarfile.open(archive) as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                part = "/".join(path.parent.parts[-2:])
                file = (
                    tar.extractfile(member) if part in reviews and path.suffix == ".txt" else None
                )
                if file is not None:
                    reviews[part].append((path.name, words_in(file.read().decode("utf-8"))))
    except (OSError, tarfile.TarError) as error:
        raise CurveError(f"{archive}: not the archive of reviews ({error})") from error
    empty = [part for part in PARTS if not reviews[part]]
    if empty:
        raise CurveError(f"{archive}: there are no reviews in aclImdb/{empty[0]}")
    for part in PARTS:
        yield from (Review(words, part.endswith("pos")) for _, words in sorted(reviews[part]))


def write_counts(reviews: Iterable[Review], folder: Path) -> Path:
    """Write the counts as `imdb-live` reads them; return the file."""
    every, total = list(reviews), Counter[str]()
    for review in every:
        total.update(review.words)
    common = sorted(total, key=lambda word: (-total[word], word))[:MOST_WORDS]
    place = {word: column for column, word in enumerate(common)}
    rows = [
        sorted((place[word], n) for word, n in review.words.items() if word in place)
        for review in every
    ]
    archive = io.BytesIO()
    np.savez_compressed(
        archive,
        data=np.array([n for row in rows for _, n in row], np.uint16),
        indices=np.array([column for row in rows for column, _ in row], np.uint16),
        indptr=np.cumsum([0, *map(len, rows)], dtype=np.int32),
        shape=np.array([len(rows), len(common)]),
        vocab=np.array(common),
        label=np.array([review.positive for review in every], np.int8),
    )
    path = make_folder(folder / FILE.parent) / FILE.name
    write_file(path, archive.getvalue())
    return path


def main(words: list[str]) -> int:
    """Run the script; return its exit code."""
    try:
        if len(words) != 2:
            raise SettingError("give two arguments: the archive aclImdb_v1.tar.gz and a folder")
        print(f"wrote {write_counts(reviews_in(Path(words[0])), Path(words[1]))}")
    except LatebloomerError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
