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

pytestmark = [pytest.mark.system, pytest.mark.timeout(300)]


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


#: What tools leave in a working copy.
_LEFT_BEHIND = frozenset({"__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".venv", "build", "dist"})


def tracked(*folders: str) -> set[str]:
    """The sources below `folders`, without what tools leave there."""
    paths = (path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file())
    return {str(path.relative_to(ROOT)) for path in paths if not _LEFT_BEHIND.intersection(path.parts)}


def template_files() -> dict[str, bytes]:
    """The template of plugins, by the paths below its folder."""
    folder = ROOT / "examples" / "plugin-template"
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_wheel_carries_two_packages_and_nothing_else(contents: dict[str, bytes]) -> None:
    """architecture: one wheel carries `mibyan` and `mibyan_builtin`, every file of them, and is typed."""
    sources = {path.split("/", 1)[1] for path in tracked("core", "builtin_plugins")}
    sources |= {f"mibyan/_plugin_template/{name}" for name in template_files()}
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
    assert tracked("core", "builtin_plugins", "tests", "docs", "benchmarks", "examples") <= names
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


def test_W1_the_installed_wheel_finds_its_template(first_command: tuple[Path, str]) -> None:
    """plugins.W1: the wheel has the template, byte by byte; the checkout isn't asked."""
    program = "from mibyan.cli.scaffold.template import template_folder; print(template_folder())"
    folder = Path(run(first_command[0] / "python", "-P", "-c", program, cwd=first_command[0]).strip())
    assert folder.is_relative_to(first_command[0].parent)
    assert {name: (folder / name).read_bytes() for name in template_files()} == template_files()


def test_the_second_lesson_is_carried_out(first_command: tuple[Path, str], tmp_path: Path) -> None:
    """Tutorial, second lesson: its commands, one after the other in one shell, and what it says that they print."""
    lesson = (ROOT / "docs/tutorial/plugin-as-a-wheel.md").read_text()
    lines = "".join(re.findall(r"^```console\n(.*?)^```$", lesson, re.MULTILINE | re.DOTALL)).splitlines()
    commands = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    home = {"HOME": str(tmp_path), "MIBYAN_HOME": str(tmp_path / ".mibyan")}
    path = f"{first_command[0]}{os.pathsep}{os.environ['PATH']}"
    printed = run("bash", "-e", "-c", "\n".join(commands), cwd=tmp_path, PATH=path, **home).splitlines()
    assert [line for line in lines if not line.startswith("$ ") and line not in printed] == []
    assert len(list(tmp_path.glob("mibyan-plugin-weather/dist/*.whl"))) == 1
    assert any(re.search(r"\d+ passed", line) for line in printed)
    assert any(line.split()[:3] == ["weather", "pip", "0.1.0"] for line in printed)
