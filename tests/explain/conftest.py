"""A home and a project with plugins in every state, and the answers about their tools."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime
from mibyan.explain.answer import Answer
from mibyan.explain.session import Asked
from mibyan.explain.tool import explain_tool

#: A plugin that says so when it is run; `word` is on the third line.
LOUD = "raise RuntimeError('somebody ran me')\n\ndef word(args):\n    return 'x'\n"


def registering(name: str, toolset: str = "words", more: str = "") -> str:
    """A plugin's source; the registration is on the second line."""
    return f"def register(ctx):\n    ctx.register_tool({name!r}, {toolset!r}, {{'description': 'd'}}, lambda args: 'x'{more})\n"


def frozen(name: str, target: str | None = None, **more: Any) -> dict[str, Any]:
    """A manifest with one definition."""
    tool = {"name": name, "toolset": "words", "schema": {"description": "d"}, **more}
    return {"tools": [tool if target is None else {**tool, "target": target}]}


class Home:
    """A home, a project, and what is asked about their tools."""

    def __init__(self, root: Path) -> None:
        self.path = root / "home"
        self.project = root / "project"
        self.path.mkdir()
        (self.project / ".mibyan").mkdir(parents=True)

    def plugin(
        self, name: str, source: str, manifest: dict[str, Any] | None = None, *, project: bool = False, **files: str
    ) -> Path:
        """A folder plugin."""
        folder = (self.project / ".mibyan" if project else self.path) / "plugins" / name
        folder.mkdir(parents=True)
        (folder / "plugin.yaml").write_text(json.dumps({"manifest_version": 1, "id": name, **(manifest or {})}))
        (folder / "__init__.py").write_text(source)
        for file, text in files.items():
            (folder / f"{file}.py").write_text(text)
        return folder

    def file(self, name: str, source: str) -> Path:
        """A file below the home."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
        return path

    def runtime(self, **given: Any) -> Runtime:
        """A runtime over all of it."""
        return Runtime(self.path, self.project, **given)

    def why(self, name: str, asked: Asked | None = None, **given: Any) -> Answer:
        """The answer about one name."""
        with self.runtime(**given) as runtime:
            return explain_tool(runtime, name, asked)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Path]]:
    """Makes installed distributions; what was imported of them is forgotten."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)

    def make(module: str, source: str, manifest: dict[str, Any] | None = None, place: Path = folder) -> Path:
        info = place / f"{module}-1.0.dist-info"
        (info / "extra_metadata").mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[mibyan.plugins]\n{module} = {module}\n")
        if manifest is not None:
            (info / "extra_metadata" / "mibyan.json").write_text(json.dumps({"manifest_version": 1, **manifest}))
        (place / module).mkdir()
        (place / module / "__init__.py").write_text(source)
        return place / module

    yield make
    for name, module in sys.modules.copy().items():
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]
