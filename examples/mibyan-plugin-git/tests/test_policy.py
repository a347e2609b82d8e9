"""The policy: what it makes of commands, and that it holds for the installed plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mibyan
import pytest
from mibyan.testing import ApprovalRecorder, ToolCaller

from mibyan_plugin_git.pushes import PushPolicy

PLAIN = [
    "git push",
    "cd x && git push origin main",
    "git -C x -c a=b push",
    "git --no-pager \\\n push -u origin main",
]
FORCED = [
    "git push --force",
    "git push -uf",
    "git push origin +main",
    "git push \\\n --force-with-lease",
    "git push origin :x",
]
OTHER = ["git status", "git stash push", "git log | grep push", "echo git; push", "ls"]


@pytest.mark.parametrize(
    ("commands", "kind"),
    [(PLAIN, mibyan.Ask), (FORCED, mibyan.Block), (OTHER, type(None))],
    ids=["plain", "forced", "other"],
)
def test_commands(commands: list[str], kind: type) -> None:
    """A push asks, one that overwrites is blocked, everything else may run."""
    policy = PushPolicy({})
    answers = {command: policy.pre_tool_call("terminal", {"command": command}) for command in commands}
    assert {command: type(answer) for command, answer in answers.items()} == dict.fromkeys(commands, kind)


def test_only_commands_of_the_terminal_count() -> None:
    """Other tools may have an argument of that name, and models send anything."""
    policy = PushPolicy({})
    assert policy.pre_tool_call("note", {"command": "git push"}) is None
    assert policy.pre_tool_call("terminal", {"command": 3}) is None


@pytest.mark.parametrize(
    ("config", "status", "asked"),
    [({}, "ok", True), ({"push": "block"}, "blocked", False), ({"push": "allow"}, "ok", False)],
    ids=["usual", "block", "allow"],
)
def test_the_installed_plugin_guards_the_terminal(
    make_runtime: Any, tmp_path: Path, config: dict[str, Any], status: str, asked: bool
) -> None:
    """What config.yaml says for the plugin is what happens, whoever calls; here everything that is asked gets a yes."""
    runtime = make_runtime(plugins=["git"], plugin_config={"git": config})
    answers = ApprovalRecorder(runtime, "once")
    call = mibyan.ToolCall("terminal", {"command": "git push --dry-run", "workdir": str(tmp_path)})
    assert runtime.execute(call).status == status
    assert any("It would push" in str(request.reason) for request in answers.requests) == asked


@pytest.mark.mibyan(plugins=["git"], plugin_config={"git": {"push": "perhaps"}})
def test_settings_that_mean_nothing_are_refused(mibyan_runtime: mibyan.Runtime, call_tool: ToolCaller) -> None:
    """The manifest's schema is checked before any code runs, and no call passes a policy that isn't in force."""
    assert call_tool.failing("terminal", command="true").status == "blocked"
    assert any("push" in str(problem) for problem in mibyan_runtime.report().problems)
