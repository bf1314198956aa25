"""What an arm's rewards say; imports no other package of the library but `_util`.

`ledger`, `moves`, `ranking`, `phases`: the data of a run and its moves; `history`, `running_sums`:
an arm's rewards and what they say; `formulas`, `statistics`: what needs no reward or any sample;
`policy_moves`, `run_memory`: a run of one policy; `random`: where simulated rewards come from;
`kernel`: one text for plain Python, CPU and GPU.
"""
