"""Jobs and executions as people look at them: lists, one status, the objects that routes and `--json` print."""
