"""Annual editions: the intended content of a source for a year, what was captured, and a citable list."""
