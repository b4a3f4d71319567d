"""All that a page shows, navigation and footer included, read from its record: the index keeps its content alone.

The body is as hostile as when it was captured: what looks pathological goes to a child that can be killed.
"""

from __future__ import annotations

from pathlib import Path

from holdfast.changes.sections import Reading, read_text
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.index.records import open_stored
from holdfast.parse.child import ParseChild
from holdfast.parse.document import Kind, ParsedDocument, parse_document
from holdfast.parse.page import MAX_PARSED_BYTES
from holdfast.parse.pathology import looks_pathological
from holdfast.warc.reader import DamagedWarc


def read_whole(database: Database, home: Path, found: Snapshot) -> Reading | None:
    """Return the lines that a capture shows; None if its record cannot be read any more. Parses outside any session."""
    try:
        with database.read() as session, open_stored(session, home, found) as stored:
            body = stored.content(MAX_PARSED_BYTES)
            charset = stored.head.charset if stored.head is not None else None
    except (NotFound, DamagedWarc, OSError):
        return None
    document = _parsed(body, charset, found.url)
    return read_text(document.text, "\n".join(document.headings)) if document.text or not document.problems else None


def _parsed(body: bytes, charset: str | None, url: str) -> ParsedDocument:
    if not looks_pathological(body):
        return parse_document(body, kind=Kind.HTML.value, media_type="text/html", charset=charset, url=url, whole=True)
    with ParseChild() as child:
        return child.read(body, kind=Kind.HTML.value, media_type="text/html", charset=charset, url=url, whole=True)
