"""Who reads which file, how far, and what came of it."""
