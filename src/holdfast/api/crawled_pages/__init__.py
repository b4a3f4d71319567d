"""Pages that crawls fetched, whatever is kept of them."""
