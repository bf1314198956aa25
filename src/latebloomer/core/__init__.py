"""What an arm's rewards say; knows no other room.

`ledger`, `moves`, `phases`: the rewards of a run and its moves; `estimators`, `recurrences`,
`statistics`, `prefix_sums`: what they say; `random`: where simulated ones come from; `kernel`,
`compiling`: one text for plain Python, CPU and GPU.
"""
