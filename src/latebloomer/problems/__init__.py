"""The sources of simulated rewards: curve families, recorded curves and counter-based noise."""

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
from latebloomer.problems.noise import Bernoulli, Gaussian, Noise, Noiseless, StudentT, Uniform
from latebloomer.problems.problem import AssumptionReport, Problem
from latebloomer.problems.problem_names import (
    FAMILIES,
    known_problems,
    lower_bound,
    one_riser,
    paper_a,
    paper_b,
    problem,
    random_problem,
    theorem_4,
)
from latebloomer.problems.public_curves import imdb
from latebloomer.problems.recorded import load
from latebloomer.problems.residuals import Residuals

__all__ = ["AssumptionReport", "Problem", "load"]
__all__ += ["Curve", "Exponential", "LowerBound", "PaperF", "PiecewiseLinear", "PowerLaw"]
__all__ += ["SShaped", "Stationary"]
__all__ += ["Bernoulli", "Gaussian", "Noise", "Noiseless", "Residuals", "StudentT"]
__all__ += ["Uniform"]
__all__ += ["FAMILIES", "imdb", "known_problems", "lower_bound", "one_riser", "paper_a", "paper_b"]
__all__ += ["problem", "random_problem", "theorem_4"]
