"""Explains everything the system knows about one URL, and why: read from the rows, without network requests."""
