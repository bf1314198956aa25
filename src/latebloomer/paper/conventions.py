"""The table of conventions in the text, in the published numbers and in this library.

`docs/reproduction.md` shows the same table; a test checks that both are equal.
"""

COLUMNS = (
    "", "the text", "published code (as-published)", "as-written", "this library by default",
)  # fmt: skip
CONVENTIONS: tuple[tuple[str, ...], ...] = (
    (
        "R-UCBE recommends",
        "argmax B",
        "argmax of the estimate",
        "argmax B; the estimate in 'R-UCBE (estimate)'",
        "argmax of the estimate",
    ),
    (
        "a of R-UCBE",
        "a* of Corollary 1, which does not exist in A and B (negative bracket)",
        "10 times a formula without K - 1 and c, with exponent 2/3 for every β, whose bracket is "
        "squared where it is negative: at T = 3200, 10 × 151.0 in A and 10 × 118.0 in B",
        "that formula without the 10: 151.0 and 118.0 (the text's, squared, would be 215.6 and "
        "73.4); 10 log(2TK/δ), 133.7 and 128.6, in 'R-UCBE (theory)'",
        "10 log(2TK/δ), δ = .05",
    ),
    ("β in A, B, IMDB", "1.3 in all", "1.3, 1.001, 1.5", "1.3, 1.001, 1.5", "not needed"),
    (
        "σ known to R-UCBE",
        "yes: .01 in A and B",
        ".01 in A and B, .05 for IMDB (residuals: .013)",
        "as published",
        "estimated, unless it is given",
    ),
    (
        "window (ε = .25)",
        "h = ⌊ε n⌋",
        "R-SR and RR-SW keep their first three rewards in every window sum",
        "max(1, ⌊ε n⌋); R-UCBE starts with sweeps until every window has a reward",
        "as written",
    ),
    ("mean of an arm's first pull", "μ(1)", "μ(0)", "μ(1)", "μ(1)"),
    (
        "pulls left after R-SR's phases",
        "not used",
        "go to the survivor",
        "go to the survivor",
        "go to the survivor (leftover='unspent' leaves them)",
    ),
    (
        "ties, and the order in a phase",
        "not said",
        "SR and R-SR draw both, without a seed",
        "lowest index",
        "lowest index",
    ),
    (
        "noise",
        "independent, each round",
        "one vector for each trial, by round, the same for all algorithms",
        "a function of seed, run, arm and pull, the same for all algorithms",
        "as written",
    ),
    (
        "best arm that counts as right",
        "largest μ(T)",
        "arm 1 in B from T = 200 on, although arm 3 is best up to 279; for IMDB a row fixed by "
        "hand",
        "largest μ(T)",
        "largest μ at the horizon",
    ),
    ("ρ of ETC", ".8", ".98 in A, .8 elsewhere", ".8", ".8"),
)
