"""The command line: one file per noun. Each command parses its input, calls one function, and prints the result."""
