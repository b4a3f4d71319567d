"""Sources: the websites that we keep. Registry and management follow; an ad-hoc crawl makes its source here."""
