"""Jobs and executions: one run of a crawl, from its start over its resumptions to its end."""
