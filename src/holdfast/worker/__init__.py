"""The loop around a crawl: processes started, watched, replaced and drained; dead ones cleaned up after."""
