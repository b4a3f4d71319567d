"""From a crawl's end to its captures being found: how far each execution is, and every way between."""
