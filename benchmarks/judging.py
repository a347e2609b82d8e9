"""What a verdict about a shell command costs, beside the parser alone."""

from __future__ import annotations

import contextlib
import itertools
import re
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.figures import Target
from benchmarks.harness import Pair, PerCall, measure, milliseconds
from mibyan.approvals import evaluate_command
from mibyan.approvals.evaluate import _judged
from mibyan.approvals.shell.parser import Parser, UnparsableError
from mibyan.approvals.verdict import CommandContext

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort

GROUP = "judging"

_COLLECTION = Path(__file__).parents[1] / "tests" / "approvals" / "commands.tsv"
_ESCAPE = re.compile(r"\\n|\\x([0-9a-fA-F]{2})")
#: Commands of which the 95th percentile is taken.
_SAMPLE = 40

_PROSE = "cat > notes.txt <<'EOF'\n" + "remember: rm -rf / and shutdown -h now are never run here\n" * 1_700 + "EOF\n"
_NEST = "$(" * 20_000
_SCRIPT = "echo one two three\n" * 2_000


def figures(effort: Effort) -> list[Figure]:
    """All figures of judging."""
    commands = _commands()
    if evaluate_command("rm -rf /").level != "hardline" or evaluate_command(_PROSE).level != "safe":
        raise RuntimeError("the judge doesn't judge")
    repeated = "git status --short | head -n 5"
    once = [
        Pair("a command of the collection", "the parser alone", _each(commands, _parse), _each(commands, _judge), "ms", Target(2)),
        Pair("100 kB of here-document", "the parser's start", lambda: milliseconds(lambda: _parse(":")),
             lambda: milliseconds(lambda: _judge(_PROSE)), "ms", Target(50, subject="more")),
        Pair("a script of 2,000 commands", "the parser alone", lambda: milliseconds(lambda: _parse(_SCRIPT)),
             lambda: milliseconds(lambda: _judge(_SCRIPT)), "ms", Target(2)),
    ]  # fmt: skip
    again = Pair("a command that was judged before", "look-up in a dict", PerCall({repeated: 1}.copy), PerCall(lambda: evaluate_command(repeated)),
                 "µs", Target(20, subject="ours"))  # fmt: skip
    long = [
        Pair("the slowest of twenty commands", "the parser alone", lambda: _slow(commands, _parse), lambda: _slow(commands, _judge), "ms", Target(2.5)),
        Pair("20,000 nested substitutions", "the parser alone", lambda: milliseconds(lambda: _parse(_NEST)),
             lambda: milliseconds(lambda: _judge(_NEST)), "ms", Target(2_500, subject="ours")),
    ]  # fmt: skip
    return [
        *measure(GROUP, once, effort.runs),
        *measure(GROUP, [again], effort.windows),
        *measure(GROUP, long, effort.long),
    ]


def _commands() -> list[str]:
    lines = _COLLECTION.read_bytes().decode().split("\n")[1:]
    texts = [line.split("\t", 2)[2] for line in lines if line]
    return [_ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else "\n", text) for text in texts]


def _judge(command: str) -> None:
    _judged(command, CommandContext())


def _parse(command: str) -> None:
    with contextlib.suppress(UnparsableError):
        Parser().parse(command)


def _each(commands: Sequence[str], work: Callable[[str], None]) -> Callable[[], float]:
    """Milliseconds of the median command among the next ten."""
    turn: Iterator[str] = itertools.cycle(commands)

    def sample() -> float:
        return statistics.median(milliseconds(lambda: work(next(turn))) for _ in range(10))

    return sample


def _slow(commands: Sequence[str], work: Callable[[str], None]) -> float:
    """Milliseconds of the 95th percentile of a sample of the collection."""
    sample = commands[:: max(1, len(commands) // _SAMPLE)]
    return statistics.quantiles([milliseconds(lambda: work(command)) for command in sample], n=20)[-1]  # noqa: B023 - called at once
