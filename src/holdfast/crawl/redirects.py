"""Where a redirect points: an address that we would ask for, or a reason why not."""

from __future__ import annotations

from holdfast.errors import UrlRefused
from holdfast.urls import DEFAULT, Base, Normalisation, Url, parse, resolve

MAX_REDIRECTS = 5


def follow(url: Url, location: str, policy: Normalisation = DEFAULT) -> Url:
    """Return the address that a Location header spells, seen from this one; UrlRefused if it spells none."""
    text = location.encode("latin-1", "replace").decode("utf-8", "replace")  # servers send UTF-8 in headers
    found = resolve(Base(url, policy=policy), [text])
    if not found:
        raise UrlRefused(text, "a redirect to something that is no http(s) address that may be asked")
    return parse(found[0].fetch, policy)
