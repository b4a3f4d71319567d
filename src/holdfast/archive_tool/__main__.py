"""`python -m holdfast.archive_tool`: alias of the command `archive-tool`."""

from __future__ import annotations

from holdfast.archive_tool.main import main

main()
