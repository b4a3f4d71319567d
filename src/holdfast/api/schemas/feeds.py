"""Forms of feeds."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import RequestForm
from holdfast.feeds.records import FeedKind


class NewFeedForm(RequestForm):
    """A feed that is not discovered automatically."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": "example", "url": "https://example.org/news.rss"}]}
    )

    source: str = Field(min_length=1, max_length=64, description="The source's code.")
    url: str = Field(min_length=1, max_length=8192, description="Its address.")
    kind: FeedKind = Field("feed", description="feed or sitemap.")


class FeedPollForm(RequestForm):
    """The source whose feeds are polled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example"}]})

    source: str = Field(min_length=1, max_length=64, description="The source's code.")
