"""Small learners that tests of races share."""

import random
from itertools import count


def rising(best, slow=5):
    """A generator function of scores that rise towards `best`."""
    return lambda: (best * n / (n + slow) for n in count(1))


def acts(at, act, best=0.9):
    """A generator function that does something before one of its pulls, and yields models too."""

    def scores():
        for n in count(1):
            if n == at:
                act()
            yield best * n / (n + 5), n

    return scores


LEARNERS = {"a": rising(0.9), "b": rising(0.7), "c": rising(0.5)}


class Saves:
    """Rises in the same way and can be saved; `made` counts the pulls of this object."""

    def __init__(self, best=1.0):
        self.best, self.n, self.made = best, 0, 0

    def pull(self):
        self.n, self.made = self.n + 1, self.made + 1
        return self.best * self.n / (self.n + 5)

    def save(self, folder):
        (folder / "n").write_text(str(self.n).zfill(1000))

    def load(self, folder):
        self.n = int((folder / "n").read_text())


def saves(best):
    return lambda: Saves(best)


def curve(slow, best, noise=0.0, end=None, fail=None):
    """A generator function whose scores rise to `best`."""

    def scores(seed):
        rng = random.Random(seed)
        for n in count(1) if end is None else range(1, end + 1):
            if n == fail:
                raise RuntimeError("boom")
            yield best * n / (n + slow) + rng.gauss(0, 1) * noise

    return scores


FIVE = {
    "late": curve(37, 1.0, 0.01),
    "second": curve(10, 0.88, 0.01),
    "early": curve(1, 0.78, 0.01),
    "weak": curve(10, 0.7, 0.01),
    "slow": curve(20, 0.5, 0.01),
}
TWO = {"a": curve(3, 0.8), "b": curve(3, 0.6)}


class Counter:
    """An object with nothing but `pull`."""

    def __init__(self, step=1.0):
        self.step, self.n = step, 0

    def pull(self):
        self.n += 1
        return self.step * self.n


def noisy_curve(slow, best, end=None, fail=None):
    """A function of a seed that yields noisy scores; they may end, or fail with odd text."""

    def scores(seed):
        rng = random.Random(seed)
        for n in count(1) if end is None else range(1, end):
            if n == fail:
                raise ValueError("out of <memory> & time")
            yield best * n / (n + slow) + rng.gauss(0, 0.01)

    return scores
