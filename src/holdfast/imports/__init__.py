"""Files of other writers become files of the archive; and an archive is made again from its files alone."""
