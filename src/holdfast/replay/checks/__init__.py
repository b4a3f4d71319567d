"""Whether what the archive says it can replay is there."""
