"""Captures that do not show the page although the server said 200: soft 404s, block pages, walls, parked domains.

They stay in the archive and can be replayed; results, changes and coverage leave them out unless they are asked for.
`words` reads what one page says of itself, `chore` holds it against other captures, `marking` writes what was found;
`rulings` are what persons decided, which wins for good.
"""
