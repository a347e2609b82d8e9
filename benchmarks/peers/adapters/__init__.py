"""One module a peer, run by the peer's own interpreter: it has the standard library and the peer, nothing of ours.

Each has `make(variant, arguments, schema)`, which gives a function, sync or async, that makes one call of a tool.
"""
