"""Command `archive-tool`: run, watch and resume one zimit crawl in a container and store its WARC files.

A separate program: it uses a directory and a `docker` command, never the database. A worker or an operator
starts it as a subprocess.
"""
