"""A misbehaving web on loopback, and the judge that reads its log. The README beside this file lists every page."""

from tests.site.judge import Violation, judge
from tests.site.log import Entry
from tests.site.site import Site
from tests.site.wire import Exchange, Request

__all__ = ["Entry", "Exchange", "Request", "Site", "Violation", "judge"]
