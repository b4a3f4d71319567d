"""`archive-tool` end to end, against a stand-in for Docker and zimit."""
