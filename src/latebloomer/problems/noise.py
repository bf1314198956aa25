"""Kinds of noise, and the kernel that draws the rewards of pulls.

A reward is a pure function of (seed, run, arm, pull), where pull 0 is the first pull of an arm. So
the n-th reward of an arm in a run is the same, whatever the policy does. Each kind of noise in
this file is described by an integer code, a scale and a shape, so that one compiled function draws
all of them. Other noise has its own kernel.
"""

import dataclasses
import inspect
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from latebloomer.core.kernel import kernel, numbers_read
from latebloomer.core.kernel_numbers import NumbersOf, numbers_of
from latebloomer.core.random import UNIFORM as UNIFORM_DOMAIN
from latebloomer.core.random import block, normal, normals, uniform, unit
from latebloomer.errors import ContractError, CurveError, SettingError, require
from latebloomer.problems.curves import Floats

GAUSSIAN, BERNOULLI, UNIFORM, STUDENT_T, NOISELESS, OWN = range(6)  # OWN has its own kernel
Scale: TypeAlias = float | tuple[float, ...]  # one number for all arms, or one per arm


@kernel
def student_t(df: float, seed: int, run: int, arm: int, pull: int) -> float:
    r"""Return a Student's t variate by Bailey's exact transformation of two uniforms [Bailey94].

    .. math:: \sqrt{\nu (U^{-2/\nu} - 1)} \, \cos 2 \pi V
    """
    c0, c1, c2, c3 = block(seed, run, arm, pull, UNIFORM_DOMAIN)
    radius = math.sqrt(df * math.expm1(-2.0 / df * math.log(unit(c0, c1))))
    return radius * math.cos(2.0 * math.pi * unit(c2, c3))


@kernel
def variate(kind: int, shape: float, seed: int, run: int, arm: int, pull: int) -> float:
    """Return the random part of a reward, which does not depend on the mean or the scale.

    Parameters
    ----------
    kind : int
        Number of the kind of noise.
    shape : float
        Second number that some kinds need.
    seed : int
        Seed for the random numbers.
    run : int
        Number of the run.
    arm : int
        Number of the arm.
    pull : int
        Number of the pull, from 0.

    Returns
    -------
    float
        The random part.
    """
    if kind == GAUSSIAN:
        return normal(seed, run, arm, pull)
    if kind == BERNOULLI:
        return uniform(seed, run, arm, pull)
    if kind == UNIFORM:
        return 2.0 * uniform(seed, run, arm, pull) - 1.0
    if kind == STUDENT_T:
        return student_t(shape, seed, run, arm, pull)
    return 0.0


@kernel
def variates(out: Any, kind: int, shape: float, seed: int, run: int, arm: int, start: int) -> None:
    """Fill `out` with the variates of the pulls `start`, `start` + 1, ...; `start` is even.

    If the noise is Gaussian, this is faster than drawing the variates one by one.

    Parameters
    ----------
    out : Any
        An array to fill.
    kind : int
        Number of the kind of noise.
    shape : float
        Second number that some kinds need.
    seed : int
        Seed for the random numbers.
    run : int
        Number of the run.
    arm : int
        Number of the arm.
    start : int
        The first pull, an even number.
    """
    if kind == GAUSSIAN:
        normals(out, seed, run, arm, start)
    else:
        for i in range(len(out)):
            out[i] = variate(kind, shape, seed, run, arm, start + i)


@kernel
def reward(kind: int, scale: float, mean: float, value: float) -> float:
    """Return the reward of a pull whose variate is `value`.

    Parameters
    ----------
    kind : int
        Number of the kind of noise.
    scale : float
        Size of the noise.
    mean : float
        Mean of the reward.
    value : float
        The variate.

    Returns
    -------
    float
        The reward.

    Examples
    --------
    >>> reward(GAUSSIAN, 0.5, 1.0, -3.0), reward(BERNOULLI, 1.0, 0.75, 0.7)
    (-0.5, 1.0)
    """
    if kind == BERNOULLI:
        return 1.0 if value < mean else 0.0
    return mean + scale * value


@kernel
def draw(
    kind: int, scale: float, shape: float, mean: float, seed: int, run: int, arm: int, pull: int
) -> float:
    """Return the reward of an arm's pull `pull` (0 is the first), whose mean is `mean`.

    Parameters
    ----------
    kind : int
        Number of the kind of noise.
    scale : float
        Size of the noise.
    shape : float
        Second number that some kinds need.
    mean : float
        Mean of the reward.
    seed : int
        Seed for the random numbers.
    run : int
        Number of the run.
    arm : int
        Number of the arm.
    pull : int
        Number of the pull, from 0.

    Returns
    -------
    float
        The reward.

    Examples
    --------
    >>> draw(GAUSSIAN, 0.01, 0.0, 0.5, seed=0, run=0, arm=0, pull=0)
    0.49707660863802067
    """
    return reward(kind, scale, mean, variate(kind, shape, seed, run, arm, pull))


class Noise(ABC):
    """The random part of rewards. A subclass defines `reward`; the rest has defaults.

    A subclass is a frozen dataclass. Like the kernels of a policy, its `reward` runs unchanged in
    plain Python, compiled and on the GPU.
    """

    Numbers: ClassVar[Any] = NumbersOf()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.Numbers = NumbersOf()
        if cls.reward is Noise.reward:
            raise ContractError(
                f"Class {cls.__name__} does not say how a reward is drawn. Give it the method "
                "`reward(self, mean, seed, run, arm, pull)` with the decorator @kernel, as "
                "docs/simulation.md shows. For noise that you have measured, use Residuals."
            )
        if not hasattr(cls.reward, "__kernel__"):
            raise ContractError(
                f"{cls.__name__}.reward is a plain method. Put @kernel (from "
                "latebloomer.core.kernel) above it, so that it can be compiled."
            )
        given = len(inspect.signature(cls.reward).parameters)
        if given != len(inspect.signature(Noise.reward).parameters):
            raise ContractError(
                f"{cls.__name__}.reward takes {given} parameters, but it is called with six: "
                "`reward(self, mean, seed, run, arm, pull)`. Write the method that way."
            )

    @abstractmethod
    @kernel
    def reward(self, mean: float, seed: int, run: int, arm: int, pull: int) -> float:
        """Return the reward of an arm's pull `pull` (0 is the first), whose mean is `mean`.

        `self` is the named tuple that `numbers` returns. Take random numbers from
        `latebloomer.core.random`: `uniform(seed, run, arm, pull)` or `normal(...)`.
        """
        raise NotImplementedError

    def numbers(self, arms: int) -> Any:
        """Return the named tuple that is `self` inside `reward`. Default: the numeric fields."""
        return numbers_of(self)

    def level(self, arms: int) -> float | None:
        """Return the sub-Gaussian level sigma of the noisiest arm; None if none is finite."""
        return None

    def check(self, means: Floats) -> None:  # noqa: B027 (most kinds can have any mean)
        """Raise a `CurveError` if the noise cannot have these means."""


class KindNumbers(NamedTuple):
    """The numbers of a kind of noise in this file, which are `self` inside its `reward`."""

    kind: int
    scales: Floats
    shape: float


class KnownNoise(Noise):
    """A kind of noise in this file; `draw` uses its `kind`, `shape` and `scales(arms)`."""

    kind: ClassVar[int]

    @property
    def shape(self) -> float:
        """Second number that some kinds need; 0 for the others."""
        return 0.0

    @abstractmethod
    def scales(self, arms: int) -> Floats:
        """Return the scale of each arm."""

    def numbers(self, arms: int) -> KindNumbers:
        return KindNumbers(self.kind, self.scales(arms), self.shape)

    @kernel
    def reward(self: Any, mean: float, seed: int, run: int, arm: int, pull: int) -> float:
        return draw(self.kind, self.scales[arm], self.shape, mean, seed, run, arm, pull)


class SizedNoise(KnownNoise):
    """Noise whose size is a setting: one number for all arms, or one per arm."""

    @property
    @abstractmethod
    def size(self) -> str:
        """Name of the setting."""

    def __post_init__(self) -> None:
        name, size = self.size, getattr(self, self.size)
        try:
            values = np.asarray(size, dtype=np.float64)
        except (TypeError, ValueError):
            raise SettingError(
                f"{name}={size!r}, but {name} must be a number, or one per arm"
            ) from None
        good = values.ndim <= 1 and values.size > 0 and np.all(np.isfinite(values) & (values >= 0))
        require(bool(good), name, size, "finite and at least 0", "it is the size of the noise")
        object.__setattr__(self, name, tuple(values.tolist()) if values.ndim else float(values))

    def scales(self, arms: int) -> Floats:
        scale = getattr(self, self.size)
        if isinstance(scale, float):
            return np.full(arms, scale)
        need = f"one number, or one for each of {arms} arms"
        require(len(scale) == arms, self.size, scale, need, f"there are {len(scale)}")
        return np.array(scale)


@dataclass(frozen=True)
class Gaussian(SizedNoise):
    """Gaussian noise, with one standard deviation for all arms or one per arm.

    Parameters
    ----------
    sd : Scale
        Standard deviation: one number for all arms, or one per arm.

    Examples
    --------
    >>> Gaussian(0.01).scales(2), Gaussian((0.1, 0.2)).scales(2)
    (array([0.01, 0.01]), array([0.1, 0.2]))
    """

    sd: Scale
    kind: ClassVar[int] = GAUSSIAN
    size = "sd"

    def level(self, arms: int) -> float:
        return float(self.scales(arms).max())


@dataclass(frozen=True)
class Bernoulli(KnownNoise):
    """Rewards that are 0 or 1; means must be in [0, 1]."""

    kind: ClassVar[int] = BERNOULLI

    def scales(self, arms: int) -> Floats:
        return np.ones(arms)

    def level(self, arms: int) -> float:
        return 0.5

    def check(self, means: Floats) -> None:
        if means.min() < 0 or means.max() > 1:
            raise CurveError(
                f"means from {means.min():.6g} to {means.max():.6g} with Bernoulli noise, but a "
                "mean must be in [0, 1]: it is the probability of a reward of 1"
            )


@dataclass(frozen=True)
class Uniform(SizedNoise):
    """Rewards that are uniform within `half_width` of the mean.

    Parameters
    ----------
    half_width : Scale
        Largest distance to the mean: one number for all arms, or one per arm. The standard
        deviation is 1/sqrt(3) of it.
    """

    half_width: Scale
    kind: ClassVar[int] = UNIFORM
    size = "half_width"

    def level(self, arms: int) -> float:
        return float(self.scales(arms).max()) / math.sqrt(3)  # sinh(x)/x <= exp(x^2/6)


@dataclass(frozen=True)
class StudentT(SizedNoise):
    """Noise with heavy tails: `scale` times Student's t with `df` degrees of freedom.

    The variance is scale^2 df / (df - 2) if df > 2, and infinite otherwise. The noise is not
    sub-Gaussian: it has no finite sigma.

    Parameters
    ----------
    df : float
        Degrees of freedom, above 1.
    scale : Scale
        Factor of the variate: one number for all arms, or one per arm.
    """

    df: float
    scale: Scale
    kind: ClassVar[int] = STUDENT_T
    size = "scale"

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            1 < self.df < math.inf,
            "df",
            self.df,
            "above 1 and finite",
            "the mean of a pull must exist",
        )

    @property
    def shape(self) -> float:
        return float(self.df)


@dataclass(frozen=True)
class Noiseless(KnownNoise):
    """No noise: every reward is the mean of its pull."""

    kind: ClassVar[int] = NOISELESS

    def scales(self, arms: int) -> Floats:
        return np.zeros(arms)

    def level(self, arms: int) -> float:
        return 0.0


def as_noise(noise: Any) -> Noise:
    """Return a noise unchanged, a number (or one per arm) as Gaussian noise, None as no noise.

    >>> as_noise(0.01), as_noise(None)
    (Gaussian(sd=0.01), Noiseless())
    """
    if isinstance(noise, Noise):
        return noise
    if isinstance(noise, type | str):
        of = f"{noise.__name__}(...)" if isinstance(noise, type) else "Gaussian(0.01)"
        raise SettingError(
            f"noise={noise!r} must be a Noise, for example {of}, a standard deviation, or None."
        )
    return Noiseless() if noise is None else Gaussian(noise)


def need_reward(noise: Noise, arms: int) -> None:
    """Raise a `SettingError` unless rewards of a noise can be drawn in all simulators."""
    name = type(noise).__name__
    if not dataclasses.is_dataclass(noise):
        raise SettingError(
            f"noise={noise!r}: class {name} must be a dataclass: put @dataclass(frozen=True) "
            f"above it. Its numeric fields are what `self` has inside {name}.reward."
        )
    numbers = noise.numbers(arms)
    for missing in sorted(numbers_read(type(noise).reward) - set(dir(numbers))):
        raise SettingError(
            f"noise={noise!r}: {name}.reward reads self.{missing}, which is not a numeric field "
            f"of the class (there are: {', '.join(numbers._fields) or 'none'}). Add the field "
            f"`{missing}: float`, or let {name}.numbers return a named tuple that has it."
        )
