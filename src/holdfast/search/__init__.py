"""Search by words and URL: query language, ranking, the embedded index. Derived from SQL, never authoritative."""
