"""Trying a plugin in its environment, and judging what it did (plugins.W3, second half)."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from mibyan.cli.apart import run_apart
from mibyan.cli.checking.checks import DYNAMIC
from mibyan.cli.checking.schemas import Unsayable
from mibyan.cli.doctor.plugins.costs import SLOW_MS
from mibyan.plugins.state import standing
from mibyan.text import counted, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mibyan.cli.apart import Ended
    from mibyan.cli.checking.checks import Checklist
    from mibyan.cli.checking.environment import Environment

#: What one does instead of doing something at import.
_INSTEAD: Final = {
    "import.files": "do it when a tool is called; ctx.state is the plugin's folder for what it keeps",
    "import.threads": "start it when a tool is called, and end it in ctx.on_unload",
    "import.processes": "run it when a tool is called",
    "import.sockets": "do it when a tool is called",
    "import.prints": "use ctx.logger, or logging.getLogger(__name__): what is printed ends up in the midst of somebody's protocol",
}
_FINE: Final = {
    "import.files": "it writes none while it is loaded",
    "import.threads": "it starts none while it is loaded",
    "import.processes": "it starts none while it is loaded",
    "import.sockets": "it opens none while it is loaded",
    "import.prints": "it prints nothing while it is loaded",
}
_AFTER_LOAD: Final = [check_id for check_id in DYNAMIC if check_id.startswith("import.")] + ["unload"]


class Trial:
    """A plugin that is tried in an environment of its own.

    Args:
        plugin_id: Its id.
        environment: Where it, or what it needs, is installed.
        folder: A folder for scratch files, which somebody else removes.
        settings: Its own settings.
        distribution: Whether it brings what it requires.
    """

    def __init__(
        self, plugin_id: str, environment: Environment, folder: Path, settings: Mapping[str, Any], *, distribution: bool
    ) -> None:
        self._id = plugin_id
        self._environment = environment
        self._folder = folder
        self._is_distribution = distribution
        self.home = folder / "home"
        (self.home / "plugins").mkdir(parents=True)
        entry = {"allow_tool_override": True, "config": dict(settings)}
        # JSON is YAML.
        (self.home / "config.yaml").write_text(
            json.dumps({"plugins": {"entries": {plugin_id: entry}}}), encoding="utf-8"
        )
        #: Where its code lies there, and what that is called.
        self._places: dict[str, str] = {}

    def place(self, there: Path, shown: str) -> None:
        """Say where its code lies in the environment, and as what people know that place."""
        self._places[str(there)] = self._places[os.path.realpath(there)] = shown

    def run(self, found: Checklist, timeout: float) -> bool:
        """Try it; whether its code may be looked at further."""
        (self._folder / "work").mkdir()
        answer, stage, log = (self._folder / name for name in ("answer.json", "stage.txt", "log.txt"))
        order = {
            "id": self._id, "home": str(self.home), "warm": str(self._folder / "warm"), "stage": str(stage),
            "answer": str(answer), "log": str(log), "inside": list(self._places),
        }  # fmt: skip
        (self._folder / "order.json").write_text(json.dumps(order), encoding="utf-8")
        ended = run_apart(
            [self._environment.python, "-I", "-B", "-X", "utf8", "-m", "mibyan.cli.checking.probe", self._folder / "order.json", str(timeout)],
            cwd=self._folder / "work", log=log, timeout=timeout, env=_environ(self._folder),
        )  # fmt: skip
        try:
            said = json.loads(answer.read_bytes())
        except (OSError, ValueError):
            self._tell_end(ended, stage, found)
            return False
        loaded = self._judge(said, found)
        if "error" not in said and said["left"] is None:
            self._tell_end(ended, stage, found)
        return loaded

    def _tell_end(self, ended: Ended, stage: Path, found: Checklist) -> None:
        """The process has ended without an answer."""
        try:
            at = stage.read_text(encoding="utf-8")
        except OSError:
            at = "start"
        while_ = {"load": "while it was loaded, ", "unload": "while it was unloaded, "}.get(at, "")
        check_id = "unload" if at == "unload" else "load"
        mend = (
            "do nothing at the top of a module that may end or hang: move it into a function"
            if at == "load"
            else "look at its unload callbacks"
        )
        found.fail(check_id, f"{while_}{ended.how}{ended.last_words}", mend if at in {"load", "unload"} else None)
        found.skip(["load", *_AFTER_LOAD], "the process of the trial has ended")

    def _judge(self, said: Mapping[str, Any], found: Checklist) -> bool:
        if "error" in said:
            found.fail("load", f"the trial itself failed: {said['error']}", "mibyan doctor")
            found.skip(_AFTER_LOAD, "the trial itself failed")
            return False
        loaded = said["state"] in {"ready", "active"}
        if not loaded:
            tell = found.warn if said["state"] == "needs" else found.fail
            tell("load", f"it {standing(said['state'], self._shown(said['reason']))}", self._mend(said["hint"]))
        for reason, fix, origin in said["problems"]:
            found.warn("load", reason, fix, origin and self._shown(origin))
        overrides = f", replaces {', '.join(said['overrides'])}" if said["overrides"] else ""
        found.ok("load", f"{counted(len(said['tools']), 'tool')}, {counted(len(said['hooks']), 'hook')}{overrides}")
        for one in said["schemas"]:
            Unsayable(**{**one, "formats": tuple(one["formats"])}).tell(found, None)
        if loaded:
            found.ok("schemas", f"every provider takes all of them: {counted(len(said['tools']), 'tool')}")
        self._judge_acts(said, found, loaded=loaded)
        if not loaded:
            found.skip(_AFTER_LOAD, f"it {standing(said['state'])}")
            return bool(said["state"] == "needs")
        self._judge_time(said["ms"], found)
        if said["left"] is not None:
            self._judge_unload(said, found)
        return True

    def _mend(self, hint: str | None) -> str | None:
        """What an author can do, where the hint tells an operator."""
        if hint is None or "mibyan plugins" in hint:
            return None
        if "Mibyan's environment" in hint and self._is_distribution:
            return "declare what has it: [project] dependencies = [...]"
        return hint

    def _judge_acts(self, said: Mapping[str, Any], found: Checklist, *, loaded: bool) -> None:
        """What it did while it was loaded."""
        for check_id, what, place, library in said["seen"]:
            if library:
                text = f"{library}, which it imports, {what} meanwhile"
                found.warn(check_id, text, f"import {library} inside the functions that use it", self._shown(place))
            else:
                found.fail(check_id, f"while it is loaded it {what}", _INSTEAD[check_id], self._shown(place))
        if said["threads"]:
            found.fail(
                "import.threads",
                f"threads that it started go on: {', '.join(said['threads'])}",
                _INSTEAD["import.threads"],
            )
        if said["printed"]:
            found.fail("import.prints", f"while it is loaded it prints {one_line(said['printed'].strip() or 'blanks', 120)!r}", _INSTEAD["import.prints"])  # fmt: skip
        if loaded:
            for check_id, text in _FINE.items():
                found.ok(check_id, text)

    @staticmethod
    def _judge_time(milliseconds: float | None, found: Checklist) -> None:
        if milliseconds is None:
            found.skip(["import.time"], "nothing was imported")
        elif milliseconds > SLOW_MS:
            found.warn("import.time", f"its import takes {milliseconds:g} ms, more than {SLOW_MS:g}", "import what is heavy inside the functions that use it: python -X importtime")  # fmt: skip
        else:
            found.ok("import.time", f"{milliseconds:g} ms (up to {SLOW_MS:g} are fine)")

    @staticmethod
    def _judge_unload(said: Mapping[str, Any], found: Checklist) -> None:
        """What is left of it, in the registry and in the process."""
        for what in said["left"][:5]:
            found.fail(
                "unload", f"after it was unloaded {what}", "register through ctx only, and nothing after the load"
            )
        for reason, fix, _ in said["words"]:
            found.fail("unload", reason, fix or "mend its unload callback")
        if said["still"]:
            found.fail("unload", f"after it was unloaded its threads go on: {', '.join(said['still'])}", "end them in ctx.on_unload")  # fmt: skip
        found.ok("unload", "the registry is as it was")
        remains = set(said["remains"])
        for what in sorted(remains):
            found.fail(
                "import.process",
                f"it changes {what}, and leaves it so when it is unloaded",
                "leave the process as it is: it is the host's",
            )
        for what in sorted(set(said["changed"]) - remains):
            found.warn(
                "import.process",
                f"it changes {what} as long as it is loaded",
                "leave the process as it is: it is the host's",
            )
        found.ok("import.process", "it leaves the process as it was")

    def _shown(self, place: str) -> str:
        """A text with the places in its code as people know them."""
        for there, shown in sorted(self._places.items(), key=lambda item: -len(item[0])):
            place = place.replace(there, shown)
        return place


def _environ(folder: Path) -> dict[str, str]:
    """The environment of the trial: the operator's variables, but for Mibyan's and Python's, and an empty home."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MIBYAN_", "PYTHON", "VIRTUAL_ENV", "XDG_"))
    }
    return {**kept, "HOME": str(folder / "work"), "TMPDIR": str(folder / "work")}
