"""Real environments: Mibyan's own wheel, a third party's wheel, a fresh virtual environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest
from filelock import FileLock

ROOT = Path(__file__).resolve().parents[2]

#: What Mibyan's dependencies are called in a site-packages folder (with their metadata).
LENT = [
    f"{name}{rest}"
    for name in [
        "annotated_types", "click", "docstring_parser", "filelock", "importlib_metadata", "jsonschema_rs", "markdown_it",
        "markdown_it_py", "mdurl", "packaging", "pluggy", "pydantic", "pydantic_core", "pygments", "yaml", "_yaml",
        "pyyaml", "PyYAML", "rich", "typing_extensions", "typing_inspection", "zipp",
    ]
    for rest in ["", ".py", "-*.dist-info"]
]  # fmt: skip


def run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None, check: bool = True):
    """Run a program to its end; its output as text."""
    done = subprocess.run(
        [str(word) for word in command],
        capture_output=True,
        text=True,
        cwd=cwd,
        env=env,
        timeout=300,
        stdin=subprocess.DEVNULL,
    )
    if check and done.returncode:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done


def build_wheel(source: Path, target: Path) -> Path:
    """Build the wheel of a source tree with its own build backend (hatchling, here already)."""
    target.mkdir(parents=True, exist_ok=True)
    script = "import sys; from hatchling.build import build_wheel; build_wheel(sys.argv[1])"
    run(sys.executable, "-c", script, target.resolve(), cwd=source)
    return next(target.glob("*.whl"))


@dataclass(frozen=True)
class Installation:
    """A fresh virtual environment with Mibyan's wheel in it, and a home of its own."""

    folder: Path
    home: Path
    work: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def pip(self, *words: str | Path):
        """Run the tests' pip on this environment."""
        return run(
            sys.executable, "-m", "pip", "--python", self.python, "--quiet", "--disable-pip-version-check", *words
        )

    def mibyan(self, *words: str, check: bool = False, **env: str):
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("MIBYAN_", "PYTHON"))}
        return run(self.folder / "bin" / "mibyan", *words, cwd=self.work, check=check,
                   env={**clean, "MIBYAN_HOME": str(self.home), "HOME": str(self.work), **env})  # fmt: skip

    def json(self, *words: str):
        return json.loads(self.mibyan(*words, "--json", check=True).stdout)

    def tool_names(self) -> list[str]:
        return [tool["name"] for tool in self.json("tools", "list")["tools"]]

    def plugin(self, plugin_id: str):
        return next((p for p in self.json("plugins", "list")["plugins"] if p["id"] == plugin_id), None)


@pytest.fixture(scope="session")
def mibyan_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mibyan's wheel, built from this checkout: once, whichever worker asks first."""
    own = tmp_path_factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "mibyan-wheel"
    with FileLock(f"{folder}.lock"):
        return next(folder.glob("*.whl"), None) or build_wheel(ROOT, folder)


@pytest.fixture
def installation(mibyan_wheel: Path, tmp_path: Path) -> Installation:
    """A fresh environment with Mibyan's wheel; what Mibyan depends on is lent by the tests' own environment."""
    made = Installation(tmp_path / "env", tmp_path / "home", tmp_path / "work")
    made.work.mkdir()
    venv.create(made.folder, with_pip=False)
    made.pip("install", "--no-deps", mibyan_wheel)
    lent = tmp_path / "lent"
    lent.mkdir()
    for name in LENT:
        for path in Path(sysconfig.get_path("purelib")).glob(name):
            (lent / path.name).symlink_to(path)
    site = next(made.folder.glob("lib/python*/site-packages"))
    (site / "lent.pth").write_text(f"{lent}\n")
    return made


def write_project(
    folder: Path, name: str, module: str, source: str, version: str = "1.0", manifest: dict | None = None
) -> Path:
    """A plugin author's project: hatchling, one module, the entry point, optionally a manifest in the dist-info."""
    slug = name.removeprefix("mibyan-plugin-")
    extra = '[tool.hatch.build.targets.wheel.extra-metadata]\n"mibyan.json" = "mibyan.json"\n' if manifest else ""
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        f'[project]\nname = "{name}"\nversion = "{version}"\nrequires-python = ">=3.11"\n'
        f'[project.entry-points."mibyan.plugins"]\n{slug} = "{module}"\n'
        f'[tool.hatch.build.targets.wheel]\ninclude = ["{module}.py"]\n{extra}'
    )
    (folder / f"{module}.py").write_text(dedent(source))
    if manifest:
        (folder / "mibyan.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def author(tmp_path: Path) -> Author:
    """A plugin author with a folder of projects."""
    return Author(tmp_path / "author")


class Author:
    """Writes projects and builds their wheels."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._serial = 0

    def wheel(self, name: str, module: str, source: str, version: str = "1.0", manifest: dict | None = None) -> Path:
        """The wheel of a new project."""
        self._serial += 1
        project = write_project(self._folder / f"src{self._serial}", name, module, source, version, manifest)
        return build_wheel(project, self._folder / f"dist{self._serial}")
