"""The HTTP API: one application for readers and programs, and a separate one for archived pages."""
