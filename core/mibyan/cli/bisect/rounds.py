"""The rounds of `mibyan plugins bisect`: each is a process of its own in which some plugins are off."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from mibyan.cli import exits
from mibyan.cli.asking import can_ask
from mibyan.cli.output import say
from mibyan.plugins.journal import VARIABLE
from mibyan.records import record

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from mibyan.cli.invocation import Invocation

Verdict: TypeAlias = Literal["good", "bad", "skip"]

#: The exit code of a command that can't tell, as for `git bisect run`.
_SKIP: Final = 125
#: What a shell ends with when it can't run a command.
_CANT_RUN: Final = (126, 127)
#: Seconds for cleaning up.
_GRACE: Final = 3.0
#: How a person may answer.
_ANSWERS: Final[Mapping[str, Verdict]] = {
    "g": "good",
    "good": "good",
    "b": "bad",
    "bad": "bad",
    "s": "skip",
    "skip": "skip",
}


@record
class Round:
    """One round."""

    on: tuple[str, ...]
    off: tuple[str, ...]
    verdict: Verdict
    #: How that is known, in a few words.
    why: str
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As a JSON object."""
        return {
            "on": list(self.on),
            "off": list(self.off),
            "verdict": self.verdict,
            "why": self.why,
            "seconds": self.seconds,
        }


class Rounds:
    """Runs rounds, each combination once.

    Args:
        invocation: Its options say where, and which plugins are named besides.
        command: What is run in a shell and says by its exit code how it went; `None`: a person is asked.
        timeout: Seconds for one round.
        needs: The plugins that each plugin requires: they are on with it.
        always_off: Plugins that are off in each round.

    Raises:
        UsageError: There is neither a command nor a person.
    """

    def __init__(
        self, invocation: Invocation, command: str | None, timeout: float, needs: Mapping[str, Collection[str]],
        always_off: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if command is None and not can_ask():
            raise exits.UsageError("there is no terminal to ask at: give --command, whose exit code is the answer")
        self._invocation = invocation
        self._command = command
        self._timeout = timeout
        self._needs = needs
        self._always_off = tuple(always_off)
        self._known: dict[tuple[str, ...], Verdict] = {}
        #: All that were run, in order.
        self.done: list[Round] = []

    def verdict(self, on: Collection[str], among: Sequence[str], off: Sequence[str] = ()) -> Verdict:
        """How it goes with some plugins and those that they require.

        Args:
            on: The plugins that are on.
            among: Those of which the others are off.
            off: Further ones that are off.
        """
        wanted = self._with_needs(on)
        left = tuple(one for one in among if one in wanted)
        out = tuple(dict.fromkeys([*(one for one in among if one not in wanted), *off]))
        if out not in self._known:
            started = time.monotonic()
            say(f"round {len(self.done) + 1}: {_counted(left)} on" + (f", {_counted(out)} off" if out else ""))
            verdict, why = self._run(out)
            say(f"round {len(self.done) + 1}: {verdict} ({why})")
            self.done.append(Round(left, out, verdict, why, round(time.monotonic() - started, 3)))
            self._known[out] = verdict
        return self._known[out]

    def _with_needs(self, on: Collection[str]) -> set[str]:
        wanted: set[str] = set()
        waiting = list(on)
        while waiting:
            one = waiting.pop()
            if one not in wanted:
                wanted.add(one)
                waiting += self._needs.get(one, ())
        return wanted

    def _run(self, off: Sequence[str]) -> tuple[Verdict, str]:
        words = self._words(off)
        if self._command is not None:
            return self._judged(self._started(self._command, words), self._command)
        # What ends or holds up the process that only loads the plugins needs nobody to judge it.
        loaded = self._judged(
            self._started([sys.executable, "-P", "-m", "mibyan", "plugins", "list", "--load", "--json"], words), None
        )
        if loaded[0] == "bad":
            return "bad", f"loading the plugins: {loaded[1]}"
        return _asked(words), "you said so"

    def _words(self, off: Sequence[str]) -> str:
        """What `MIBYAN_PLUGINS` says in a round."""
        options = self._invocation.options
        said = os.environ.get("MIBYAN_PLUGINS", "").replace(",", " ").split()
        no = dict.fromkeys([*options.no_plugins, *self._always_off, *off])
        return ",".join([*said, *options.plugins, *(f"no:{one}" for one in no)])

    def _started(self, command: str | list[str], words: str) -> subprocess.Popen[bytes]:
        project = self._invocation.options.project
        environment = {
            **os.environ, "MIBYAN_PLUGINS": words, "MIBYAN_HOME": str(self._invocation.home),
            # A round that dies of a plugin is an answer; it must leave nothing behind.
            VARIABLE: "off", "PATH": _path(),
        }  # fmt: skip
        if self._invocation.options.safe_mode:
            environment["MIBYAN_SAFE_MODE"] = "1"
        quiet = subprocess.DEVNULL if isinstance(command, list) else None
        return subprocess.Popen(
            command, shell=isinstance(command, str), env=environment, cwd=project, stdin=subprocess.DEVNULL,
            stdout=quiet, stderr=quiet, start_new_session=True,
        )  # fmt: skip

    def _judged(self, process: subprocess.Popen[bytes], command: str | None) -> tuple[Verdict, str]:
        try:
            code = process.wait(self._timeout)
        except subprocess.TimeoutExpired:
            _kill(process)
            return "bad", f"it came to no end in {self._timeout:g} s"
        except BaseException:
            _kill(process)
            raise
        if command is not None and code in _CANT_RUN and not self.done:
            raise exits.UsageError(f"the shell can't run the command: it ended with {code}")
        if code == 0:
            return "good", "exit code 0"
        if code == _SKIP:
            return "skip", f"exit code {_SKIP}"
        return "bad", f"exit code {code}" if code > 0 else f"ended by signal {-code}"


def _asked(words: str) -> Verdict:
    """What a person says."""
    say(f"Try it in another shell:\n    MIBYAN_PLUGINS='{words}' {VARIABLE}=off mibyan …")
    while True:
        say("Is it good or bad?", end=" [g(ood)/b(ad)/s(kip)/q(uit)] ")
        line = sys.stdin.readline()
        answer = line.strip().lower()
        if answer in _ANSWERS:
            return _ANSWERS[answer]
        if not line or answer in {"q", "quit"}:
            raise KeyboardInterrupt


def _counted(ids: Sequence[str]) -> str:
    """The ids, of many only how many."""
    if len(ids) > 6:
        return f"{len(ids)} plugins"
    return ", ".join(ids) if ids else "nothing"


def _path() -> str:
    """`PATH` on which `mibyan` is this one."""
    own, path = Path(sys.executable).parent, os.environ.get("PATH", os.defpath)
    return os.pathsep.join([str(own), path]) if (own / "mibyan").exists() else path


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a round and what it has started; it has a moment to clean up."""
    for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        with suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, number)  # its session is its own
            else:
                process.kill()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
