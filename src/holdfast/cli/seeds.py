"""Reading seeds: from arguments, files, standard input. Bad lines of a file are named; good ones are kept."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.errors import Invalid, UrlRefused
from holdfast.urls import parse_seed

_MAX_COMPLAINTS = 20


def read_seeds(arguments: Iterable[str], files: Iterable[Path]) -> list[str]:
    """Return all seeds, once each, in order. Invalid if an argument is no address, or if nothing is left."""
    seeds: dict[str, None] = {}
    for argument in arguments:
        if argument == "-":
            seeds.update(dict.fromkeys(_lines("standard input", iter(sys.stdin.buffer.readline, b""))))
        elif "://" not in argument and Path(argument).is_file():
            seeds.update(dict.fromkeys(_file(Path(argument))))
        else:
            parse_seed(argument)
            seeds[argument.strip()] = None
    for file in files:
        seeds.update(dict.fromkeys(_file(file)))
    if not seeds:
        raise Invalid("nothing to crawl: name at least one seed, for example: holdfast crawl https://example.org")
    return list(seeds)


def _file(path: Path) -> Iterator[str]:
    if str(path) == "-":
        yield from _lines("standard input", iter(sys.stdin.buffer.readline, b""))
        return
    try:
        with path.open("rb") as lines:
            yield from _lines(path.name, lines)
    except OSError as exc:
        raise Invalid(f"cannot read the seeds in {path}: {exc.strerror}; name a file with one address a line") from exc


def _lines(name: str, lines: Iterable[bytes]) -> Iterator[str]:
    """Yield the addresses of a seeds file: one a line; blank lines and comments (#) are passed over."""
    bad = 0
    for number, line in enumerate(lines, 1):
        text = line.decode("utf-8", "replace").lstrip("\ufeff").strip()
        if not text or text.startswith("#"):
            continue
        try:
            parse_seed(text)
        except UrlRefused as exc:
            bad += 1
            if bad <= _MAX_COMPLAINTS:
                print(f"holdfast: {name}, line {number}: {exc}", file=sys.stderr)
            continue
        yield text
    if bad > _MAX_COMPLAINTS:
        print(f"holdfast: {name}: {bad - _MAX_COMPLAINTS} more lines are no addresses", file=sys.stderr)
