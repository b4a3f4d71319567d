"""How the jobs stand altogether: what failed, what waits and why, who works."""
