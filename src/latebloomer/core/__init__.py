"""What an arm's rewards say; imports no other package of the library but `_util`.

`ledger`, `moves`, `phases`: the rewards of a run and its moves; `estimators`, `statistics`: what
they say; `random`: where simulated ones come from; `kernel`: one text for plain Python, CPU and
GPU.
"""
