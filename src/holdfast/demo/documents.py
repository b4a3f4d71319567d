"""Small one-page PDF documents, generated from lines of text: paragraphs, headings and bars."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_WIDTH, _HEIGHT, _MARGIN = 595, 842, 64
_LEADING = 20
_BAR = "%bar "
# Points for each unit of a bar; the longest one then ends before the margin.
_SCALE = 0.045


def pdf_of(title: str, language: str, lines: Sequence[str]) -> bytes:
    """Return a PDF 1.4 with a title and a language; the first line is its heading, `%bar NAME | NUMBER` a bar."""
    content = "\n".join(_drawn(lines)).encode("cp1252")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (%s) >>" % language.encode(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R /F2 6 0 R >> >> >>" % (_WIDTH, _HEIGHT),
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>",
        b"<< /Title (%s) /Author (Kelpsound) >>" % _text(title).encode("cp1252"),
    ]
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, one in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, one)
    table = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R /Info 7 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, table)
    return bytes(out)


def _drawn(lines: Iterable[str]) -> Iterable[str]:
    y, is_heading, size = _HEIGHT - _MARGIN - 16, True, 18
    for line in lines:
        if line.startswith(_BAR):
            name, _, number = line.removeprefix(_BAR).partition(" | ")
            yield f"0.11 0.37 0.50 rg {_MARGIN + 150} {y - 3} {float(number) * _SCALE:.1f} 12 re f 0 g"
            yield _shown(f"{name}", _MARGIN, y)
            yield _shown(number, _MARGIN + 156 + float(number) * _SCALE, y)
        elif line:
            # What stands behind an empty line and is short is a heading.
            yield _shown(line, _MARGIN, y, bold=is_heading and len(line) < 60, size=size)
            size = 11
        is_heading = not line
        y -= _LEADING


def _shown(line: str, x: float, y: float, *, bold: bool = False, size: int = 11) -> str:
    return f"BT /{'F2' if bold else 'F1'} {size} Tf {x:.1f} {y} Td ({_text(line)}) Tj ET"


def _text(line: str) -> str:
    return line.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
