"""What was taken out of sight: hidden and shown again, and the one predicate by which every reader leaves it out.

Every room that shows captures, or anything made from them, has to ask `visibility` and decides nothing by itself:
index, search, replay and its CDX server, changes, editions, exports, the signals of a crawl, the API and the commands.
A house test lets no other room name the table. `hiding` is the only writer.
"""
