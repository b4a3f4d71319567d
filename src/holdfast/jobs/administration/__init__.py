"""What people and maintenance do to jobs: make and change them, repair them, look after their directories."""
