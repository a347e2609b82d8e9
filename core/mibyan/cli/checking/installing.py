"""Building a plugin's wheel and installing it, with the installer that this environment has."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from mibyan.cli.apart import run_apart
from mibyan.cli.checking.copying import copy_tree
from mibyan.cli.checking.environment import make_environment
from mibyan.cli.install.installers import Environment as Running
from mibyan.errors import MibyanError
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mibyan.cli.apart import Ended
    from mibyan.cli.checking.environment import Environment


class BuildError(MibyanError):
    """A wheel can't be built or installed."""


@record
class Workshop:
    """Where things are built and installed."""

    #: A folder for scratch files, which somebody else removes.
    folder: Path
    #: Seconds for one step.
    timeout: float
    #: Whether no index is asked.
    offline: bool

    def build(self, root: Path, said: Mapping[str, Any], *, keep: bool) -> Path:
        """Build the wheel of a project.

        It is built by what its pyproject.toml requires and nothing else: lent by this environment where it has all of
        that, else fetched by the installer.

        Args:
            root: The project.
            said: Its pyproject.toml.
            keep: Whether its folder must stay as it is: then a copy is built.

        Raises:
            BuildError: It can't be built.
        """
        source = self.folder / "source" / root.name if keep else root
        if keep:
            copy_tree(root, source)
        target = self.folder / "wheel"
        target.mkdir()
        section = said.get("build-system")
        listed = section.get("requires") if isinstance(section, dict) else None
        requires = [str(text) for text in listed] if isinstance(listed, list) else ["setuptools"]
        made = make_environment(self.folder / "build-env", requires)
        lent = set(map(_name_of, requires)) <= made.lent
        if not lent and self.offline:
            raise BuildError(f"it is built by {', '.join(requires)}, which isn't all here, and --offline forbids to fetch it",
                             hint=f"python -m pip install {' '.join(map(repr, requires))}")  # fmt: skip
        ended = self._run(self._builder(source, target, made.python if lent else None), "build.txt")
        wheels = list(target.glob("*.whl"))
        if ended.code != 0 or len(wheels) != 1:
            raise BuildError(_failed("it can't be built", ended), hint=f"python -m build {root}")
        return wheels[0]

    def install(self, wheel: Path, environment: Environment) -> None:
        """Install a wheel with what it requires and isn't lent.

        Raises:
            BuildError: It can't be installed.
        """
        ended = self._run(self._installer(wheel, environment), "install.txt")
        if ended.code != 0:
            hint = (
                "leave --offline out, so that what it requires may be fetched"
                if self.offline
                else "look at its dependencies in pyproject.toml"
            )
            raise BuildError(_failed("it can't be installed", ended), hint=hint)

    def _run(self, command: list[str | Path], log: str) -> Ended:
        env = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("MIBYAN_", "PYTHON", "VIRTUAL_ENV"))
        }
        env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUTF8": "1", "NO_COLOR": "1"}
        return run_apart(command, cwd=self.folder, log=self.folder / log, timeout=self.timeout, env=env)

    def _builder(self, source: Path, target: Path, python: Path | None) -> list[str | Path]:
        alone = ["--no-build-isolation"] if python is not None else []
        if Running.running().has_pip:
            at: list[str | Path] = [] if python is None else ["--python", python]
            return [sys.executable, "-m", "pip", *at, "wheel", "--no-deps", *alone, "--wheel-dir", target, source]
        return [_uv(), "build", "--wheel", "--out-dir", target, "--python", python or sys.executable, *alone, source]

    def _installer(self, wheel: Path, environment: Environment) -> list[str | Path]:
        index = ["--no-index"] if self.offline else []
        if Running.running().has_pip:
            return [sys.executable, "-m", "pip", "--python", environment.python, "install", *index, wheel]
        # uv looks at the environment's own site-packages only: what is lent is taken out of what it looks for.
        overrides = self.folder / "lent.txt"
        lines = [f"{name} ; python_version < '3'\n" for name in sorted(environment.lent)]
        overrides.write_text("".join(lines), encoding="utf-8")
        return [_uv(), "pip", "install", "--python", environment.python, "--override", overrides, *index, wheel]


def _failed(what: str, ended: Ended) -> str:
    """What went wrong, in the words of the program that was run."""
    if ended.code is None:
        return f"{what}: it took longer than {ended.seconds:g} s"
    lines = [line.strip() for line in ended.tail]
    told = [line for line in lines if line.lower().startswith(("error", "hint"))] or lines[-3:]
    errors = [line for line in lines if "Error" in line and line not in told]
    return f"{what}: {'; '.join([*errors[-2:], *told[:3]]) or ended.how}"


def _name_of(requirement: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement

    from mibyan.plugins.sources.ids import canonical

    try:
        found = Requirement(requirement)
    except InvalidRequirement:
        return requirement
    return canonical(found.name)


def _uv() -> str:
    found = Running.running().uv
    if found is None:
        raise BuildError(
            "this environment has no installer: neither pip nor uv", hint="python -m ensurepip, or install uv"
        )
    return found
