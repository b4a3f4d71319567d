"""One spelling per page: parse and normalise, SURT key, scope, priority. Refuses what is no http(s) address."""

from holdfast.urls.address import MAX_URL_CHARS, Url, hash64, parse, parse_seed, url_hash
from holdfast.urls.keys import MAX_KEY_BYTES, normalised_or_plain, page_key, shortened, url_key
from holdfast.urls.links import Base, Resolution, Resolved, resolve
from holdfast.urls.normalisation import DEFAULT, NORMALISER_VERSION, Normalisation, normalisation_of
from holdfast.urls.patterns import InvalidPattern
from holdfast.urls.priority import priority
from holdfast.urls.scope import SEED_RULE, Scope, ScopeKind, Verdict, twins_of
from holdfast.urls.sites import DENIED_PORTS, is_ip, port_allowed
from holdfast.urls.suffixes import is_public_suffix, registrable
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
    "Resolved",
    "Scope",
    "ScopeKind",
    "TrapGuard",
    "TrapLimits",
    "Url",
    "Verdict",
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
