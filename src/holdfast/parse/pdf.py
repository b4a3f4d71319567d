"""The text of a PDF, through pdfium. Only a `ParseChild` may run this: no PDF parser is safe in process."""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

from holdfast.parse.document import ParsedDocument
from holdfast.parse.language import canonical_tag
from holdfast.parse.problems import Problem
from holdfast.parse.text import MAX_TEXT_CHARS, clean_line, clean_text

MAX_PAGES = 500
_TITLE_CHARS, _DESCRIPTION_CHARS = 500, 1000


def parse_pdf(body: bytes) -> ParsedDocument:
    """Return title, subject and text of a PDF; what cannot be opened (damaged, encrypted) comes back with a note."""
    pdfium: Any = importlib.import_module("pypdfium2")  # untyped
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError:
        return ParsedDocument(problems=(Problem.PDF_BROKEN,))
    problems: list[str] = []
    parts, size = list[str](), 0
    for number in range(min(len(document), MAX_PAGES)):
        try:
            page = document[number]
            text = page.get_textpage().get_text_range()
        except (pdfium.PdfiumError, ctypes.ArgumentError, ValueError):
            problems = [Problem.PDF_BROKEN]
            continue
        parts.append(text)
        size += len(text)
        page.close()
        if size > MAX_TEXT_CHARS:
            break
    if len(document) > MAX_PAGES or size > MAX_TEXT_CHARS:
        problems.append(Problem.BODY_CUT)
    told: dict[str, str] = document.get_metadata_dict(skip_empty=True)
    return ParsedDocument(
        title=clean_line(told.get("Title", ""), _TITLE_CHARS) or None,
        description=clean_line(told.get("Subject", ""), _DESCRIPTION_CHARS) or None,
        language=canonical_tag(told.get("Lang")),
        text=clean_text("\n".join(parts)),
        details={
            f"pdf:{name.lower()}": clean_line(told[name], 300) for name in ("Author", "CreationDate") if name in told
        },
        problems=tuple(problems),
    )
