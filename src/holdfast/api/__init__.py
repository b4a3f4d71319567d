"""The archive over HTTP: one application for readers and programs, and one of its own for archived pages."""
