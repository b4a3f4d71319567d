"""What happened to a page between two captures: compare (pure), compute (rows), and lists for readers."""
