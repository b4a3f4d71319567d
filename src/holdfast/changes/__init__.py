"""Page changes between two captures: pure comparison, computation of the rows, and lists for readers."""
