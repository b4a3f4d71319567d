"""Everything that the system knows of one address, and why: read from the rows, without asking the network."""
