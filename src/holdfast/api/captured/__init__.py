"""What jobs captured, as whoever runs the archive looks at it."""
