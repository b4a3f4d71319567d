"""Whether search finds the right page, measured on manuals that Debian packages. See `bench/relevance/__main__.py`."""
