"""What a running crawl process asks about its execution, over its hot connection: it loads no SQLAlchemy."""
