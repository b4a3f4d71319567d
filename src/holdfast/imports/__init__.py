"""Import of WARC files from other writers, and recovery of the archive from its files alone.

All code that brings in a WARC file not written by our crawler must go through here: the import command, the
runner of zimit jobs, the indexing of an execution's folder. This package decides what counts as an archive,
where it is stored and under which id; readers see no difference afterwards.
"""
