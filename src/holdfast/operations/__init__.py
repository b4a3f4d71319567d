"""Operator tools: clean-ups, the storage watchdog, recovery of stalled crawls, probes of single pages."""
