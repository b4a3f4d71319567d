"""Jobs and executions for display: lists, statuses, and the objects that routes and `--json` print."""
