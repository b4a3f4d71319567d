"""What the request forms and lists of several routes share. A form of one route stands beside that route."""
