"""Reading a Python script: what its names stand for, and what it would do, by its syntax tree."""
