"""Derived rows of the archive, checked against what they derive from and set right by hand."""
