"""What an operator does to jobs that went wrong."""
