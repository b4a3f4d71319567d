"""Which part of a host name somebody registered, by the public suffix list that ships with us. Asks no network."""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files
from typing import Final

from url import URL

from holdfast.urls.sites import is_ip

_LIST: Final = "public_suffix_list.dat"


@lru_cache(maxsize=1)
def _rules() -> frozenset[str]:
    """Return every rule of the list in ASCII, `*.` and `!` kept: both the registries' section and the private one."""
    text = files("holdfast.urls").joinpath(_LIST).read_text("utf-8")
    lines = (line.split(None, 1)[0] for line in text.splitlines() if line and not line.startswith("//"))
    return frozenset(line if line.isascii() else _ascii(line) for line in lines)


def _ascii(rule: str) -> str:
    mark = "!" if rule.startswith("!") else "*." if rule.startswith("*.") else ""
    return f"{mark}{URL.parse(f'http://{rule.removeprefix(mark)}/').host_str}"


def _suffix_labels(host: str) -> int:
    """Return of how many labels the host's public suffix is made; a name under no rule has one (the list's default)."""
    rules = _rules()
    labels = host.split(".")
    for start in range(len(labels)):
        name = ".".join(labels[start:])
        # The longest match wins, and an exception beats the wildcard that it is an exception of.
        if f"!{name}" in rules:
            return len(labels) - start - 1
        if name in rules or (start + 1 < len(labels) and f"*.{'.'.join(labels[start + 1 :])}" in rules):
            return len(labels) - start
    return 1


def is_public_suffix(host: str) -> bool:
    """Return whether names directly below this one belong to different people."""
    host = host.lower().rstrip(".")
    return not is_ip(host) and _suffix_labels(host) == host.count(".") + 1


@lru_cache(maxsize=16_384)
def registrable(host: str) -> str:
    """Return the part of a host that its owner registered: `example.co.uk` of `www.example.co.uk`.

    An IP address, a public suffix and a name of one label come back as they are.
    """
    host = host.lower().rstrip(".")
    if is_ip(host):
        return host
    return ".".join(host.split(".")[-_suffix_labels(host) - 1 :])
