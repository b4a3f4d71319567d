"""What leaves the archive: rows as JSON lines and CSV, indexes as CDXJ, whole executions as WACZ. Reads only."""
