"""Speed and memory beside their limits, each pair measured in one run: `python -m benchmarks`."""
