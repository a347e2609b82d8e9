"""The Python that runs Mibyan: what makes its start slow or its output unreadable."""

from __future__ import annotations

import os
import sys
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

from mibyan.cli.doctor.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.cli.doctor.finding import Patient


def python(patient: Patient) -> Iterator[Finding]:
    """Byte code that isn't kept, and an output that can't say everything."""
    del patient
    yield from _byte_code()
    encoding = getattr(sys.__stdout__, "encoding", None) or "utf-8"
    if encoding.lower().replace("-", "").replace("_", "") != "utf8":
        yield Finding(
            "info", f"standard output is {encoding}: what it can't say is shown as escapes", None, "export PYTHONUTF8=1"
        )


def _byte_code() -> Iterator[Finding]:
    folder = Path(__file__).parents[2]
    compiled = [Path(cache_from_source(str(folder / name))) for name in ("__init__.py", "text.py")]
    if all(file.exists() for file in compiled):
        return
    place = compiled[0].parent
    if sys.dont_write_bytecode:
        yield Finding("warning", "byte code isn't kept, so each start compiles Mibyan anew", "PYTHONDONTWRITEBYTECODE",
                      "unset PYTHONDONTWRITEBYTECODE")  # fmt: skip
    elif not os.access(place if place.is_dir() else folder, os.W_OK):
        yield Finding("warning", "byte code can't be kept, so each start compiles Mibyan anew", str(folder),
                      f"{sys.executable} -m compileall -q {folder} (as who may write there)")  # fmt: skip
