"""Approvals at the command line: what was allowed, what becomes of a command, and the question on a terminal."""
