"""Sessions of pytest in a process of their own, which find the fixtures as those of an installed wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import mibyan
from mibyan.testing.distributions import write_distribution

#: Seconds that a session may take on a busy machine.
PATIENCE = 110.0


@dataclass(frozen=True)
class Session:
    """A folder with tests, and an environment in which Mibyan is installed."""

    folder: Path
    #: Where bytecode is kept.
    bytecode: Path

    def __post_init__(self) -> None:
        entry = {"pytest11": {"mibyan": "mibyan.testing.pytest_plugin"}}
        write_distribution(self.site, "mibyan", mibyan.__version__, entry)

    @property
    def site(self) -> Path:
        """A site folder."""
        return self.folder / "site"

    def write(self, name: str, text: str) -> Path:
        """A file beside the tests."""
        path = self.folder / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def run(self, *words: str, code: int = 0, **variables: str) -> str:
        """Run pytest on the tests, with every warning an error; what it printed."""
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("PYT", "MIBYAN_"))}
        packages = [Path(mibyan.__file__).parents[1], Path(sys.modules["mibyan_builtin"].__file__).parents[1]]
        path = os.pathsep.join(map(str, [self.site, *packages]))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", ".", "-c", os.devnull, "-W", "error",
             "--strict-markers", "--strict-config", *words, "tests"],
            cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
            env={**inherited, "PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(self.bytecode), **variables},
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr
