"""The crawl engine: from seeds to sealed WARC files and settled results."""
