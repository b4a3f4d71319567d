"""The error tree. Exceptions are for broken promises; an expected result (a 404, a robots denial) is an Outcome.

HoldfastError
├── NotFound       the requested object does not exist
├── Invalid        the input cannot be used as it is
│   └── UrlRefused     a string that is not a URL we would request
├── Conflict       the state does not allow it now
│   └── LeaseLost      a newer owner holds our lease
├── NotPermitted   policy or authority forbids it
│   └── AddressForbidden   the address guard rejected the connection
└── Unavailable    something we depend on does not answer
    └── NoSpace        the disk has no room for what must be written

The edges (command line, HTTP) map the five kinds once. Every error carries a stable `code` and a message that
names the next step.
"""

from __future__ import annotations

import errno
import re

# Three, because a folder without rights, a file of another user and a file system that is mounted to be read say it
# differently.
READ_ONLY = (errno.EACCES, errno.EPERM, errno.EROFS)
"""Error numbers for a file or folder that this user may not write."""


class HoldfastError(Exception):
    """Base class of all errors: an operation could not be completed."""

    code = "error"
    sentence = ""
    """The message of an error that is raised without one."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(sentence or self.sentence)


class NotFound(HoldfastError):
    """The requested object does not exist."""

    code = "not_found"


class Invalid(HoldfastError):
    """The input cannot be used as it is; `field` names the invalid field, if it is a single one."""

    code = "invalid"
    field: str | None

    def __init__(self, sentence: str = "", *, field: str | None = None) -> None:
        super().__init__(sentence)
        self.field = field


class UrlRefused(Invalid):
    """This string is not a URL that can be requested."""

    code = "url_refused"

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(f"cannot use {text[:200]!r} as an address: {reason}")
        self.text, self.reason = text, reason


class Conflict(HoldfastError):
    """The current state does not allow this."""

    code = "conflict"


class LeaseLost(Conflict):
    """A newer owner holds the lease; our result is rejected."""

    code = "lease_lost"


class NotPermitted(HoldfastError):
    """Policy or authority forbids this."""

    code = "not_permitted"


class AddressForbidden(NotPermitted):
    """The address guard rejected the connection. The message never contains the resolved address."""

    code = "address_forbidden"


class Unavailable(HoldfastError):
    """Something that we depend on does not answer."""

    code = "unavailable"


class NoSpace(Unavailable):
    """The disk has no room for what must be written."""

    code = "no_space"


# The folders of an absolute path of this machine; the name of the file at its end may be shown.
_FOLDERS = re.compile(
    r"(?<![\w/.:<])/(?!(?:api|web|cdx|docs|report|health|metrics|openapi)\b)(?:[^/\s;,'\")]*/)+(?=[^/\s])"
)


def without_folders(sentence: str) -> str:
    """Return an error message for strangers: paths of this machine without their folders."""
    return _FOLDERS.sub("…/", sentence)
