"""The paper's experiments, one file per figure or table, in two modes.

*as-written* plays the library's own policies, which follow the text. *as-published* plays the
conventions that made the published numbers (`published.py`), which live here and nowhere else.
"""
