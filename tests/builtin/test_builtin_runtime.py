"""The built-in tools through the one door: a runtime, a session, the pipeline."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from mibyan import Runtime, ToolCall

AGENT_TOOLS = ("todo_list", "todo", "memory", "session_search", "delegate_task")


@pytest.fixture
def runtime(tmp_path: Path):
    """A runtime whose person approves everything."""
    with Runtime(home=tmp_path / "home") as runtime:
        runtime.approvals.notify(lambda request: runtime.approvals.resolve(request.id, "once"))
        yield runtime


@pytest.fixture
def session(runtime: Runtime, workspace: Path):
    return runtime.session(cwd=workspace)


def test_a_file_goes_round(runtime: Runtime, session, workspace: Path) -> None:
    """Write, read, patch and search, with arguments as models send them."""
    assert json.loads(runtime.call("write_file", '{"path": "a/b.txt", "content": "one\\ntwo\\n"}', session=session))[
        "created"
    ]
    assert (
        json.loads(runtime.call("read_file", {"path": "a/b.txt", "offset": "2"}, session=session))["content"] == "two\n"
    )
    runtime.call("patch", {"path": "a/b.txt", "old_string": "two", "new_string": "2"}, session=session)
    assert (workspace / "a/b.txt").read_text() == "one\n2\n"
    found = json.loads(runtime.call("search_files", {"pattern": "one"}, session=session))
    assert found["matches"] == [{"path": "a/b.txt", "line": 1, "text": "one"}]


def test_the_workspace_is_the_sessions(runtime: Runtime, session, workspace: Path, tmp_path: Path) -> None:
    """The working directory of the session, or of the task, is where paths start; the answer outside is one."""
    (workspace / "task").mkdir()
    session.set_cwd(workspace / "task", task_id="t")
    runtime.call("write_file", {"path": "f", "content": "x"}, session=session, task_id="t")
    assert (workspace / "task/f").read_text() == "x"
    for name in ("outside.txt", "nothing.txt"):
        result = runtime.execute(ToolCall("read_file", {"path": f"../{name}"}), session=session)
        assert (result.status, result.error) == ("error", f"The path is outside the workspace: ../{name}")


def test_roots_come_from_the_configuration(tmp_path: Path, workspace: Path) -> None:
    """files.roots widens the workspace."""
    (tmp_path / "more").mkdir()
    with Runtime(home=tmp_path / "home", config={"files": {"roots": [str(tmp_path / "more")]}}) as runtime:
        session = runtime.session(cwd=workspace)
        runtime.call("write_file", {"path": str(tmp_path / "more/f"), "content": "x"}, session=session)
    assert (tmp_path / "more/f").read_text() == "x"


def test_a_tools_own_error_is_told_with_its_hint(runtime: Runtime, session) -> None:
    """What happened, and what to do."""
    data = json.loads(runtime.call("read_file", {"path": "a", "offset": 0}, session=session))
    assert "offset is the number of a line" in data["error"]
    (session.cwd() / "read.txt").touch()
    data = json.loads(runtime.call("read_file", {"path": "raed.txt"}, session=session))
    assert "read.txt" in data["hint"]


def test_a_command_runs_when_it_is_approved(runtime: Runtime, session, workspace: Path) -> None:
    """Status ok whatever the exit code: that is data."""
    result = runtime.execute(ToolCall("terminal", {"command": "pwd; exit 3"}), session=session)
    assert result.status == "ok"
    assert result.data["output"] == f"{workspace.resolve()}\n"
    assert result.data["exit_code"] == 3


def test_a_command_is_denied_without_a_person(tmp_path: Path, workspace: Path) -> None:
    """approvals.P2: without a channel nothing dangerous runs; what is safe does."""
    (workspace / "folder").mkdir()
    with Runtime(home=tmp_path / "home") as runtime:
        session = runtime.session(cwd=workspace)
        result = runtime.execute(ToolCall("terminal", {"command": "rm -r folder"}), session=session)
        safe = runtime.execute(ToolCall("terminal", {"command": "touch marker"}), session=session)
    assert (result.status, safe.status) == ("denied", "ok")
    assert "approvals.mode" in result.error
    assert {path.name for path in workspace.iterdir()} == {"folder", "marker"}


@pytest.mark.parametrize("mode", ["manual", "off"])
def test_approvals_P4_what_is_hardline_never_runs(tmp_path: Path, mode: str) -> None:
    """Whoever says yes: the session's directory counts, and so does where a link leads."""
    (tmp_path / "link").symlink_to("/")
    with Runtime(home=tmp_path / "home", config={"approvals": {"mode": mode}}) as runtime:
        runtime.approvals.notify(lambda request: "always")
        for cwd, workdir in (("/", None), (tmp_path, "link"), (tmp_path / "link", None)):
            args = {"command": "rm -rf *"} | ({"workdir": workdir} if workdir else {})
            result = runtime.execute(ToolCall("terminal", args), session=runtime.session(cwd=cwd))
            assert (result.status, result.data["blocked_by"]) == ("blocked", "approvals")
            assert "root_delete" in result.error


@pytest.mark.parametrize(("command", "stdin", "status"), [
    ("cat", "rm -rf /", "ok"), ("bash", "rm -rf /", "blocked"), ("bash", "rm -rf x", "denied"), ("cat", "x" * 300_000, "ok"),
    ("bash", "#" * 300_000, "denied"), ("bash; true", "rm -rf ~", "blocked"),
])  # fmt: skip
def test_what_a_command_reads_is_judged_with_it(tmp_path: Path, command: str, stdin: str, status: str) -> None:
    """An interpreter runs its standard input; to other programs it is data."""
    with Runtime(home=tmp_path / "home") as runtime:
        args = {"command": command, "stdin": stdin}
        assert runtime.execute(ToolCall("terminal", args), session=runtime.session(cwd=tmp_path)).status == status


def test_the_person_sees_the_command(tmp_path: Path, workspace: Path) -> None:
    """The question shows the very command, and no is no."""
    asked = []
    with Runtime(home=tmp_path / "home") as runtime:
        runtime.approvals.notify(lambda request: (asked.append(request), runtime.approvals.resolve(request.id, "deny")))
        result = runtime.execute(
            ToolCall("terminal", {"command": "rm -r \x1b[2Kmarker"}), session=runtime.session(cwd=workspace)
        )
    assert result.status == "denied"
    assert asked[0].text == "rm -r \\x1b[2Kmarker"
    assert list(workspace.iterdir()) == []


@pytest.mark.parametrize("where", ["argument", "call"])
def test_a_timeout_has_status_timeout_and_the_output(runtime: Runtime, session, where: str) -> None:
    """terminal.T1a: whichever deadline comes first, the partial output is in the answer."""
    started = time.monotonic()
    arguments = {"command": "echo begun; sleep 600"} | ({"timeout": 0.5} if where == "argument" else {})
    text = runtime.call("terminal", arguments, session=session, timeout=None if where == "argument" else 2)
    data = json.loads(text)
    assert time.monotonic() - started < 30
    assert (data["output"], data["error_type"]) == ("begun\n", "timeout")
    result = runtime.execute(ToolCall("terminal", {"command": "sleep 600", "timeout": 0.2}), session=session)
    assert (result.status, result.error_type) == ("timeout", "timeout")


@pytest.mark.parametrize("arguments", [{}, {"nonsense": 1}, "not json"])
@pytest.mark.parametrize("name", AGENT_TOOLS)
def test_the_agents_tools_without_an_agent(runtime: Runtime, session, name: str, arguments) -> None:
    """dispatch.C3: the same answer from every entry, whatever the arguments."""
    own = "todo_list" if name == "todo" else name
    expected = {"error": f"{own} must be handled by the agent loop", "error_type": "tool_unavailable"}
    assert json.loads(runtime.call(name, arguments, session=session)) == expected
    assert json.loads(runtime.registry.dispatch(name, arguments)) == expected


def test_the_agents_tools_with_an_agent(runtime: Runtime) -> None:
    """dispatch.C3: the session's own handler answers."""
    with runtime.session(handlers={"todo_list": lambda args, **context: {"todos": args["todos"]}}) as session:
        todos = [{"id": "1", "content": "x", "status": "pending"}]
        assert json.loads(runtime.call("todo_list", {"todos": todos}, session=session)) == {"todos": todos}
        result = runtime.execute(ToolCall("todo_list", {"todos": [{"content": "no id"}]}), session=session)
        assert result.error_type == "invalid_arguments"


def test_the_agents_tools_own_answers() -> None:
    """Called past the pipeline, their functions say the same."""
    from mibyan_builtin import delegation, memory, planning, sessions

    for function in (planning.todo_list, memory.memory, sessions.session_search, delegation.delegate_task):
        arguments = {"action": "add"} if function.name == "memory" else {}
        assert function(None, **arguments) == {
            "error": f"{function.name} must be handled by the agent loop", "error_type": "tool_unavailable",
        }  # fmt: skip


def test_terminal_E5_named_secrets_dont_reach_commands(tmp_path, monkeypatch):
    """terminal.E5: what a tool's `requires_env` or a configuration key names isn't in a command's environment."""
    for name in ("NEEDED_BY_TOOL", "NAMED_IN_CONFIG", "PLAIN"):
        monkeypatch.setenv(name, f"value-of-{name}")
    with Runtime(home=tmp_path, config={"agent": {"api_key_env": "NAMED_IN_CONFIG"}}) as rt:
        rt.approvals.notify(lambda request: rt.approvals.resolve(request.id, "once"))
        rt.registry.register("t", "t", {"description": "d"}, lambda args: "x", requires_env=["NEEDED_BY_TOOL"])
        answer = json.loads(rt.call("terminal", {"command": "env"}))
    assert "PLAIN=value-of-PLAIN" in answer["output"]
    assert "NEEDED_BY_TOOL" not in answer["output"]
    assert "NAMED_IN_CONFIG" not in answer["output"]


def test_terminal_cwd_is_where_commands_start(tmp_path):
    """`terminal.cwd` counts where the session has set no directory."""
    there, other = tmp_path / "there", tmp_path / "other"
    there.mkdir()
    other.mkdir()
    with Runtime(home=tmp_path / "home", config={"terminal": {"cwd": str(there)}}) as rt:
        rt.approvals.notify(lambda request: rt.approvals.resolve(request.id, "once"))
        session = rt.session(cwd=other)
        assert json.loads(rt.call("terminal", {"command": "pwd"}))["output"] == f"{there}\n"
        assert json.loads(rt.call("terminal", {"command": "pwd"}, session=session))["output"] == f"{other}\n"
