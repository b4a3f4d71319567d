"""Indexing: sealed WARC files become snapshots and documents. All derived data can be deleted and rebuilt."""
