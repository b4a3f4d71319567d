"""The operator's tools: clean-ups, the watch over storage, help for stalled crawls, probes of single pages."""
