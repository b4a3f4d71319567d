"""What jobs tell the world: events that the API streams, and a bounded log of each execution."""
