"""The command line: one file per noun. Each command parses, calls one flow, and renders."""
