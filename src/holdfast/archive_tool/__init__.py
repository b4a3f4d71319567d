"""`archive-tool`: one crawl of zimit in a container, run, watched, resumed and kept. A program of its own.

It knows a directory and a `docker` command, never the database; a worker or an operator calls it as a subprocess.
"""
