"""One station: sealed WARC files, the waist of the house. Written, read, verified, repaired; never fetched."""
