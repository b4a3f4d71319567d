"""The ground: engine and sessions, models by area, migrations, and the plain connection that hot statements use.

Nothing is imported here, so that a crawl process can take `db.hot` alone and stay small.
"""
