"""The built-in plugins' manifests, brought up to their code: `python -m mibyan_builtin.freeze [--check]`.

What the code says is what `mibyan plugins manifest` says, of each in turn; the version is Mibyan's own. The other keys are
written by hand. With `--check` nothing is written; the exit code is 1 and the plugins are named that differ.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from mibyan import __version__

HERE = Path(__file__).parent


def plugins(package: Path) -> list[Path]:
    """The folders of the built-in plugins, by name."""
    return sorted(path.parent for path in package.glob("*/__init__.py"))


def is_right(folder: Path) -> bool:
    """Whether a plugin's manifest is what its code says, and has this version."""
    return _version(folder) == __version__ and _manifest(folder, "--check") == 0


def write(folder: Path) -> bool:
    """Bring a plugin's manifest up to its code and this version; whether that could be done."""
    path = folder / "mibyan.json"
    if path.is_file() and _version(folder) != __version__:
        data = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(
            json.dumps({**data, "version": __version__}, ensure_ascii=False, indent=1) + "\n", encoding="utf-8"
        )
    return _manifest(folder, "--write") == 0


def _version(folder: Path) -> str | None:
    try:
        return str(json.loads((folder / "mibyan.json").read_text(encoding="utf-8")).get("version"))
    except (OSError, ValueError, AttributeError):
        return None


def _manifest(folder: Path, option: str) -> int:
    """The exit code of `mibyan plugins manifest`; what it says goes where it goes."""
    command = [sys.executable, "-m", "mibyan", "plugins", "manifest", str(folder), option]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr)  # noqa: T201
    return done.returncode


def main(arguments: list[str]) -> int:
    """Write the manifests, or check them; the exit code."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m mibyan_builtin.freeze [--check]", file=sys.stderr)  # noqa: T201
        return 2
    judge = is_right if arguments else write
    wrong = [folder.name for folder in plugins(HERE) if not judge(folder)]
    if wrong:
        verb = "drifted from the code" if arguments else "couldn't be written"
        print(f"manifests {verb}: {', '.join(wrong)}", file=sys.stderr)  # noqa: T201
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
