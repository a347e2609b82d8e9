"""`python -m benchmarks [GROUP ...]`: all figures in one process tree, each beside its floor."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks import report
from benchmarks.harness import FULL, QUICK, SMOKE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

#: The groups, in the order in which they run; each is a module with `figures(effort)`.
GROUPS = ("calls", "registration", "definitions", "concurrency", "deadlines", "start")


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and say what to exit with: 1 only with `--check` and a figure that is over its target."""
    options = _options(words)
    # Processes that are measured here write byte code, as a user's do.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    where = report.machine()
    print("  ".join(f"{name}: {value}" for name, value in where.items()), file=sys.stderr)
    figures: list[Figure] = []
    for group in options.groups or GROUPS:
        print(f"measuring {group} ...", file=sys.stderr, flush=True)
        figures += import_module(f"benchmarks.{group}").figures(_effort(options))
    print(report.table(figures))
    if options.json:
        document = {"machine": where, "figures": [figure.to_dict() for figure in figures]}
        options.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(options.check and any(figure.verdict == "over" for figure in figures))


def _effort(options: Any) -> Effort:
    return SMOKE if options.smoke else QUICK if options.quick else FULL


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"any of: {', '.join(GROUPS)}; without: all")
    parser.add_argument("--quick", action="store_true", help="fewer pairs: about half a minute")
    parser.add_argument("--smoke", action="store_true", help="one pair each: only to see that everything runs")
    parser.add_argument("--check", action="store_true", help="exit 1 if a figure is over its target")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    options = parser.parse_args(words)
    unknown = sorted(set(options.groups) - set(GROUPS))
    if unknown:
        parser.error(f"there is no group {unknown[0]!r}; there are: {', '.join(GROUPS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
