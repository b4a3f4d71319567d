"""The part of this room that works inside a crawl process: small, on the hot connection, without SQLAlchemy."""
