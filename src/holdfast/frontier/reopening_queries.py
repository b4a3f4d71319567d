"""The statements behind a retry that goes on with the frontier of the run before it: what is asked for once more."""

from __future__ import annotations

from typing import Final

_LAST: Final = (
    "NOT EXISTS (SELECT 1 FROM page_crawls n WHERE n.execution_id = c.execution_id AND n.domain_id = c.domain_id"
    " AND n.page_id = c.page_id AND n.attempt = c.attempt + 1)"
)
# A page that took down a process, or that was cut off each time, is not mended by a server that is back.
FAILED_OF_DOMAIN: Final = f"""
SELECT c.id, c.outcome FROM page_crawls c WHERE c.execution_id = ? AND c.domain_id = ?
   AND c.outcome IN ('failed', 'timeout', 'blocked_5xx')
   AND c.reason NOT IN ('quarantined', 'parse_timeout', 'truncated') AND {_LAST} ORDER BY c.id LIMIT ?"""  # noqa: S608 - constants of this file
FAILED_DOMAINS: Final = """
SELECT q.domain_id FROM queues q WHERE q.execution_id = ? AND q.failed > 0 ORDER BY q.domain_id"""
DOMAINS_GIVEN_UP: Final = f"""
SELECT q.domain_id FROM queues q WHERE q.execution_id = ? AND q.failed > 0
   AND EXISTS (SELECT 1 FROM page_crawls c WHERE c.execution_id = q.execution_id AND c.domain_id = q.domain_id
                  AND c.reason = 'domain_unreachable' AND {_LAST}) ORDER BY q.domain_id"""  # noqa: S608
