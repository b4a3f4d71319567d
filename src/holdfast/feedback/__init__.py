"""What readers tell us: problem reports, and counts of what is used. Nobody is followed."""
