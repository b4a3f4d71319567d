"""Storage that went dead under running jobs: when something is done about it, and what the rows keep of that."""
