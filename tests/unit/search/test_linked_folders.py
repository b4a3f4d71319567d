"""Folders of links to an index that may only be read: removed with their process, also when that is killed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_LINKING = (
    "import os, sys; from pathlib import Path; from holdfast.search.linked_folder import LinkedFolder as Folder\n"
)
_KILLED = f"{_LINKING}kept = Folder(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
_LIVING = f"{_LINKING}kept = [Folder(Path(sys.argv[1])) for _ in range(2)]; print(*(one.path.name for one in kept))"


def _run(script: str, folder: Path) -> str:
    variables = {**os.environ, "TMPDIR": str(folder)}
    asked = [sys.executable, "-c", script, str(folder / "index")]
    return subprocess.run(asked, env=variables, capture_output=True, text=True, check=False).stdout


def test_linked_folder_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    _run(_KILLED, tmp_path)
    [abandoned] = tmp_path.glob("holdfast-index-*")

    in_use = _run(_LIVING, tmp_path).split()

    assert len(set(in_use)) == 2, "the folder of one that is in use is not taken for abandoned"
    assert abandoned.name not in in_use
    assert list(tmp_path.glob("*holdfast-index-*")) == []
