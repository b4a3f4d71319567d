"""Feeds and sitemaps as live sources: found, polled, and their new items handed to the frontier once each."""
