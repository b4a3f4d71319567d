"""Jobs and executions: an execution is one run of a crawl, from its start through its resumptions to its end."""
