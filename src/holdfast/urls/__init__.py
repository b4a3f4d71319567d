"""One spelling per page: parse and normalise, SURT key, scope, priority. Refuses what is no http(s) address."""

from holdfast.urls.address import (
    MAX_KEY_BYTES,
    MAX_URL_CHARS,
    Url,
    hash64,
    normalised_or_plain,
    page_key,
    parse,
    parse_seed,
    shortened,
    url_hash,
    url_key,
)
from holdfast.urls.links import Base, Resolution, ResolvedLink, resolve
from holdfast.urls.scope import SEED_RULE, InvalidPattern, Scope, ScopeKind, ScopeVerdict, priority, twins_of
from holdfast.urls.sites import (
    DEFAULT,
    DENIED_PORTS,
    NORMALISER_VERSION,
    Normalisation,
    is_ip,
    is_public_suffix,
    normalisation_of,
    port_allowed,
    registrable,
)
from holdfast.urls.surt import SURT_VERSION, surt
from holdfast.urls.traps import TrapGuard, TrapLimits, path_trap

__all__ = [
    "DEFAULT",
    "DENIED_PORTS",
    "MAX_KEY_BYTES",
    "MAX_URL_CHARS",
    "NORMALISER_VERSION",
    "SEED_RULE",
    "SURT_VERSION",
    "Base",
    "InvalidPattern",
    "Normalisation",
    "Resolution",
    "ResolvedLink",
    "Scope",
    "ScopeKind",
    "ScopeVerdict",
    "TrapGuard",
    "TrapLimits",
    "Url",
    "hash64",
    "is_ip",
    "is_public_suffix",
    "normalisation_of",
    "normalised_or_plain",
    "page_key",
    "parse",
    "parse_seed",
    "path_trap",
    "port_allowed",
    "priority",
    "registrable",
    "resolve",
    "shortened",
    "surt",
    "twins_of",
    "url_hash",
    "url_key",
]
