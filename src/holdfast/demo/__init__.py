"""A small bundled website, to try the archive on without leaving this machine."""
