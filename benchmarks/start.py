"""What it costs to start: the import, and whole commands with a hundred plugins among a thousand distributions.

Every command is a process of its own beside a bare interpreter's, of the same environment, with the same options and
variables. Byte code is compiled beforehand, as installing does, and each command has run before: plugins without a
frozen manifest are learned on the first run, and configuration is read then.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import distributions
from benchmarks.figures import Target
from benchmarks.harness import Pair, measure
from benchmarks.installation import Process, compile_all, install

if TYPE_CHECKING:
    from benchmarks.distributions import Written
    from benchmarks.figures import Figure
    from benchmarks.harness import Effort
    from benchmarks.installation import Installation

GROUP = "start"

#: Distributions beside Mibyan and what it needs, and how many of them are plugins.
_DISTRIBUTIONS = 1_000
_PLUGINS = 100

_CONFIG = """\
# What an operator has set.
plugins:
  disabled: [{disabled}]
toolsets:
  disabled: []
dispatch:
  max_workers: 4
approvals:
  mode: manual
"""


def figures(effort: Effort) -> list[Figure]:
    """All figures of starting."""
    with tempfile.TemporaryDirectory(prefix="mibyan-bench-") as folder:
        made = install(Path(folder))
        written = distributions.write(made.site, _DISTRIBUTIONS, _PLUGINS)
        compile_all(made)
        return measure(GROUP, _pairs(made, written, effort), effort.processes)


def _pairs(made: Installation, written: Written, effort: Effort) -> list[Pair]:
    plain, configured = made.work / "plain", made.work / "configured"
    for home in plain, configured:
        home.mkdir()
    (configured / "config.yaml").write_text(_CONFIG.format(disabled=written.plugins[-1]), encoding="utf-8")

    def process(*command: str | Path, home: Path = plain) -> Process:
        return Process(command, made, home, processor=effort.processor)

    bare = process(made.python, "-c", "pass")
    listing, shorter = (process(made.mibyan, "tools", "list", home=home) for home in (plain, configured))
    calling = process(made.mibyan, "call", written.tool, *written.arguments)
    _check(listing, 2 * len(written.plugins))
    _check(shorter, 2 * len(written.plugins) - 2)
    if json.loads(calling.output())["city"] != "Oslo":
        raise RuntimeError("the tool that is to be called doesn't do its work")

    def beside_bare(name: str, ours: Process, bound: float, aim: float | None = None) -> Pair:
        return Pair(name, "python -c pass", bare, ours, effort.process_unit, Target(bound, aim))

    return [
        beside_bare("import mibyan", process(made.python, "-c", "import mibyan"), 1.5),
        beside_bare("mibyan --version", process(made.mibyan, "--version"), 1.5),
        beside_bare("mibyan tools list", listing, 7, 5),
        beside_bare("mibyan tools list, with a config.yaml", shorter, 7, 5),
        beside_bare("mibyan call of a trivial tool", calling, 9),
    ]


def _check(listing: Process, tools: int) -> None:
    """It lists what it should; afterwards it has run twice."""
    listing.output()
    listed = [line for line in listing.output().splitlines() if line.startswith("weather")]
    if len(listed) != tools:
        raise RuntimeError(f"`mibyan tools list` lists {len(listed)} tools of plugins; there are {tools}")
