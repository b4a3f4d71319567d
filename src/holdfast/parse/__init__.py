"""Bytes in, values out, never raises: pages, style sheets, sitemaps, feeds, and a child for what looks dangerous.

A caller asks `looks_pathological` first: a word sends the body to a `ParseChild`, None to `parse_page` in a thread.
"""

from holdfast.parse.charset import decode_text
from holdfast.parse.child import ParseChild
from holdfast.parse.css import css_links
from holdfast.parse.feed import Entry, FeedForm, FeedParse, parse_feed
from holdfast.parse.page import Reading, parse_page
from holdfast.parse.pathology import looks_pathological
from holdfast.parse.problems import Problem
from holdfast.parse.scan import scan_links
from holdfast.parse.sitemap import SitemapParse, parse_sitemap

__all__ = [
    "Entry",
    "FeedForm",
    "FeedParse",
    "ParseChild",
    "Problem",
    "Reading",
    "SitemapParse",
    "css_links",
    "decode_text",
    "looks_pathological",
    "parse_feed",
    "parse_page",
    "parse_sitemap",
    "scan_links",
]
