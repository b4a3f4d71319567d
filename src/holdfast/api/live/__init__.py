"""Live streams: one poller a process and topic reads what is new, and fans it out to all who listen."""
