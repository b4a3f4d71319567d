"""Captures that do not show the page despite status 200: soft 404s, block pages, walls, parked domains.

They stay in the archive and can be replayed; results, changes and coverage exclude them by default.
`words` judges a page by its own text, `chore` compares it with other captures, `marking` writes the result;
`rulings` are manual decisions, which always win.
"""
