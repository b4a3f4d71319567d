"""Manual actions and maintenance on jobs: create, change, repair, clean up directories."""
