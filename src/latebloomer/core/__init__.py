"""The data and moves of a run, and estimators of rewards; it imports only `_util`.

`ledger`, `moves`, `ranking` and `phases` have the data of a run and its moves. `history` and
`running_sums` have an arm's rewards and their estimators. `formulas` needs no rewards, and
`statistics` works on any sample. `policy_moves` and `run_memory` are about a run of one policy.
`random` draws random numbers. `kernel` compiles one text for plain Python, CPU and GPU.
"""
