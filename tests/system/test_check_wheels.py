"""`mibyan plugins check` builds, installs and tries projects, sdists and wheels (plugins.W3); `plugins manifest` looks into wheels (M4)."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from mibyan.cli.main import main

from .conftest import ROOT, build_wheel, write_project

pytestmark = pytest.mark.system

SOURCE = '''
    """Dice."""
    import mibyan

    @mibyan.tool(toolset="dice")
    def roll(sides: int = 6) -> int:
        """Roll a die."""
        return 4
'''
MANIFEST = {"manifest_version": 1, "id": "dice", "requires_mibyan": ">=0.1.dev0", "description": "Dice."}


@pytest.fixture
def check(capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Runs the check; what came of each by id, the first of it."""

    def check(path: Path, *words: str) -> dict[str, Any]:
        capsys.readouterr()
        main(["plugins", "check", str(path), "--json", *words])
        found: dict[str, Any] = {}
        for one in json.loads(capsys.readouterr().out)["checks"]:
            found.setdefault(one["id"], one)
        return found

    return check


def failed(found: dict[str, Any]) -> dict[str, str]:
    return {name: one["text"] for name, one in found.items() if one["status"] == "fail"}


def frozen_project(folder: Path, source: str = SOURCE, **further: Any) -> Path:
    root = write_project(folder, "mibyan-plugin-dice", "mibyan_plugin_dice", source, manifest={**MANIFEST, **further})
    assert main(["plugins", "manifest", str(root), "--write"]) == 0
    return root


def test_W3_a_project_is_built_installed_and_tried(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: the worked example passes every check without a warning, and nothing is written beside its sources."""
    root = tmp_path / "mibyan-plugin-git"
    shutil.copytree(ROOT / "examples" / "mibyan-plugin-git", root, ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    found = check(root)
    assert {name: one for name, one in found.items() if one["status"] != "ok"}.keys() == {"archive"}
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


def test_W3_an_sdist_is_built(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: an sdist is built as it was unpacked; an undeclared file that the wheel needs is missed there."""
    root = frozen_project(tmp_path / "dice")
    script = "import sys; from hatchling.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=root, check=True)
    found = check(tmp_path / "mibyan_plugin_dice-1.0.tar.gz")
    assert failed(found) == {}
    assert found["frozen"]["status"] == "ok"


def test_W3_a_wheel_that_isnt_what_it_says(check: Callable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """plugins.M4, W3: drift, and what its import writes with the place, are found in a built wheel."""
    root = frozen_project(tmp_path / "dice")
    module = root / "mibyan_plugin_dice.py"
    module.write_text(module.read_text().replace("sides: int = 6", "sides: int = 20") + "\nopen('made', 'w').close()\n")
    wheel = build_wheel(root, tmp_path / "dist")
    found = check(wheel)
    assert set(failed(found)) == {"import.files", "frozen"}
    assert found["import.files"]["origin"].startswith("mibyan_plugin_dice.py:")
    capsys.readouterr()
    assert main(["plugins", "manifest", str(wheel), "--check"]) == 1
    told = capsys.readouterr()
    assert '"default": 20' in told.out
    assert f"{wheel}: mibyan_plugin_dice-1.0.dist-info/extra_metadata/mibyan.json isn't what the code says" in told.err
    assert main(["plugins", "manifest", str(wheel), "--write"]) == 2


def hand_made(folder: Path, name: str, version: str, source: str) -> None:
    """A wheel with one module, without a builder."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD")))


def test_W3_what_it_requires_comes_by_the_installer(
    check: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.W3: what it requires is installed with it, and before what Mibyan lends; what can't be had is told."""
    source = f"import dice_helper\nfrom text_unidecode import OWN\n{dedent(SOURCE)}"
    root = write_project(tmp_path / "dice", "mibyan-plugin-dice", "mibyan_plugin_dice", source)
    file = root / "pyproject.toml"
    file.write_text(
        file.read_text().replace(
            "requires-python", 'dependencies = ["mibyan", "dice-helper", "text-unidecode>=99"]\nrequires-python'
        )
    )
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "dist"))
    hand_made(tmp_path / "dist", "text_unidecode", "99", "OWN = True\n")
    found = check(root, "--offline")
    assert set(failed(found)) == {"install"}
    assert "dice-helper" in found["install"]["text"]
    hand_made(tmp_path / "dist", "dice_helper", "1", "import socket\nsocket.socket().close()\n")
    found = check(root, "--offline")
    assert failed(found) == {}
    assert found["load"]["status"] == "ok"
    assert found["import.sockets"]["status"] == "warn"
    assert found["import.sockets"]["text"].startswith("dice_helper, which it imports")
    assert found["import.sockets"]["origin"] == f"{root}/mibyan_plugin_dice.py:1"


def test_W3_a_project_that_cant_be_built(check: Callable, tmp_path: Path) -> None:
    """plugins.W3: the builder's own words are told, with the command to see all of them."""
    root = frozen_project(tmp_path / "dice")
    file = root / "pyproject.toml"
    file.write_text(file.read_text().replace('include = ["mibyan_plugin_dice.py"]', "include = 3"))
    found = check(root, "--offline")
    assert set(failed(found)) == {"build"}
    assert found["build"]["fix"] == f"python -m build {root}"
    file.write_text(file.read_text().replace('["hatchling"]', '["no-such-builder"]'))
    assert "no-such-builder" in failed(check(root, "--offline"))["build"]
