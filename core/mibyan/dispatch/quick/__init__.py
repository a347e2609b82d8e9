"""The quick way of calls: compiled when they come again, handed to the pipeline at the first thing that isn't usual.

`lane` finds the compiled call, `compiled` makes it of `parts` and `hooks`, `frame` is what foreign code sees of it and
`replay` how the pipeline goes on. `guard` watches it on a thread; `awaited`, `owntask` and `driven` run it in a loop,
`bridge` from sync code.
"""
