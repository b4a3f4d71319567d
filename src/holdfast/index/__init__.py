"""Sealed WARC files become snapshots and documents; what is derived here can be thrown away and made again."""
