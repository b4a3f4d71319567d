"""Files of other writers become files of the archive; and an archive is made again from its files alone.

Every room that brings in a WARC file which our crawl did not write has to come here: the import command, the runner of
zimit jobs, the indexing of an execution's folder. Here it is decided what is an archive, where it is kept and under
which id; readers then see no difference.
"""
