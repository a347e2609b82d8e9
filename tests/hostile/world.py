"""A home with folder plugins and a site folder with installed ones, and runtimes over them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

from mibyan import Runtime
from mibyan.testing.distributions import write_distribution

#: Seconds for what must happen at once but may be late on a busy machine.
SOON = 30.0

SCHEMA = {"description": "d", "parameters": {"type": "object", "properties": {}}}


class World:
    """What there is to find, and the runtimes that find it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.site = root / "site"
        for folder in (self.home, self.site):
            folder.mkdir(parents=True)
        self.runtimes: list[Runtime] = []

    def folder(
        self, name: str, source: str, manifest: dict[str, Any] | None = None, home: str = "home", **files: str
    ) -> Path:
        """A folder plugin; `files` are further Python files by name."""
        base = self.root / home / "plugins" / name
        write(base / "plugin.yaml", json.dumps(manifest or {}))
        for file, text in {"__init__": source, **files}.items():
            write(base / f"{file}.py", text)
        return base

    def wheel(self, module: str, source: str, **files: str) -> None:
        """An installed distribution whose plugin is the package `module`."""
        more = {f"{module}/{file}.py": text for file, text in files.items()}
        write_distribution(self.site, module, "1.0", {module: module}, source=source, files=more)

    def config(self, text: str, home: str = "home") -> None:
        """What the operator says."""
        write(self.root / home / "config.yaml", text)

    def runtime(self, home: str = "home", **options: Any) -> Runtime:
        """A runtime over a home."""
        made = Runtime(home=self.root / home, **options)
        self.runtimes.append(made)
        return made

    def close(self) -> None:
        """Close the runtimes, and take what was imported from the site out of the process."""
        for runtime in self.runtimes:
            runtime.close()
        for name, module in sys.modules.copy().items():
            file = getattr(module, "__file__", None)
            if isinstance(file, str) and file.startswith(str(self.site)):
                del sys.modules[name]


def write(path: Path, text: str) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path
