"""An environment with Mibyan in it as pip would install it, made without a network from what is installed here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from time import perf_counter_ns
from typing import TYPE_CHECKING

from packaging.requirements import Requirement

import mibyan

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: The two packages of Mibyan's wheel.
PACKAGES = ("mibyan", "mibyan_builtin")

#: What Mibyan needs to run, as in pyproject.toml (read there when it runs from a checkout).
_PROJECT = Path(__file__).parents[1] / "pyproject.toml"

_LAUNCHER = """\
#!{python}
import sys
from mibyan.cli.main import main
if __name__ == "__main__":
    sys.exit(main())
"""


@dataclass(frozen=True, slots=True)
class Installation:
    """A virtual environment and what belongs to it.

    Args:
        folder: Its folder.
        work: An empty folder to run commands in; also the user's home.
    """

    folder: Path
    work: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def mibyan(self) -> Path:
        """Its command."""
        return self.folder / "bin" / "mibyan"

    @property
    def site(self) -> Path:
        """Its site-packages folder."""
        base = {"base": str(self.folder), "platbase": str(self.folder)}
        return Path(sysconfig.get_path("purelib", "venv", vars=base))


def install(folder: Path) -> Installation:
    """Make the environment below `folder`; its byte code is compiled with `compile_all`."""
    made = Installation(folder / "venv", folder / "work")
    made.work.mkdir(parents=True)
    venv.EnvBuilder(with_pip=False, symlinks=True).create(made.folder)
    for name in _closure(_dependencies()):
        _copy_distribution(name, made.site)
    for package in PACKAGES:
        _copy_package(package, made.site)
    _write_metadata(made.site)
    made.mibyan.write_text(_LAUNCHER.format(python=made.python), encoding="utf-8")
    made.mibyan.chmod(0o755)
    return made


def compile_all(made: Installation) -> None:
    """Compile the byte code that isn't there yet, as installing does."""
    subprocess.run([made.python, "-m", "compileall", "-q", "-j", "0", made.site], check=True, stdout=subprocess.DEVNULL)


def clean_environment(made: Installation, home: Path) -> dict[str, str]:
    """The variables of a user who has set none; `home` is the profile's folder."""
    return {
        "PATH": f"{made.folder / 'bin'}{os.pathsep}{os.defpath}",
        "HOME": str(made.work),
        "MIBYAN_HOME": str(home),
        "LANG": "C.UTF-8",
    }


class Process:
    """Milliseconds that a process takes, from its start to its end as whoever waits for it has them.

    Args:
        command: The program and its arguments.
        made: Where it runs.
        home: The profile's folder.
        environment: Its variables, if not those of a user who has set none.
        processor: Whether its processor time is what counts: that of others on a busy machine isn't in it.
    """

    def __init__(
        self, command: Sequence[str | Path], made: Installation, home: Path,
        environment: dict[str, str] | None = None, *, processor: bool = False,
    ) -> None:  # fmt: skip
        self._command = [str(word) for word in command]
        self._cwd = made.work
        self._environment = clean_environment(made, home) if environment is None else environment
        self._processor = processor

    def output(self) -> str:
        """Run it once and give its standard output.

        Raises:
            RuntimeError: It didn't end with 0.
        """
        done = subprocess.run(self._command, cwd=self._cwd, env=self._environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)  # fmt: skip
        self._require(done.returncode, done.stdout + done.stderr)
        return done.stdout

    def __call__(self) -> float:
        """Run it once and measure."""
        started = perf_counter_ns()
        process = subprocess.Popen(self._command, cwd=self._cwd, env=self._environment, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        took = perf_counter_ns() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        self._require(process.returncode)
        return (usage.ru_utime + usage.ru_stime) * 1e3 if self._processor else took / 1e6

    def _require(self, code: int, said: str = "") -> None:
        if code:
            raise RuntimeError(f"`{' '.join(self._command)}` ended with {code}:\n{said}")


def _dependencies() -> list[str]:
    """Mibyan's requirements: those of the checkout, else those of the installed wheel."""
    if _PROJECT.exists():
        import tomllib

        return list(tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"])
    return requires("mibyan") or []


def _closure(requirements: Iterable[str]) -> list[str]:
    """The names of the distributions that fulfil the requirements, and theirs in turn."""
    names: dict[str, None] = {}
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        wanted = waiting.pop()
        if wanted.name in names or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
            continue
        names[wanted.name] = None
        waiting += [Requirement(text) for text in requires(wanted.name) or []]
    return list(names)


def _copy_distribution(name: str, site: Path) -> None:
    """Copy an installed distribution's files, byte code too, with their times."""
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise RuntimeError(f"{name!r} isn't installed in {sys.prefix}, which Mibyan needs") from None
    for file in found.files or ():
        source = Path(str(found.locate_file(file)))
        if ".." in file.parts or not source.is_file():
            continue
        target = site / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def _copy_package(name: str, site: Path) -> None:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise RuntimeError(f"{name!r} can't be found: run the benchmarks where Mibyan is installed")
    shutil.copytree(Path(spec.origin).parent, site / name)


def _write_metadata(site: Path) -> None:
    info = site / f"mibyan-{mibyan.__version__}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: mibyan\nVersion: {mibyan.__version__}\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text("[console_scripts]\nmibyan = mibyan.cli.main:main\n", encoding="utf-8")
