"""Sees to it that a package carries the browser application, so that installing it needs no Node.

Everything else about the package stands in pyproject.toml.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.errors import SetupError

_ROOT = Path(__file__).resolve().parent
_PAGE = _ROOT / "src" / "holdfast" / "api" / "web_app" / "index.html"
_TOOL = _ROOT / "tools" / "web.py"


class BuildWithPages(build_py):
    """Builds the application first where its sources are; an editable installation is served from the checkout."""

    def run(self) -> None:
        """Copy modules and files, the application among them; SetupError if there is none and none can be built."""
        if not self.editable_mode:
            # One that cannot be built is not packaged as it was before: it would ask for what this API has not.
            is_built = not _TOOL.is_file() or not subprocess.run([sys.executable, str(_TOOL), "build"]).returncode
            if not is_built or not _PAGE.is_file():
                raise SetupError("the browser application is not built; run `make web` in a checkout, then package it")
            # Names have a hash in them: what an earlier build left here would be packaged, too.
            shutil.rmtree(Path(self.build_lib) / "holdfast" / "api" / "web_app", ignore_errors=True)
        super().run()


setup(cmdclass={"build_py": BuildWithPages})
