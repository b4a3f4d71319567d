"""The processes of a crawl: the supervisor of an execution, those that it starts, what is cleared up after them."""
