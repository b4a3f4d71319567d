"""Exports: rows as JSON lines and CSV, indexes as CDXJ, whole executions as WACZ. Read-only."""
