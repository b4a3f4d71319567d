"""The archive as read-only tools for assistants: bounded answers, each with its citation."""
