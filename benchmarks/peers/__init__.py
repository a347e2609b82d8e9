"""Public systems that do the same work, measured in one run with ours: `python -m benchmarks --peers hermes,llm`."""
