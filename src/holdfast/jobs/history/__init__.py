"""The history of executions, and how much of it is kept."""
