"""How files of other writers come into the archive: found, looked at, put into their place, registered, indexed."""
