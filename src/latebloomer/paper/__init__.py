"""The reproduction of the paper: its figures and tables, and a verdict on each of its claims.

`latebloomer reproduce` makes them, in two modes. *as-written* simulates the library's own
policies, which follow the text. *as-published* uses the conventions behind the published numbers,
which are only in `published_algorithms.py`.

`reproduction.py` lists the figures, decides the claims and writes the files. `experiments.py` has
the paper's settings and the runs that several figures share, and `claims.py` has each claim of the
paper with its check. To add a figure, create a `Figure` (`workbench.py`) and add it to the list.
"""

AS_WRITTEN, AS_PUBLISHED = "as-written", "as-published"
MODES = (AS_WRITTEN, AS_PUBLISHED)
PUBLISHED_RUNS = 100  # runs of each algorithm at each budget in the paper's figures
WINDOW = 0.25  # epsilon in all experiments of the paper
