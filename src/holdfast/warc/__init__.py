"""Sealed WARC files, the basis of everything else: written, read, verified, repaired; never fetched."""
