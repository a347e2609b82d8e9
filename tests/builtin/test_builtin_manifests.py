"""The manifests of the built-in plugins: frozen, and true to the code (plugins.M2, M4)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import mibyan_builtin
from mibyan import __version__
from mibyan.plugins.manifest import parse_manifest
from mibyan_builtin import freeze

HERE = Path(mibyan_builtin.__file__).parent
IDS = [folder.name for folder in freeze.plugins(HERE)]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mibyan_builtin.freeze", *arguments], capture_output=True, text=True, check=False
    )


def test_the_manifests_are_what_the_code_says() -> None:
    """plugins.M4: definitions that drift from the code are found."""
    told = run("--check")
    assert (told.returncode, told.stderr) == (0, "")


def test_every_plugin_is_frozen() -> None:
    """Each sub-package is a plugin with a manifest, and all are generated."""
    assert sorted(path.parent.name for path in HERE.glob("*/mibyan.json")) == sorted(IDS)
    assert sorted(path.parent.name for path in HERE.glob("*/__init__.py")) == sorted(IDS)


@pytest.mark.thorough
def test_drift_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--check names what differs and writes nothing; without it the file is written, the version too."""
    package = tmp_path / "mibyan_builtin"
    shutil.copytree(HERE, package, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(freeze, "HERE", package)
    changed = {"files": ('"read_file"', '"read_fill"'), "memory": (f'"version": "{__version__}"', '"version": "0"')}
    for name, (old, new) in changed.items():
        path = package / name / "mibyan.json"
        path.write_text(path.read_text().replace(old, new))
    before = (package / "files/mibyan.json").read_bytes()
    assert freeze.main(["--check"]) == 1
    assert capsys.readouterr().err.endswith("manifests drifted from the code: files, memory\n")
    assert (package / "files/mibyan.json").read_bytes() == before
    assert freeze.main([]) == 0
    assert freeze.main(["--check"]) == 0
    assert (package / "memory/mibyan.json").read_bytes() == (HERE / "memory/mibyan.json").read_bytes()
    written, ours = (json.loads((base / "files/mibyan.json").read_text()) for base in (package, HERE))
    by_name = lambda data: {tool["name"]: tool for tool in data["tools"]}
    assert by_name(written) == by_name(ours)


def test_other_arguments_are_refused() -> None:
    """A usage line and exit code 2."""
    told = run("--chekc")
    assert told.returncode == 2
    assert "usage" in told.stderr


@pytest.mark.parametrize("name", IDS)
def test_a_manifest_passes_the_check(name: str) -> None:
    """plugins.M1: a built-in's manifest is one like any other."""
    path = HERE / name / "mibyan.json"
    manifest = parse_manifest(json.loads(path.read_text()), str(path))
    assert manifest.frozen
    assert manifest.id == name
    assert manifest.description
    assert all(tool.target and tool.schema["description"] for tool in manifest.tools)


PUBLISHED = {
    "terminal": (
        "terminal",
        "command background timeout workdir pty stdin notify_on_complete watch_patterns",
        "command",
    ),
    "execute_code": ("code", "code timeout", "code"),
    "read_file": ("files", "path offset limit", "path"),
    "write_file": ("files", "path content", "path content"),
    "patch": ("files", "path old_string new_string replace_all diff", ""),
    "search_files": ("files", "pattern path target glob limit", "pattern"),
    "todo_list": ("planning", "todos merge", ""),
    "memory": ("memory", "action target content old_text", "action"),
    "session_search": ("sessions", "query limit", ""),
    "delegate_task": ("delegation", "goal context toolsets tasks", ""),
}


def test_the_published_arguments() -> None:
    """design/api.md: names, toolsets and arguments of the built-in tools are fixed."""
    found = {}
    for name in IDS:
        for tool in json.loads((HERE / name / "mibyan.json").read_text())["tools"]:
            parameters = tool["schema"]["parameters"]
            arguments = " ".join(parameters["properties"]), " ".join(parameters.get("required", []))
            found[tool["name"]] = (tool["toolset"], *arguments)
            assert parameters["additionalProperties"] is False
            assert all(part.get("description") for part in parameters["properties"].values())
    assert found == PUBLISHED


@pytest.mark.parametrize("name", IDS)
def test_a_plugin_is_light_to_import(name: str) -> None:
    """What is heavy is lazy: importing a plugin pulls in no library and no process machinery."""
    heavy = (
        "pydantic",
        "yaml",
        "asyncio",
        "subprocess",
        "click",
        "rich",
        "pluggy",
        "jsonschema_rs",
        "difflib",
        "tempfile",
    )
    script = f"import sys, mibyan_builtin.{name}; print([m for m in {heavy!r} if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
