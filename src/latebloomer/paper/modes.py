"""The two modes of the reproduction, and how often the paper repeats a run."""

AS_WRITTEN, AS_PUBLISHED = "as-written", "as-published"
MODES = (AS_WRITTEN, AS_PUBLISHED)
PUBLISHED_RUNS = 100  # of the paper's figures
