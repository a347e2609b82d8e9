"""What people install: the wheel and the source distribution, and the README's first command."""

from __future__ import annotations

import email
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTRAS = [
    "mcp", "agent", "dask", "docker", "modal", "daytona", "vercel", "web", "browser", "vision", "image", "llm", "otel",
    "all",
]  # fmt: skip

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("wheel"), pytest.mark.timeout(300)]


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """The program's standard output; what it said otherwise, if it fails."""
    inherited = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=inherited | environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution: the wheel is built from the latter, as pip would."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return next(out.glob("*.whl")), next(out.glob("*.tar.gz"))


@pytest.fixture(scope="module")
def contents(built: tuple[Path, Path]) -> dict[str, bytes]:
    """The wheel's files."""
    with zipfile.ZipFile(built[0]) as wheel:
        return {name: wheel.read(name) for name in wheel.namelist()}


def tracked(*folders: str) -> set[str]:
    """The sources below `folders`, without what tools leave there."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in paths if "__pycache__" not in path.parts}


def test_the_wheel_carries_two_packages_and_nothing_else(contents: dict[str, bytes]) -> None:
    """architecture: one wheel carries `mibyan` and `mibyan_builtin`, every file of them, and is typed."""
    sources = {path.split("/", 1)[1] for path in tracked("core", "builtin_plugins")}
    assert {name for name in contents if ".dist-info/" not in name} == sources
    assert "mibyan/py.typed" in contents


def test_the_wheels_metadata(contents: dict[str, bytes]) -> None:
    """Name, version, Python, console script and the extras of api.md."""
    (path,) = [name for name in contents if name.endswith(".dist-info/METADATA")]
    metadata = email.message_from_bytes(contents[path])
    version = re.search(r'"(.+)"', (ROOT / "core/mibyan/_version.py").read_text().split("__version__")[1])[1]
    assert (metadata["Name"], metadata["Version"], metadata["Requires-Python"]) == ("mibyan", version, ">=3.11")
    assert sorted(metadata.get_all("Provides-Extra")) == sorted(EXTRAS)
    assert not [line for line in metadata.get_all("Requires-Dist") if "==" in line.partition(";")[0]]
    entry_points = contents[path.replace("METADATA", "entry_points.txt")].decode()
    assert "mibyan = mibyan.cli.main:main" in entry_points


def test_the_source_distribution_has_what_the_tests_need(built: tuple[Path, Path]) -> None:
    """From the source distribution one can build, test and read."""
    with tarfile.open(built[1]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    assert tracked("core", "builtin_plugins", "tests", "docs", "benchmarks") <= names
    assert {"pyproject.toml", "noxfile.py", "README.md", "LICENSE", "CHANGELOG.md"} <= names


@pytest.fixture(scope="module")
def first_command(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The README's first command, from a fresh copy in a fresh environment: its programs' folder, what it printed."""
    (command,) = re.findall(r"^```bash\n(pip install \. && .+)\n```", (ROOT / "README.md").read_text(), re.MULTILINE)
    folder = tmp_path_factory.mktemp("first")
    checkout = folder / "mibyan"
    checkout.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for name in ("core", "builtin_plugins", "examples"):
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, checkout / name, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    programs = folder / "venv" / "bin"
    home = {"HOME": str(folder), "MIBYAN_HOME": str(folder / ".mibyan")}
    printed = run("bash", "-c", command, cwd=checkout, PATH=f"{programs}{os.pathsep}{os.environ['PATH']}", **home)
    return programs, printed


def test_the_first_command_of_the_readme(first_command: tuple[Path, str]) -> None:
    """From a fresh copy and in a fresh environment, one command installs Mibyan and runs the main job."""
    printed = first_command[1]
    assert json.loads(printed[printed.index("{") :])["output"].startswith(os.uname().sysname)


def test_the_plugin_of_the_second_lesson(first_command: tuple[Path, str], tmp_path: Path) -> None:
    """Tutorial, second lesson: the folder becomes a wheel that is installed beside Mibyan's, and is called."""
    project = tmp_path / "mibyan-plugin-dice"
    lesson = (ROOT / "docs/tutorial/plugin-as-a-wheel.md").read_text()
    module = (ROOT / "docs/tutorial/first-plugin.md").read_text()
    (pyproject,) = re.findall(r"pyproject.toml -->\n```toml\n(.*?)^```", lesson, re.MULTILINE | re.DOTALL)
    (source,) = re.findall(r"file: dice/__init__.py -->\n```python\n(.*?)^```", module, re.MULTILINE | re.DOTALL)
    (project / "src" / "mibyan_plugin_dice").mkdir(parents=True)
    (project / "pyproject.toml").write_text(pyproject)
    (project / "src" / "mibyan_plugin_dice" / "__init__.py").write_text(source)
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", project, cwd=tmp_path)
    programs = first_command[0]
    (wheel,) = (project / "dist").glob("*.whl")
    run(programs / "pip", "install", "--quiet", "--no-index", wheel, cwd=tmp_path)
    answer = run(programs / "mibyan", "call", "roll_dice", "sides:=1", "count:=3", cwd=tmp_path)
    assert json.loads(answer) == {"rolls": [1, 1, 1], "total": 3}
