"""Sources: the websites that we keep. Registry, configuration, files; an ad-hoc crawl makes its own."""
