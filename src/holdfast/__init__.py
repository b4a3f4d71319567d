"""Holdfast keeps websites: it crawls them politely, stores them as WARC, and makes every capture findable."""

__version__ = "0.1.0"
