"""HTTP fetching, one request at a time, polite and safe. Follows no redirects, decodes and stores nothing."""
