"""`python -m benchmarks [GROUP ...]`: all figures in one process tree, each beside its floor."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import report
from benchmarks.harness import FULL, QUICK, SMOKE
from benchmarks.peers.environments import PEERS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.figures import Figure

#: The groups, in the order in which they run; each is a module with `figures(effort)`.
GROUPS = (
    "calls", "registration", "definitions", "concurrency", "deadlines", "commands", "finding", "judging", "scripts", "start",
)  # fmt: skip

#: The group that needs other people's software, and whose without being asked.
PEERS_GROUP = "peers"
NEIGHBOUR = "hermes"


def main(words: Sequence[str] | None = None) -> int:
    """Measure, print, and say what to exit with: 1 only with `--check` and a figure that is over its target."""
    options = _options(words)
    # Processes that are measured here write byte code, as a user's do.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    where = report.machine()
    print("  ".join(f"{name}: {value}" for name, value in where.items()), file=sys.stderr)
    figures: list[Figure] = []
    for group in options.groups:
        print(f"measuring {group} ...", file=sys.stderr, flush=True)
        figures += _measured(group, options)
    print(report.markdown(figures, where) if options.markdown else report.table(figures))
    if options.json:
        document = {"machine": where, "figures": [figure.to_dict() for figure in figures]}
        options.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return int(options.check and any(figure.verdict == "over" for figure in figures))


def _measured(group: str, options: argparse.Namespace) -> list[Figure]:
    effort = replace(SMOKE if options.smoke else QUICK if options.quick else FULL, processor=options.processor)
    if group == PEERS_GROUP:
        from benchmarks.peers.group import figures

        return figures(effort, options.peers or [NEIGHBOUR])
    found: list[Figure] = import_module(f"benchmarks.{group}").figures(effort)
    return found


def _options(words: Sequence[str] | None) -> argparse.Namespace:
    known = (*GROUPS, PEERS_GROUP)
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP",
                        help=f"any of: {', '.join(known)}; without: all but {PEERS_GROUP}")  # fmt: skip
    parser.add_argument("--peers", type=_names, default=[], metavar="A,B",
                        help=f"the group {PEERS_GROUP} too, with these: {', '.join(PEERS)}")  # fmt: skip
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--smoke", action="store_true", help="one pair each: only to see that everything runs")
    parser.add_argument("--processor", action="store_true",
                        help="processes by their processor time, where the machine does other things")  # fmt: skip
    parser.add_argument("--check", action="store_true", help="exit 1 if a figure is over its target")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument("--markdown", action="store_true", help="print them as docs/reference/figures.md has them")
    options = parser.parse_args(words)
    for what, asked, there in (("group", options.groups, known), ("peer", options.peers, tuple(PEERS))):
        unknown = [name for name in asked if name not in there]
        if unknown:
            parser.error(f"there is no {what} {unknown[0]!r}; there are: {', '.join(there)}")
    options.groups = options.groups or list(GROUPS)
    if options.peers and PEERS_GROUP not in options.groups:
        options.groups.append(PEERS_GROUP)
    return options


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


if __name__ == "__main__":
    sys.exit(main())
