"""Where an answer is given and where it points: the replay host's own paths, or its full origin from elsewhere."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.config import REPLAY_HOST
from holdfast.replay.address import replay_path, safe


class Place(NamedTuple):
    """The two origins of one archive, as one request sees them."""

    origin: str
    """Of the replay host: scheme, host, port."""
    here: str
    """Of the host that this request came to."""
    app: str | None
    """Of the application's host, where it is known."""

    @property
    def is_replay(self) -> bool:
        """Whether the request came to the replay host."""
        return self.here == self.origin

    @property
    def prefix(self) -> str:
        """What stands before a replay path: nothing on the replay host, its origin elsewhere."""
        return "" if self.is_replay else self.origin

    def memento(self, digits: str, modifier: str, url: str) -> str:
        """Return the whole address of a capture (URI-M); always on the replay host."""
        return self.origin + replay_path(digits, modifier, url)

    def gate(self, url: str) -> str:
        """Return the TimeGate of an address (URI-G)."""
        return f"{self.here}/web/{safe(url)}"

    def map(self, url: str, form: str = "link", page: str = "") -> str:
        """Return a TimeMap of an address (URI-T)."""
        return f"{self.here}/web/timemap/{form}/{page + '/' if page else ''}{safe(url)}"


def place_of(scheme: str, host: str, *, replay_origin: str | None, site_url: str | None = None) -> Place:
    """Return the place of a request from its scheme and Host, and the settings that name the two origins."""
    here = f"{scheme}://{host.lower()}"
    name, colon, port = host.lower().rpartition(":") if _has_port(host) else (host.lower(), "", "")
    if replay_origin is not None:
        origin = replay_origin.lower()
        is_replay = origin.partition("://")[2] == host.lower()
        app = (site_url or "").rstrip("/") or None
        return Place(origin, origin if is_replay else here, app if is_replay else here)
    if name == REPLAY_HOST:
        return Place(here, here, f"{scheme}://localhost{colon}{port}")
    return Place(f"{scheme}://{REPLAY_HOST}{colon}{port}", here, here)


def _has_port(host: str) -> bool:
    return host.rpartition(":")[2].isdigit() and not host.endswith("]")
