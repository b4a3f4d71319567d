"""The processes of a crawl: the supervisor of an execution, its child processes, and the clean-up after them."""
