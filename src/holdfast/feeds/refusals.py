"""The errors of this room."""

from __future__ import annotations

from holdfast.errors import Conflict, NotFound


class FeedNotFound(NotFound):
    """There is no feed with this number."""

    code = "feed_not_found"

    def __init__(self, feed_id: int) -> None:
        super().__init__(f"there is no feed {feed_id}; see them with: holdfast feed list")


class FeedTaken(Conflict):
    """The source polls this address already."""

    code = "feed_taken"

    def __init__(self, feed_id: int, url: str) -> None:
        super().__init__(f"{url} is feed {feed_id} of this source already; see it with: holdfast feed show {feed_id}")


class FeedsTooMany(Conflict):
    """The source has as many feeds as it may."""

    code = "feeds_too_many"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"this source has {limit} feeds already, disabled ones included; remove one, "
            "or raise HOLDFAST_FEEDS_PER_SOURCE"
        )
