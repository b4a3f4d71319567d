"""The engine: stations composed into a crawl. From seeds to sealed WARC files and a settled account."""
