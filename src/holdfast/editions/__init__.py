"""Annual editions: the intended content of a source for a year, the captured part of it, and a citable list."""
