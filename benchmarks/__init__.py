"""What the project promises to be quick at, measured: `python -m benchmarks` (see README.md beside this file)."""
