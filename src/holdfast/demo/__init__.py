"""A small bundled website for trying the archive without network access."""
