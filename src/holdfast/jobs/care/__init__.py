"""Looking after executions on disk and in the row: storage, clean-ups, second runs, recoveries of what stalled."""
