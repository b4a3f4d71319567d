"""Real sockets, real databases, real processes."""
