"""The manifest tells what the code does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def test_the_manifest_is_what_the_code_says() -> None:
    """If this fails: `mibyan plugins manifest . --write`."""
    command = [sys.executable, "-m", "mibyan", "plugins", "manifest", str(PROJECT), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
