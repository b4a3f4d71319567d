"""The tests. A package, so that no other `tests` on the import path can take its name."""
