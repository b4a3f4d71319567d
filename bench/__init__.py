"""Benchmarks: each promise measured as a ratio beside its peers, in one run. `python -m bench` prints one table."""
