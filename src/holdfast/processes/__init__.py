"""Which processes live, by their file locks and heartbeats; child processes, and how they are kept running."""
