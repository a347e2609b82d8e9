"""terminal.E1, E2, E4: each task's environment in its session, which backend it is, and what hooks do with output."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

import mibyan
from mibyan.environments import BackendError, CommandProcess, Environment
from mibyan.environments.running import HeadAndTail


class Elsewhere(Environment):
    """A backend that only says what it was made with; it runs nothing."""

    name = "elsewhere"
    made: ClassVar[list[Elsewhere]] = []

    def __init__(self, context) -> None:
        super().__init__(context)
        self.directories = [context.cwd]
        self.closed = 0
        Elsewhere.made.append(self)

    @property
    def cwd(self) -> str:
        return str(self.directories[-1])

    def set_cwd(self, path: str) -> None:
        self.directories.append(path)

    def spawn(self, command: str, **options: object) -> CommandProcess:
        raise BackendError("nobody is there", hint="Wait.")

    def upload(self, source: Path, target: str) -> None:
        raise BackendError("nobody is there")

    def download(self, source: str, target: Path) -> None:
        raise BackendError("nobody is there")

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Callable[..., mibyan.Runtime]]:
    """`runtime(**terminal)`: a runtime that has these settings and lets every command run."""
    made: list[mibyan.Runtime] = []

    def make(**terminal: object) -> mibyan.Runtime:
        rt = mibyan.Runtime(home=tmp_path / "home", config={"terminal": terminal})
        rt.approvals.notify(lambda request: rt.approvals.resolve(request.id, "once"))
        made.append(rt)
        return rt

    yield make
    for rt in made:
        rt.close()


@pytest.fixture
def elsewhere(runtime) -> mibyan.Runtime:
    """A runtime whose host has a backend of its own."""
    Elsewhere.made = []
    rt = runtime(backend="elsewhere")
    rt.add_hook("mibyan_terminal_environments", lambda: {"elsewhere": f"{__name__}:Elsewhere"})
    return rt


def terminal(rt: mibyan.Runtime, command: str, session=None, task_id=None, **arguments: object) -> dict:
    return json.loads(rt.call("terminal", {"command": command, **arguments}, session=session, task_id=task_id))


def test_each_task_has_its_own_environment(elsewhere, tmp_path: Path) -> None:
    """terminal.E2: one for each task, made once, told of the directories that the host sets, ended with the session."""
    session = elsewhere.session(cwd=tmp_path)
    own, task = session.environment(), session.environment("t")
    assert own is session.environment()
    assert own is not task
    assert (own.context.session_id, task.context.task_id) == (session.id, "t")
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    session.set_cwd("a", "t")
    assert (session.environment().cwd, session.environment("t").cwd) == (str(tmp_path), str(tmp_path / "a"))
    session.set_cwd(tmp_path / "b")
    assert (session.environment().cwd, session.environment("t").cwd) == (str(tmp_path / "b"), str(tmp_path / "a"))
    assert session.environment().directories == [str(tmp_path), str(tmp_path / "b")]
    session.close()
    session.close()
    assert [one.closed for one in Elsewhere.made] == [1, 1]
    with pytest.raises(BackendError, match="session is closed"):
        session.environment()


def test_a_runtime_ends_the_environments_of_its_sessions(elsewhere) -> None:
    """Also the default session's."""
    assert terminal(elsewhere, "true")["error"] == "nobody is there"
    elsewhere.close()
    assert [one.closed for one in Elsewhere.made] == [1]


@pytest.mark.parametrize(("name", "hint"), [("locale", "Did you mean 'local'"), ("nowhere", "There are: ")])
def test_an_unknown_backend_is_one_error(runtime, name: str, hint: str) -> None:
    """terminal.E1: there is never a silent fall-back to local."""
    answer = terminal(runtime(backend=name), "true")
    assert f"No plugin has the terminal backend '{name}'" in answer["error"]
    assert hint in answer["hint"]


def test_a_backend_of_a_wrong_kind_is_an_error(runtime) -> None:
    """What a plugin names must be an environment."""
    rt = runtime(backend="wrong")
    rt.add_hook("mibyan_terminal_environments", lambda: {"wrong": "builtins:repr"})
    assert "isn't an Environment, but str" in terminal(rt, "true")["error"]


def test_state_stays_in_a_task_of_a_session(runtime, tmp_path: Path) -> None:
    """terminal.E2: between calls of the same task, nowhere else; `set_cwd` overrides, `workdir` is for one call."""
    rt = runtime(sandbox="none", sandbox_network=True)
    (tmp_path / "sub").mkdir()
    session, other = rt.session(cwd=tmp_path), rt.session(cwd=tmp_path)
    answer = terminal(rt, "cd sub; export A=1; exit 3", session)
    assert (answer["exit_code"], answer["cwd"]) == (3, str(tmp_path / "sub"))
    assert terminal(rt, "pwd; echo $A", session)["output"] == f"{tmp_path}/sub\n1\n"
    assert terminal(rt, "pwd; echo $A", session, task_id="t")["output"] == f"{tmp_path}\n\n"
    assert terminal(rt, "pwd; echo $A", other)["output"] == f"{tmp_path}\n\n"
    assert terminal(rt, "pwd; echo $A", session, workdir="/")["output"] == "/\n1\n"
    session.set_cwd(tmp_path)
    assert terminal(rt, "pwd; echo $A", session)["output"] == f"{tmp_path}\n1\n"


def test_a_long_output_is_whole_in_a_file(runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E4: the answer names it; only its owner reads it, and it has no secrets."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-a-secret-value")
    answer = terminal(runtime(), "seq 1 30000; echo sk-this-is-a-secret-'value'; seq 1 30000")
    path = Path(answer["full_output"])
    assert str(path) in answer["output"]
    assert path.stat().st_mode & 0o777 == 0o600
    text = path.read_text()
    assert "secret-value" not in text
    lines = text.split("\n")
    numbers = [str(number) for number in range(1, 30001)]
    assert (lines[:30000], lines[30001:]) == (numbers, [*numbers, ""])
    assert "full_output" not in terminal(runtime(), "seq 1 3")


def test_hooks_see_the_cleaned_output_before_it_is_bounded(runtime) -> None:
    """`transform_terminal_output`: one after another, and what they take out is in no file."""
    rt, seen = runtime(), []

    def transform_terminal_output(command, output, returncode, task_id, environment):
        seen.append((command, len(output), returncode, task_id, environment))
        return output.replace("100000\n", "HIDDEN\n")

    rt.add_hook("transform_terminal_output", transform_terminal_output)
    rt.add_hook("transform_terminal_output", lambda output: output.replace("HIDDEN", "hidden"))
    command = r"printf '\033[1mred\033[0m\n'; seq 1 100000; exit 3"
    answer = terminal(rt, command, task_id="t")
    assert seen == [(command, 4 + 588895, 3, "t", "local")]
    assert answer["output"].startswith("red\n1\n")
    assert answer["output"].endswith("99999\nhidden\n")
    assert Path(answer["full_output"]).read_text().endswith("99999\nhidden\n")


def test_a_hook_that_fails_changes_nothing(runtime) -> None:
    """dispatch.H3: it is put into the report, and the output is what it was."""
    rt = runtime()
    rt.add_hook("transform_terminal_output", lambda output: 1 / 0)
    rt.add_hook("transform_terminal_output", lambda output: 7)
    assert terminal(rt, "echo as it was")["output"] == "as it was\n"
    assert any("transform_terminal_output" in problem.reason for problem in rt.report().problems)


@pytest.mark.parametrize("size", [1, 7, 100])
def test_head_and_tail(size: int) -> None:
    """Of what comes in pieces of any size the first 40 and the last 60 hundredths stay."""
    data = bytes(range(256)) * 2
    kept = HeadAndTail(100)
    for start in range(0, len(data), size):
        kept.write(data[start : start + size])
    assert kept.kept() == (data[:40] + data[-60:], len(data) - 100)
    small = HeadAndTail(1000)
    small.write(data)
    assert small.kept() == (data, 0)


def test_the_sandbox_is_the_operators_choice(tmp_path: Path) -> None:
    """terminal.sandbox: a backend is told of it."""
    config = {"terminal": {"sandbox": "landlock", "sandbox_network": True, "backend": "elsewhere"}}
    with mibyan.Runtime(home=tmp_path / "home", config=config) as rt:
        rt.add_hook("mibyan_terminal_environments", lambda: {"elsewhere": f"{__name__}:Elsewhere"})
        settings = rt.session().environment().context.settings
        assert (settings.sandbox, settings.sandbox_network) == ("landlock", True)
