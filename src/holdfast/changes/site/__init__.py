"""Two executions of a source held against each other, page by page, in slices of bounded size."""

from holdfast.changes.site.slices import Cursor, SiteEntry, SiteKind, SiteSlice, site_slice, walk_site

__all__ = ["Cursor", "SiteEntry", "SiteKind", "SiteSlice", "site_slice", "walk_site"]
