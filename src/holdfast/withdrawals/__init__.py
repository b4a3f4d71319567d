"""Takedowns: hiding captures and showing them again, and the one predicate by which every reader filters them.

Every package that shows captures, or anything derived from them, must use `visibility` and decides nothing
itself: index, search, replay and its CDX server, changes, editions, exports, the signals of a crawl, the API
and the commands. A test forbids other packages to name the table. `hiding` is the only writer.
"""
