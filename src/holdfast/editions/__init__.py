"""Annual editions: what was meant to be kept of a source in a year, what was, and a list of it that can be cited."""
