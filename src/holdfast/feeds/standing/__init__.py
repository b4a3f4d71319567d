"""How feeds stand altogether: which were disabled by their answers, and which are not polled in time."""
