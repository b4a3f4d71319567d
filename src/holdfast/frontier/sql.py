"""The frontier's statements, each executable by hand: `?` is a value, everything else is the database's own SQL.

A statement that SQLite and PostgreSQL both accept is a string. Where they differ it is a `Statement`, with both
texts side by side.

Every process acquires locks in one order, so that PostgreSQL never deadlocks: domains by id; new pages, new
attempts by (domain, hash); changes to attempts, to pages; exclusions; queues by domain; series. New before
changed, because an insert that meets a row which another process is changing waits for that process, even if it
then does nothing. An attempt is closed only under the lock of its domain.
"""

# ruff: noqa: S608 - statements are made of constants of this file, never of what a caller gives

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from holdfast.db.raw import IS_LAST_ATTEMPT, RawDatabase, Row, Transaction
from holdfast.db.run_slices import IN_SLICE, in_slices


class Statement(NamedTuple):
    """One statement in two texts, for cases where the databases need different SQL.

    The differences and their reasons:

    - A list of values is one parameter, so that the text stays the same and stays prepared: an array in PostgreSQL,
      JSON in SQLite, which has no arrays (`FrontierTransaction.list`).
    - `FOR UPDATE` has no equivalent in SQLite: BEGIN IMMEDIATE has already locked the whole database. `SKIP LOCKED`
      skips rows locked by another process, instead of waiting for it.
    - The greater of two values is `GREATEST` in PostgreSQL and `max` in SQLite.
    """

    sqlite: str
    postgresql: str


FOUND_COLUMNS = (
    "domain_id",
    "url_hash",
    "url",
    "kind",
    "priority",
    "depth",
    "scheduled_for",
    "via_page_id",
    "hops",
    "generation",
)
_FOUND = (
    "new_found (domain_id BIGINT NOT NULL, url_hash BIGINT NOT NULL, url TEXT, kind TEXT, priority INTEGER,"
    " depth INTEGER, scheduled_for BIGINT, via_page_id BIGINT, hops SMALLINT, generation SMALLINT)"
)
DOMAIN_COLUMNS = (
    "id",
    "next_allowed_at",
    "delay_s",
    "circuit_state",
    "circuit_failures",
    "circuit_successes",
    "circuit_opened_at",
    "penalty",
    "unreachable_since",
)
_DOMAINS = (
    "new_domains (id BIGINT, next_allowed_at BIGINT, delay_s DOUBLE PRECISION, circuit_state TEXT,"
    " circuit_failures INTEGER, circuit_successes INTEGER, circuit_opened_at BIGINT, penalty DOUBLE PRECISION,"
    " unreachable_since BIGINT)"
)
HEAD_COLUMNS = ("domain_id", "open", "succeeded", "failed", "ruled_out", "due_at")
_HEADS = "new_heads (domain_id BIGINT, open BIGINT, succeeded BIGINT, failed BIGINT, ruled_out BIGINT, due_at BIGINT)"
EXCLUSION_COLUMNS = ("rule", "host", "count")
_EXCLUSIONS = "new_exclusions (rule TEXT, host TEXT, count BIGINT)"

SETUP = {
    "sqlite": (
        *(f"CREATE TEMPORARY TABLE IF NOT EXISTS {table}" for table in (_FOUND, _DOMAINS, _HEADS, _EXCLUSIONS)),
    ),
    "postgresql": (
        *(
            f"CREATE TEMPORARY TABLE IF NOT EXISTS {table} ON COMMIT DELETE ROWS"
            for table in (_FOUND, _DOMAINS, _HEADS, _EXCLUSIONS)
        ),
    ),
}
# For PostgreSQL, at the start of each transaction, and for it alone: other statements of the connection are planned as
# the server thinks best. Every statement here starts from the table named first and looks up the others by index. A
# plan made while the tables are empty is cached with the prepared statement and must be the one for millions of rows
# (left to itself, the planner scanned 10,000 loaded rows 10,000 times: 17 s for a settle that takes 0.2 s).
PLANNER = """
SELECT set_config('join_collapse_limit', '1', true), set_config('enable_seqscan', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
       set_config('enable_material', 'off', true)"""
# PostgreSQL empties them itself at each commit; SQLite before each use.
CLEAR = {table: f"DELETE FROM {table}" for table in ("new_found", "new_domains", "new_heads", "new_exclusions")}

DOMAIN_IDS = Statement(
    sqlite="SELECT name, id FROM domains WHERE name IN (SELECT value FROM json_each(?))",
    postgresql="SELECT name, id FROM domains WHERE name = ANY(?::text[])",
)
INSERT_DOMAIN = "INSERT INTO domains (name, created_at) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
_LOCKED = "SELECT id, lease_token, circuit_state FROM domains"
LOCK_DOMAINS = Statement(
    sqlite=f"{_LOCKED} WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
    postgresql=f"{_LOCKED} WHERE id = ANY(?::bigint[]) ORDER BY id FOR UPDATE",
)
DOMAINS_OF = Statement(
    sqlite="SELECT DISTINCT domain_id FROM page_crawls WHERE id IN (SELECT value FROM json_each(?))",
    postgresql="SELECT DISTINCT domain_id FROM page_crawls WHERE id = ANY(?::bigint[])",
)
UPDATE_DOMAINS = """
UPDATE domains SET next_allowed_at = n.next_allowed_at, delay_s = coalesce(n.delay_s, domains.delay_s),
       circuit_state = n.circuit_state, circuit_failures = n.circuit_failures,
       circuit_successes = n.circuit_successes, circuit_opened_at = n.circuit_opened_at, penalty = n.penalty,
       unreachable_since = n.unreachable_since
  FROM new_domains n WHERE domains.id = n.id"""
UPSERT_ROBOTS = """
INSERT INTO robots (domain_id, origin, answer, status, body, failures, fetched_at, checked_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (origin) DO UPDATE SET domain_id = excluded.domain_id, answer = excluded.answer, status = excluded.status,
       body = excluded.body, failures = excluded.failures, fetched_at = excluded.fetched_at,
       checked_at = excluded.checked_at"""
_ROBOTS = "SELECT domain_id, origin, answer, status, body, failures, fetched_at, checked_at FROM robots"
ROBOTS = Statement(
    sqlite=f"{_ROBOTS} WHERE domain_id IN (SELECT value FROM json_each(?)) ORDER BY domain_id, origin",
    postgresql=f"{_ROBOTS} WHERE domain_id = ANY(?::bigint[]) ORDER BY domain_id, origin",
)
ROBOTS_OF_ORIGIN = f"{_ROBOTS} WHERE origin = ?"
DOMAIN_TO_RESET = Statement(
    sqlite="SELECT id, lease_owner, lease_expires_at FROM domains WHERE name = ?",
    postgresql="SELECT id, lease_owner, lease_expires_at FROM domains WHERE name = ? FOR UPDATE",
)
FORGET_OUTAGE = """
UPDATE domains SET next_allowed_at = CASE WHEN next_allowed_at > ? THEN ? ELSE next_allowed_at END,
       circuit_state = 'closed', circuit_failures = 0, circuit_successes = 0, circuit_opened_at = NULL, penalty = 1.0,
       unreachable_since = NULL
 WHERE id = ? AND (circuit_state <> 'closed' OR penalty > 1.0 OR unreachable_since IS NOT NULL OR next_allowed_at > ?)
RETURNING id"""
FORGET_ROBOTS = "DELETE FROM robots WHERE domain_id = ? AND answer = 'unreachable' RETURNING origin"
FORGET_ROBOTS_FAILURES = "UPDATE robots SET failures = 0 WHERE domain_id = ?"
# Execution by execution, each by its key: there is no index by domain, and a reset is too rare to deserve one.
QUEUES_OF_DOMAIN = """
WITH RECURSIVE e (id) AS (
    SELECT min(execution_id) FROM queues UNION ALL
    SELECT (SELECT min(n.execution_id) FROM queues n WHERE n.execution_id > e.id) FROM e WHERE e.id IS NOT NULL)
SELECT e.id FROM e CROSS JOIN queues q WHERE q.execution_id = e.id AND q.domain_id = ? AND q.open > 0 ORDER BY e.id"""

_ADD_PAGES = """
INSERT INTO pages (domain_id, url_hash, url, created_at)
SELECT f.domain_id, f.url_hash, f.url, ? FROM new_found f WHERE """
INSERT_PAGES = Statement(
    # SQLite reads rows as they were loaded, which is in key order: an ORDER BY would sort them once more.
    sqlite=f"{_ADD_PAGES} true ON CONFLICT (domain_id, url_hash) DO NOTHING",
    # NOT EXISTS beside ON CONFLICT: looking first takes no number from a sequence and waits for no other process.
    # OFFSET 0 keeps PostgreSQL from turning the look-up into a join: before the first ANALYZE it takes every table for
    # nearly empty, and would read all attempts of a domain for each loaded row (40 pages/s instead of 900).
    postgresql=f"""{_ADD_PAGES}
       NOT EXISTS (SELECT 1 FROM pages k WHERE k.domain_id = f.domain_id AND k.url_hash = f.url_hash OFFSET 0)
 ORDER BY f.domain_id, f.url_hash ON CONFLICT (domain_id, url_hash) DO NOTHING""",
)
_ADD_ATTEMPTS = """
INSERT INTO page_crawls (execution_id, domain_id, page_id, attempt, kind, priority, depth, hops, generation,
                         via_page_id, scheduled_for, created_at)
SELECT e.id, f.domain_id, p.id, 1, f.kind, f.priority, f.depth, f.hops, f.generation, f.via_page_id, f.scheduled_for,
       e.now
  FROM (SELECT CAST(? AS BIGINT) AS id, CAST(? AS BIGINT) AS now) e CROSS JOIN new_found f CROSS JOIN pages p
 WHERE p.domain_id = f.domain_id AND p.url_hash = f.url_hash"""
ADD_ATTEMPTS = Statement(
    sqlite=f"{_ADD_ATTEMPTS} ON CONFLICT (execution_id, domain_id, page_id, attempt) DO NOTHING",
    # It answers how many are new, by domain and time; SQLite is asked afterwards, with ADDED_AFTER.
    postgresql=f"""
WITH added AS ({_ADD_ATTEMPTS}
   AND NOT EXISTS (SELECT 1 FROM page_crawls k WHERE k.execution_id = e.id AND k.domain_id = f.domain_id
                      AND k.page_id = p.id AND k.attempt = 1 OFFSET 0)
 ORDER BY f.domain_id, f.url_hash
ON CONFLICT (execution_id, domain_id, page_id, attempt) DO NOTHING RETURNING domain_id, scheduled_for)
SELECT domain_id, scheduled_for, count(*) FROM added GROUP BY 1, 2""",
)
# For SQLite only: it has one writer, so new rows are those with a higher id. Half a microsecond a row cheaper than
# RETURNING.
LAST_ATTEMPT = "SELECT coalesce(max(id), 0) FROM page_crawls"
ADDED_AFTER = "SELECT domain_id, scheduled_for, count(*) FROM page_crawls WHERE id > ? GROUP BY 1, 2"
_OPEN_REQUISITES = """
SELECT f.priority, f.depth, c.id FROM new_found f CROSS JOIN pages p CROSS JOIN page_crawls c
 WHERE f.kind = 'page' AND p.domain_id = f.domain_id AND p.url_hash = f.url_hash
   AND c.execution_id = ? AND c.domain_id = p.domain_id AND c.page_id = p.id
   AND c.kind = 'requisite' AND c.outcome IS NULL"""
OPEN_REQUISITES = Statement(
    sqlite=f"{_OPEN_REQUISITES} AND f.url_hash IN (SELECT value FROM json_each(?))",
    # SKIP LOCKED passes over one that its domain's holder is closing now: to wait would break the order of locks.
    postgresql=f"{_OPEN_REQUISITES} AND f.url_hash = ANY(?::bigint[]) FOR UPDATE OF c SKIP LOCKED",
)
_LOWER_RANKED = """
SELECT f.priority, c.id FROM new_found f CROSS JOIN pages p CROSS JOIN page_crawls c
 WHERE p.domain_id = f.domain_id AND p.url_hash = f.url_hash AND c.execution_id = ? AND c.domain_id = p.domain_id
   AND c.page_id = p.id AND c.outcome IS NULL AND c.priority < f.priority"""
LOWER_RANKED = Statement(sqlite=_LOWER_RANKED, postgresql=f"{_LOWER_RANKED} FOR UPDATE OF c SKIP LOCKED")
PUT_FORWARD = "UPDATE page_crawls SET priority = ? WHERE id = ?"
PROMOTE = "UPDATE page_crawls SET kind = 'page', priority = ?, depth = ? WHERE id = ? AND outcome IS NULL"
# Pages that the execution knows by a longer way than the one just found.
DEEPER = """
SELECT p.domain_id, p.id, f.depth, f.priority FROM new_found f CROSS JOIN pages p CROSS JOIN page_crawls c
 WHERE f.kind = 'page' AND p.domain_id = f.domain_id AND p.url_hash = f.url_hash
   AND c.execution_id = ? AND c.domain_id = p.domain_id AND c.page_id = p.id AND c.attempt = 1
   AND c.kind = 'page' AND c.depth > f.depth"""
RAISE = """
UPDATE page_crawls SET depth = ?, priority = CASE WHEN outcome IS NULL AND priority < ? THEN ? ELSE priority END
 WHERE execution_id = ? AND domain_id = ? AND page_id = ? AND depth > ?"""
# What a parser could not finish once is not given to it again.
ADD_REREAD = f"""
INSERT INTO rereads (execution_id, page_id, domain_id, depth)
SELECT c.execution_id, c.page_id, c.domain_id, c.depth FROM page_crawls c
 WHERE c.execution_id = ? AND c.domain_id = ? AND c.page_id = ? AND c.outcome = 'success'
   AND coalesce(c.reason, '') NOT IN ('parse_timeout', 'parse_crashed') AND {IS_LAST_ATTEMPT}
ON CONFLICT (execution_id, page_id) DO UPDATE SET depth = excluded.depth WHERE excluded.depth < rereads.depth"""
REREADS = f"""
SELECT c.id, r.page_id, r.domain_id, r.depth, p.url, p.url_hash, c.status_code, c.redirected_to, c.warc_file_id,
       c.warc_offset, p.original_record_id, p.original_url, p.original_at, p.original_digest, p.original_file_id,
       p.original_offset
  FROM (SELECT * FROM rereads WHERE execution_id = ? ORDER BY depth, page_id LIMIT ?) r
 CROSS JOIN page_crawls c CROSS JOIN pages p
 WHERE c.execution_id = r.execution_id AND c.domain_id = r.domain_id AND c.page_id = r.page_id
   AND c.outcome = 'success' AND {IS_LAST_ATTEMPT} AND p.id = c.page_id ORDER BY r.depth, r.page_id"""
COUNT_REREADS = "SELECT count(*) FROM rereads WHERE execution_id = ?"
DROP_REREAD = "DELETE FROM rereads WHERE execution_id = ? AND page_id = ? AND depth >= ?"
UPSERT_HEADS = """
INSERT INTO queues (execution_id, domain_id, open, succeeded, failed, ruled_out, due_at)
SELECT ?, h.domain_id, h.open, h.succeeded, h.failed, h.ruled_out,
       CASE WHEN h.due_at > d.next_allowed_at THEN h.due_at ELSE d.next_allowed_at END
  FROM new_heads h CROSS JOIN domains d WHERE d.id = h.domain_id ORDER BY h.domain_id
ON CONFLICT (execution_id, domain_id) DO UPDATE SET open = queues.open + excluded.open,
       succeeded = queues.succeeded + excluded.succeeded, failed = queues.failed + excluded.failed,
       ruled_out = queues.ruled_out + excluded.ruled_out,
       due_at = CASE WHEN queues.open = 0 OR excluded.due_at < queues.due_at THEN excluded.due_at
                     ELSE queues.due_at END"""

_LEASED = """d.id, d.name, d.delay_s, d.next_allowed_at, d.lease_owner, d.lease_token, d.circuit_state,
       d.circuit_failures, d.circuit_successes, d.circuit_opened_at, d.penalty, d.unreachable_since, d.robots_after,
       d.changed_at"""
_FREE = """d.is_allowed AND d.paused_at IS NULL AND (d.lease_owner IS NULL OR d.lease_expires_at <= ?)
   AND d.next_allowed_at <= ?"""
_DUE_DOMAINS = f"""
SELECT {_LEASED} FROM queues q CROSS JOIN domains d
 WHERE q.execution_id = ? AND q.open > 0 AND q.due_at <= ? AND d.id = q.domain_id AND {_FREE}
 ORDER BY q.due_at, q.domain_id LIMIT ?"""
DUE_DOMAINS = Statement(sqlite=_DUE_DOMAINS, postgresql=f"{_DUE_DOMAINS} FOR UPDATE OF d SKIP LOCKED")
_FREE_DOMAIN = f"SELECT {_LEASED} FROM domains d WHERE d.id = ? AND {_FREE}"
FREE_DOMAIN = Statement(sqlite=_FREE_DOMAIN, postgresql=f"{_FREE_DOMAIN} FOR UPDATE OF d SKIP LOCKED")
BARRED = """
SELECT 1 FROM domains d WHERE d.name = ?
   AND (NOT d.is_allowed OR d.paused_at IS NOT NULL
        OR ((d.lease_owner IS NULL OR d.lease_expires_at <= ?) AND d.next_allowed_at > ?))"""
CLOSED = "SELECT is_allowed FROM domains WHERE name = ? AND (NOT is_allowed OR paused_at IS NOT NULL)"
_TAKE = "UPDATE domains SET lease_owner = ?, lease_expires_at = ?, lease_token = lease_token + 1"
TAKE = Statement(
    sqlite=f"{_TAKE} WHERE id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_TAKE} WHERE id = ANY(?::bigint[])",
)
LEASE_TOKEN = "SELECT lease_token, circuit_state FROM domains WHERE id = ?"  # noqa: S105 - a number that counts leases
# Locked in the order of ids before they are changed: an UPDATE alone locks them in the order in which it finds them.
RENEW = Statement(
    sqlite="""
WITH held AS (SELECT id FROM domains WHERE lease_owner = ? AND lease_expires_at > 0)
UPDATE domains SET lease_expires_at = ? FROM held WHERE domains.id = held.id
RETURNING domains.id, domains.lease_token""",
    postgresql="""
WITH held AS (SELECT id FROM domains WHERE lease_owner = ? AND lease_expires_at > 0 ORDER BY id FOR UPDATE)
UPDATE domains SET lease_expires_at = ? FROM held WHERE domains.id = held.id
RETURNING domains.id, domains.lease_token""",
)
_RELEASE = "UPDATE domains SET lease_owner = NULL, lease_expires_at = 0 WHERE lease_owner = ?"
RELEASE = Statement(
    sqlite=f"{_RELEASE} AND id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_RELEASE} AND id = ANY(?::bigint[])",
)
# The owner stays named, so that the process that leases the domain next knows that it was not given back.
LET_GO = Statement(
    sqlite="UPDATE domains SET lease_expires_at = 0 WHERE id IN (SELECT value FROM json_each(?))",
    postgresql="UPDATE domains SET lease_expires_at = 0 WHERE id = ANY(?::bigint[])",
)
_VOID = "UPDATE domains SET lease_expires_at = 0, lease_token = lease_token + 1"
FREE_OWNERS = Statement(
    sqlite=f"""{_VOID}
 WHERE lease_owner IN (SELECT value FROM json_each(?)) AND lease_expires_at > 0 RETURNING id""",
    postgresql=f"""
WITH held AS (SELECT id FROM domains WHERE lease_owner = ANY(?::bigint[]) AND lease_expires_at > 0
               ORDER BY id FOR UPDATE)
{_VOID} FROM held WHERE domains.id = held.id RETURNING domains.id""",
)
_EXPIRED = "lease_owner IS NOT NULL AND lease_expires_at > 0 AND lease_expires_at <= ?"
FREE_EXPIRED = Statement(
    sqlite=f"{_VOID} WHERE {_EXPIRED} RETURNING id",
    postgresql=f"""
WITH held AS (SELECT id FROM domains WHERE {_EXPIRED} ORDER BY id FOR UPDATE)
{_VOID} FROM held WHERE domains.id = held.id RETURNING domains.id""",
)
# For PostgreSQL only: SQLite's one writer has no other to wait for.
LOCK_HEADS = """
SELECT domain_id FROM queues WHERE execution_id = ? AND domain_id = ANY(?::bigint[]) ORDER BY domain_id FOR UPDATE"""
_NEXT_ALLOWED = "(SELECT d.next_allowed_at FROM domains d WHERE d.id = queues.domain_id)"
_FIRST_OPEN = """
    CASE WHEN EXISTS (SELECT 1 FROM page_crawls c
                       WHERE c.execution_id = queues.execution_id AND c.domain_id = queues.domain_id
                         AND c.outcome IS NULL AND c.scheduled_for IS NULL)
         THEN 0
         ELSE coalesce((SELECT min(c.scheduled_for) FROM page_crawls c
                         WHERE c.execution_id = queues.execution_id AND c.domain_id = queues.domain_id
                           AND c.outcome IS NULL AND c.scheduled_for IS NOT NULL), 0) END"""
PUT_OFF = Statement(
    sqlite=f"""
UPDATE queues SET due_at = max({_NEXT_ALLOWED}, {_FIRST_OPEN})
 WHERE execution_id = ? AND domain_id IN (SELECT value FROM json_each(?))""",
    postgresql=f"""
UPDATE queues SET due_at = GREATEST({_NEXT_ALLOWED}, {_FIRST_OPEN})
 WHERE execution_id = ? AND domain_id = ANY(?::bigint[])""",
)

# Polls of feeds only look for new items: they are few, and soon done, so a crawl makes way for them.
_WANTED = """
SELECT q.domain_id FROM jobs j CROSS JOIN executions e CROSS JOIN queues q
 WHERE j.state = 'running' AND j.kind = 'feed' AND e.job_id = j.id AND e.state = 'running'
   AND q.execution_id = e.id AND q.open > 0"""
WANTED = Statement(
    sqlite=f"{_WANTED} AND q.domain_id IN (SELECT value FROM json_each(?)) AND q.due_at <= ?",
    postgresql=f"{_WANTED} AND q.domain_id = ANY(?::bigint[]) AND q.due_at <= ?",
)
_REST = "UPDATE queues SET due_at = ? WHERE execution_id = ? AND due_at < ?"
REST = Statement(
    sqlite=f"{_REST} AND domain_id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_REST} AND domain_id = ANY(?::bigint[])",
)

_ATTEMPT = """c.id, c.page_id, c.domain_id, p.url, p.url_hash, c.kind, c.depth, c.attempt, c.priority, p.etag,
       p.last_modified, p.original_record_id, p.original_url, p.original_at, p.original_digest, p.original_file_id,
       p.original_offset, c.hops, c.generation"""
_QUEUED = "c.id, c.page_id, c.domain_id, c.kind, c.depth, c.attempt, c.priority, c.hops, c.generation"


def _due_attempts_of(domain: str, late_turn: str) -> str:
    """Return SQL for the due attempts of one domain, which is a value or a column of a joined table."""
    # Deferred attempts whose time has come go first (turn 0): they have waited, and they are few. Where the circuit is
    # not closed they go last (turn 2): an untried URL shows sooner that the host is up.
    return f"""
SELECT * FROM (
    SELECT {late_turn} AS turn, c.scheduled_for AS place, {_QUEUED} FROM page_crawls c
     WHERE c.execution_id = ? AND c.domain_id = {domain} AND c.outcome IS NULL AND c.scheduled_for <= ?
     ORDER BY c.scheduled_for, c.id LIMIT ?) late
UNION ALL SELECT * FROM (
    SELECT 1 AS turn, -c.priority AS place, {_QUEUED} FROM page_crawls c
     WHERE c.execution_id = ? AND c.domain_id = {domain} AND c.outcome IS NULL AND c.scheduled_for IS NULL
     ORDER BY c.priority DESC, c.id LIMIT ?) ready"""


DUE_ATTEMPTS = Statement(
    # Of one domain: SQLite has no LATERAL, and no round trips that would have to be spared.
    sqlite=f"""
SELECT {_ATTEMPT} FROM ({_due_attempts_of("?", "?")}) c CROSS JOIN pages p
 WHERE p.id = c.page_id ORDER BY c.turn, c.place, c.id""",
    # Of all domains of a lease, in one round trip.
    postgresql=f"""
SELECT {_ATTEMPT} FROM unnest(?::bigint[], ?::bigint[]) AS h (domain_id, late_turn)
 CROSS JOIN LATERAL ({_due_attempts_of("h.domain_id", "h.late_turn")}) c CROSS JOIN pages p
 WHERE p.id = c.page_id ORDER BY c.domain_id, c.turn, c.place, c.id""",
)

# Not `execution_id = ?`: SQLite would then walk all attempts of the execution instead of looking up these.
_OPEN_AMONG = "SELECT id, depth FROM page_crawls WHERE outcome IS NULL AND execution_id + 0 = ?"
OPEN_AMONG = Statement(
    sqlite=f"{_OPEN_AMONG} AND id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_OPEN_AMONG} AND id = ANY(?::bigint[])",
)
# One by one, by key: joined with a temporary table, PostgreSQL may choose to walk all attempts.
CLOSE_VISIT = """
UPDATE page_crawls SET outcome = ?, reason = ?, status_code = ?, message = ?, media_type = ?, wire_bytes = ?,
       requests = ?, payload_digest = ?, content_hash = ?, title = ?, redirected_to = ?, links_count = ?,
       warc_file_id = ?, warc_offset = ?, warc_length = ?, warc_ordinal = ?, started_at = ?, completed_at = ?
 WHERE id = ? AND outcome IS NULL"""
PAGE_FETCHED = """
UPDATE pages SET status = 'fetched', fetched_at = ?, error_count = 0, language = coalesce(language, ?), etag = ?,
       last_modified = ? WHERE id = ?"""
# An answer with validators whose bytes are not the original's: a 304 to them would not stand for that original.
PAGE_MOVED_ON = """
UPDATE pages SET status = 'fetched', fetched_at = ?, error_count = 0, language = coalesce(language, ?), etag = ?,
       last_modified = ?, original_record_id = CASE WHEN original_digest = seen.digest THEN original_record_id END,
       original_url = CASE WHEN original_digest = seen.digest THEN original_url END,
       original_at = CASE WHEN original_digest = seen.digest THEN original_at END,
       original_file_id = CASE WHEN original_digest = seen.digest THEN original_file_id END,
       original_offset = CASE WHEN original_digest = seen.digest THEN original_offset END,
       original_digest = CASE WHEN original_digest = seen.digest THEN original_digest END
  FROM (SELECT CAST(? AS TEXT) AS digest) seen WHERE id = ?"""
PAGE_UNCHANGED = """
UPDATE pages SET status = 'fetched', fetched_at = ?, error_count = 0, language = coalesce(language, ?),
       etag = coalesce(?, etag), last_modified = coalesce(?, last_modified) WHERE id = ?"""
PAGE_FETCHED_ANEW = """
UPDATE pages SET status = 'fetched', fetched_at = ?, error_count = 0, language = coalesce(language, ?), etag = ?,
       last_modified = ?, original_record_id = ?, original_url = nullif(?, url), original_at = ?, original_digest = ?,
       original_file_id = ?, original_offset = ? WHERE id = ?"""
# The column takes 32,767 at most, and a page may fail for years.
_PAGE_FAILED = """
UPDATE pages SET status = 'failed', failed_at = ?,
       error_count = CASE WHEN error_count < 30000 THEN error_count + 1 ELSE 30000 END"""
PAGE_FAILED = f"{_PAGE_FAILED} WHERE id = ?"
INSERT_RETRY = """
INSERT INTO page_crawls (execution_id, domain_id, page_id, attempt, kind, priority, depth, hops, generation,
                         via_page_id, scheduled_for, crashes, created_at)
SELECT execution_id, domain_id, page_id, attempt + 1, kind, priority, depth, hops, generation, via_page_id, ?, crashes,
       ?
  FROM page_crawls WHERE id = ?"""
UPSERT_EXCLUSIONS = """
INSERT INTO exclusions (execution_id, rule, host, count)
SELECT ?, n.rule, n.host, n.count FROM new_exclusions n WHERE true ORDER BY n.rule, n.host
ON CONFLICT (execution_id, rule, host) DO UPDATE SET count = exclusions.count + excluded.count"""
UPSERT_COUNTS = """
INSERT INTO execution_counts (execution_id, owner_id, counts, updated_at) VALUES (?, ?, ?, ?)
ON CONFLICT (execution_id, owner_id) DO UPDATE SET counts = excluded.counts, updated_at = excluded.updated_at"""
# What ended without a visit was counted by no process: it stands under owner 0.
ENSURE_COUNTS = """
INSERT INTO execution_counts (execution_id, owner_id, counts, updated_at) VALUES (?, 0, '{}', ?)
ON CONFLICT (execution_id, owner_id) DO NOTHING"""
UNVISITED_COUNTS = Statement(
    sqlite="SELECT counts FROM execution_counts WHERE execution_id = ? AND owner_id = 0",
    postgresql="SELECT counts FROM execution_counts WHERE execution_id = ? AND owner_id = 0 FOR UPDATE",
)

WORD_COLUMNS = ("word", "page_id", "count")
LINK_COLUMNS = ("page_id", "to_hash", "from_hash", "to_url")
DROP_WORDS = Statement(
    sqlite="DELETE FROM signal_words WHERE page_id IN (SELECT value FROM json_each(?))",
    postgresql="DELETE FROM signal_words WHERE page_id = ANY(?::bigint[])",
)
DROP_LINKS = Statement(
    sqlite="DELETE FROM signal_links WHERE page_id IN (SELECT value FROM json_each(?))",
    postgresql="DELETE FROM signal_links WHERE page_id = ANY(?::bigint[])",
)
DROP_SIGNALS = Statement(
    sqlite="DELETE FROM signal_pages WHERE page_id IN (SELECT value FROM json_each(?))",
    postgresql="DELETE FROM signal_pages WHERE page_id = ANY(?::bigint[])",
)
SIGNALS_OF = """
SELECT page_id, execution_id FROM signal_pages WHERE source_id = ? AND page_id > ? ORDER BY page_id LIMIT ?"""
SOURCE_OF = "SELECT j.source_id FROM executions e CROSS JOIN jobs j WHERE e.id = ? AND j.id = e.job_id"
UPSERT_SIGNALS = """
INSERT INTO signal_pages (page_id, source_id, execution_id, fetched_at, status_code, media_type, content_hash, language,
                          title, description, word_count, links_count, page_key)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (page_id) DO UPDATE SET source_id = excluded.source_id, execution_id = excluded.execution_id,
       fetched_at = excluded.fetched_at, status_code = excluded.status_code, media_type = excluded.media_type,
       content_hash = excluded.content_hash, language = excluded.language, title = excluded.title,
       description = excluded.description, word_count = excluded.word_count, links_count = excluded.links_count,
       page_key = excluded.page_key"""
_KNOWN_SIGNALS = """
SELECT s.page_id, s.fetched_at, s.content_hash, s.links_count,
       (SELECT count(*) FROM signal_links l WHERE l.page_id = s.page_id)
  FROM signal_pages s"""
KNOWN_SIGNALS = Statement(
    sqlite=f"{_KNOWN_SIGNALS} WHERE s.page_id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_KNOWN_SIGNALS} WHERE s.page_id = ANY(?::bigint[])",
)
LINKS_OF = "SELECT to_url FROM signal_links WHERE page_id = ? ORDER BY to_hash"

_OPEN_OF_DOMAIN = "FROM page_crawls c WHERE c.execution_id = ? AND c.domain_id = ? AND c.outcome IS NULL"
OPEN_OF_DOMAIN = f"""
SELECT id FROM (SELECT c.id {_OPEN_OF_DOMAIN} AND c.scheduled_for IS NULL LIMIT ?) ready UNION ALL
SELECT id FROM (SELECT c.id {_OPEN_OF_DOMAIN} AND c.scheduled_for IS NOT NULL LIMIT ?) late"""
_OPEN_OF_ALL = "FROM page_crawls c WHERE c.execution_id = ? AND c.outcome IS NULL"
_READY_FIRST = "c.scheduled_for IS NULL ORDER BY c.domain_id, c.priority DESC, c.id LIMIT ?"
_LATE_FIRST = "c.scheduled_for IS NOT NULL ORDER BY c.domain_id, c.scheduled_for, c.id LIMIT ?"
OPEN_OF_ALL = Statement(
    sqlite=f"""
SELECT id FROM (SELECT c.id {_OPEN_OF_ALL} AND c.kind IN (SELECT value FROM json_each(?)) AND {_READY_FIRST}) ready
UNION ALL
SELECT id FROM (SELECT c.id {_OPEN_OF_ALL} AND c.kind IN (SELECT value FROM json_each(?)) AND {_LATE_FIRST}) late""",
    postgresql=f"""
SELECT id FROM (SELECT c.id {_OPEN_OF_ALL} AND c.kind = ANY(?::text[]) AND {_READY_FIRST}) ready UNION ALL
SELECT id FROM (SELECT c.id {_OPEN_OF_ALL} AND c.kind = ANY(?::text[]) AND {_LATE_FIRST}) late""",
)
_COUNT_CRASH = """
UPDATE page_crawls SET crashes = CASE WHEN crashes < 30000 THEN crashes + 1 ELSE 30000 END WHERE outcome IS NULL"""
COUNT_CRASH = Statement(
    sqlite=f"{_COUNT_CRASH} AND id IN (SELECT value FROM json_each(?)) RETURNING id, crashes",
    postgresql=f"{_COUNT_CRASH} AND id = ANY(?::bigint[]) RETURNING id, crashes",
)
_CLOSE = "UPDATE page_crawls SET outcome = ?, reason = ?, message = ?, completed_at = ? WHERE outcome IS NULL"
CLOSE_IDS = Statement(
    sqlite=f"{_CLOSE} AND id IN (SELECT value FROM json_each(?)) RETURNING execution_id, domain_id, page_id",
    postgresql=f"{_CLOSE} AND id = ANY(?::bigint[]) RETURNING execution_id, domain_id, page_id",
)
RECORDS_OF_FILE = """
SELECT id, page_id, warc_offset FROM page_crawls WHERE warc_file_id = ? AND warc_offset > ?
 ORDER BY warc_offset LIMIT ?"""
_FORGET_ORIGINALS = """
UPDATE pages SET original_record_id = NULL, original_url = NULL, original_at = NULL, original_digest = NULL,
       original_file_id = NULL, original_offset = NULL, etag = NULL, last_modified = NULL
 WHERE original_file_id = ?"""
FORGET_ORIGINALS = Statement(
    sqlite=f"{_FORGET_ORIGINALS} AND id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_FORGET_ORIGINALS} AND id = ANY(?::bigint[])",
)
FAIL_PAGES = Statement(
    sqlite=f"{_PAGE_FAILED} WHERE id IN (SELECT value FROM json_each(?))",
    postgresql=f"{_PAGE_FAILED} WHERE id = ANY(?::bigint[])",
)

# A page that took down a process, or that was cut off each time, is not mended by a server that is back.
_ENDED = f"SELECT c.domain_id, c.id, c.outcome FROM page_crawls c WHERE {IN_SLICE}"
_BY_PAGE = f"AND {IS_LAST_ATTEMPT} ORDER BY c.domain_id, c.page_id"
FAILED_ATTEMPTS = f"""{_ENDED} AND c.outcome IN ('failed', 'timeout', 'blocked_5xx')
   AND c.reason NOT IN ('quarantined', 'parse_timeout', 'truncated') {_BY_PAGE}"""
LEFT_OVER_ATTEMPTS = f"{_ENDED} AND c.outcome = 'excluded' AND c.reason = 'stopped' {_BY_PAGE}"
FAILED_ATTEMPT = f"""
SELECT c.execution_id, c.domain_id, c.outcome FROM page_crawls c WHERE c.id = ?
   AND c.outcome IN ('failed', 'timeout', 'blocked_4xx', 'blocked_5xx') AND {IS_LAST_ATTEMPT}"""
FETCHED_ATTEMPT = f"""
SELECT c.execution_id, c.domain_id, c.outcome FROM page_crawls c WHERE c.id = ? AND c.outcome = 'success'
   AND {IS_LAST_ATTEMPT}"""
DOMAINS_GIVEN_UP = f"""
SELECT DISTINCT c.domain_id FROM page_crawls c WHERE {IN_SLICE}
   AND c.reason IN ('domain_unreachable', 'domain_paused') AND {IS_LAST_ATTEMPT}"""


class FrontierTransaction:
    __slots__ = ("_loaded", "_tx", "is_postgres")

    def __init__(self, tx: Transaction, *, is_postgres: bool) -> None:
        self._tx, self.is_postgres = tx, is_postgres
        self._loaded: set[str] = set()

    def _text(self, statement: str | Statement) -> str:
        if isinstance(statement, str):
            return statement
        return statement.postgresql if self.is_postgres else statement.sqlite

    def execute(self, statement: str | Statement, values: Sequence[Any] = ()) -> list[Row]:
        return self._tx.execute(self._text(statement), values)

    def many(self, statement: str | Statement, rows: Iterable[Sequence[Any]]) -> None:
        self._tx.many(self._text(statement), rows)

    def load(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Replace the contents of a temporary table with these rows."""
        # PostgreSQL empties temporary tables at each commit; SQLite keeps their rows.
        if not self.is_postgres or table in self._loaded:
            self._tx.execute(CLEAR[table])
        self._loaded.add(table)
        self._tx.load(table, columns, rows)

    def append(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert new rows into a table of the schema; none may exist yet."""
        if rows:
            self._tx.load(table, columns, rows)

    def list(self, values: Collection[int] | Collection[str]) -> Any:
        """Return a list as one parameter: an array, or JSON if the database has no arrays."""
        return list(values) if self.is_postgres else json.dumps(list(values))


class Connection:
    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self._prepared = 0
        self.is_postgres = raw_db.dialect == "postgresql"
        """Whether a round trip costs something, and arrays and LATERAL exist."""

    def in_slices(self, statement: str, execution_id: int) -> Iterator[list[Row]]:
        """Yield a statement's rows for each slice of a run (see `run_slices`)."""
        return in_slices(self._raw_db, statement, execution_id)

    @contextmanager
    def write(self) -> Iterator[FrontierTransaction]:
        """Open a read-write transaction (see `RawDatabase.write`) on a prepared connection."""
        with self._raw_db.write() as tx:
            if self.is_postgres:
                tx.execute(PLANNER)
            # A lost connection was reopened on the way in: the state of its session is gone.
            generation = self._raw_db.generation
            if generation != self._prepared:
                for statement in SETUP[self._raw_db.dialect]:
                    tx.execute(statement)
            yield FrontierTransaction(tx, is_postgres=self.is_postgres)
        # Only now: a rollback undoes the preparation too.
        self._prepared = generation

    @contextmanager
    def read(self) -> Iterator[FrontierTransaction]:
        with self._raw_db.read() as tx:
            if self.is_postgres:
                tx.execute(PLANNER)
            yield FrontierTransaction(tx, is_postgres=self.is_postgres)
