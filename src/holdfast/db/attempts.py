"""Which attempt speaks for its page, written once for every statement that asks."""

from __future__ import annotations

# OFFSET keeps PostgreSQL from turning the look-up into a join. Before the first ANALYZE it takes every table for nearly
# empty, and would compare each attempt of an execution with all of the others.
IS_LAST_ATTEMPT = (
    "NOT EXISTS (SELECT 1 FROM page_crawls n WHERE n.execution_id = c.execution_id AND n.domain_id = c.domain_id"
    " AND n.page_id = c.page_id AND n.attempt = c.attempt + 1 LIMIT 1 OFFSET 0)"
)
"""A condition on `page_crawls c`: the page was not tried once more after it."""
