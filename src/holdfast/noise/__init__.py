"""Captures that do not show the page despite status 200: soft 404s, block pages, walls, parked domains.

They stay in the archive and can be replayed; results, changes and coverage exclude them by default.
`words` classifies a page by its own text, `classifier` compares it with other captures, and `labels` writes the
result; manual labels always win.
"""
