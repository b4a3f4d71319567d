"""Sources: the websites in the archive. Registry, configuration, files; an ad-hoc crawl creates its own."""
