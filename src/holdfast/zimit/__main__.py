"""`python -m holdfast.zimit`: alias of the command `archive-tool`."""

from __future__ import annotations

from holdfast.zimit.main import main

main()
