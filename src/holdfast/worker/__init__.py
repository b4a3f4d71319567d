"""The supervisor of a crawl: starts, watches, replaces and drains processes, and cleans up after dead ones."""
