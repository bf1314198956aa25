"""Where simulated rewards come from: curve families, recorded curves, counter-based noise."""

from latebloomer.problems.curves import (
    Curve,
    Exponential,
    LowerBound,
    PaperF,
    PiecewiseLinear,
    PowerLaw,
    SShaped,
    Stationary,
)
from latebloomer.problems.noise import (
    Bernoulli,
    Gaussian,
    Noise,
    Noiseless,
    StudentT,
    Uniform,
)
from latebloomer.problems.problem import AssumptionReport, Problem
from latebloomer.problems.problem_names import (
    FAMILIES,
    imdb,
    known_problems,
    lower_bound,
    one_riser,
    paper_a,
    paper_b,
    problem,
    random_problem,
)
from latebloomer.problems.recorded import load

__all__ = [
    "FAMILIES",
    "AssumptionReport",
    "Bernoulli",
    "Curve",
    "Exponential",
    "Gaussian",
    "LowerBound",
    "Noise",
    "Noiseless",
    "PaperF",
    "PiecewiseLinear",
    "PowerLaw",
    "Problem",
    "SShaped",
    "Stationary",
    "StudentT",
    "Uniform",
    "imdb",
    "known_problems",
    "load",
    "lower_bound",
    "one_riser",
    "paper_a",
    "paper_b",
    "problem",
    "random_problem",
]
