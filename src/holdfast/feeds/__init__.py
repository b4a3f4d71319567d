"""Feeds and sitemaps as live sources: discovered and polled; each new item is added to the frontier once."""
