"""The sources that a crawl from the command line makes for itself."""
