"""One crawl: its supervisor, its processes and their engine, from seeds to sealed WARC files; the clean-up after."""
