"""The rows behind the scheduler: what is due, who holds what, what has grown old."""
