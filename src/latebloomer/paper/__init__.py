"""The reproduction of the paper: one file per figure or table, its claims in one place.

`latebloomer reproduce` makes them, in two modes. *as-written* plays the library's own policies,
which follow the text (`as_written.py`). *as-published* plays the conventions that made the
published numbers (`as_published.py`), which live in `published_algorithms.py` and nowhere else.

Where to look: `reproduction.py` lists the figures and writes their files, `experiments.py` has the
paper's settings, `series.py` the runs that several figures share, `section_8_claims.py` and
`appendix_claims.py` each sentence of the paper beside its check, and `claim_results.py` decides
them, with more runs where these leave one open. To add a figure, make a `Figure` and list it.
"""
