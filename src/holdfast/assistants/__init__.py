"""The archive as read-only tools for assistants: bounded responses, each with its citation."""
