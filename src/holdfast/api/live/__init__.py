"""Live streams: one poller per process and topic reads new events and sends them to all listeners."""
