"""terminal: real commands in the foreground; their output, their end, and what is left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mibyan import ToolError
from mibyan_builtin import terminal as plugin
from mibyan_builtin.terminal import command as commands
from mibyan_builtin.terminal import terminal, tree

LINUX = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="found through /proc")


def alive(pid: int) -> bool:
    """Whether a process runs (one that waits to be reaped doesn't)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def wait_until(true, seconds: float = 10) -> bool:
    """Wait for something that is about to be; bounded."""
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        threading.Event().wait(0.01)
    return True


def test_a_command_runs_in_the_working_directory(context, workspace: Path) -> None:
    """terminal.T1: output, exit code, cwd and duration; no error."""
    answer = terminal(context, "echo hello; echo problem >&2; pwd")
    assert answer["output"] == f"hello\nproblem\n{workspace.resolve()}\n"
    assert (answer["exit_code"], answer["cwd"], answer["truncated"]) == (0, str(workspace), False)
    assert 0 <= answer["duration"] < 10
    assert "error" not in answer


@pytest.mark.parametrize(
    ("command", "exit_code", "meaning"),
    [
        ("exit 3", 3, None),
        ("grep x /dev/null", 1, "nothing matched; that isn't a failure"),
        ("kill -9 $$", 137, "ended by SIGKILL"),
        ("kill -TERM $$", 143, "ended by SIGTERM"),
        ("mibyan-nonesuch 2>/dev/null", 127, "the program wasn't found"),
        ("/dev/null 2>/dev/null", 126, "the program was found but can't be executed"),
        ("if true", 2, None),
    ],
)
def test_an_exit_code_is_no_error(context, command: str, exit_code: int, meaning: str | None) -> None:
    """terminal.T1: a command's own failure is data; signals are 128 + n; some codes have a meaning in words."""
    answer = terminal(context, command)
    assert (answer["exit_code"], answer.get("exit_code_meaning")) == (exit_code, meaning)
    assert "error" not in answer


def test_it_is_bash_where_there_is_bash(context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bash runs the command, and sh where there is none."""
    assert terminal(context, "a=(1 2 3); echo ${#a[@]}")["output"] == "3\n"
    monkeypatch.setattr(commands.shutil, "which", lambda name: None if name == "bash" else f"/bin/{name}")
    assert terminal(context, "echo $0")["output"] == "/bin/sh\n"


def test_stdout_and_stderr_come_in_order(context) -> None:
    """terminal.E2: what was written first comes first."""
    answer = terminal(context, "for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done")
    assert answer["output"] == "".join(f"out {i}\nerr {i}\n" for i in range(1, 6))


def test_standard_input_is_given(context) -> None:
    """terminal.E2: text goes in as UTF-8; without any there is an end at once, never a wait for the host's own."""
    assert terminal(context, "cat", stdin="héllo\n\tשלום")["output"] == "héllo\n\tשלום"
    assert terminal(context, "cat; echo end")["output"] == "end\n"
    assert terminal(context, "cat", stdin="")["output"] == ""


def test_a_large_input_is_given_whole(context) -> None:
    """Input and output flow at the same time, and a command that doesn't read its input isn't waited for."""
    text = "0123456789\n" * 300_000
    assert terminal(context, "wc -c", stdin=text)["output"].strip() == str(len(text))
    assert terminal(context, "cat | wc -c; exec 0<&-; echo x", stdin=text)["exit_code"] == 0
    assert terminal(context, "exec 0<&-; echo closed", stdin=text)["output"] == "closed\n"


@pytest.mark.parametrize(("workdir", "start"), [("missing", True), ("/missing", False), ("~/missing", False)])
def test_where_relative_directories_start_is_said_for_relative_ones(
    context, workspace: Path, workdir: str, start: bool
) -> None:
    """terminal.T3: the hint says where relative directories start, if that matters."""
    with pytest.raises(ToolError) as caught:
        terminal(context, "true", workdir=workdir)
    assert (str(workspace) in str(caught.value.hint)) is start


def test_workdir_is_for_one_command(context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E2: relative, absolute and home directories; the next command runs where it did before."""
    (workspace / "sub dir").mkdir()
    monkeypatch.setenv("HOME", str(workspace / "sub dir"))
    for path in ("sub dir", str(workspace / "sub dir"), "~", "./sub dir/../sub dir"):
        answer = terminal(context, "pwd", workdir=path)
        assert answer["output"] == f"{workspace.resolve()}/sub dir\n"
        assert answer["cwd"] == str(workspace / "sub dir")
    assert terminal(context, "pwd")["cwd"] == str(workspace)


def test_a_vanished_working_directory_falls_back(make_context, workspace: Path) -> None:
    """terminal.E2: the nearest parent takes its place, and the answer says so."""
    answer = terminal(make_context(cwd=workspace / "gone/deep"), "pwd")
    assert answer["output"] == f"{workspace.resolve()}\n"
    assert "doesn't exist any more" in answer["note"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"command": ""}, "empty"),
        ({"command": " \n\t"}, "empty"),
        ({"command": "a\0b"}, "NUL"),
        ({"command": "a\ud800"}, "surrogate"),
        ({"command": "x" * 131_072}, "131,072 bytes long"),
        ({"command": ": " + "x" * 10_000_000}, "the limit is 131,071"),
        ({"command": "true", "timeout": 0}, "greater than 0; got 0"),
        ({"command": "true", "timeout": -5}, "got -5"),
        ({"command": "true", "timeout": float("nan")}, "got nan"),
        ({"command": "true", "timeout": float("inf")}, "got inf"),
        ({"command": "true", "timeout": True}, "got True"),
        ({"command": "true", "timeout": "soon"}, "got 'soon'"),
        ({"command": "true", "workdir": "missing"}, "missing doesn't exist"),
        ({"command": "true", "workdir": "/missing"}, "/missing doesn't exist"),
        ({"command": "true", "workdir": "file"}, "file isn't a directory"),
        ({"command": "true", "workdir": ""}, "workdir is empty"),
        ({"command": "true", "workdir": "a\0"}, "NUL"),
        ({"command": "true", "workdir": "\ud800"}, "surrogate"),
        ({"command": "true", "stdin": "\udfff"}, "surrogate"),
        ({"command": "true", "stdin": "x" * (16 * 1024 * 1024 + 1)}, "the limit is 16,777,216"),
        ({"command": "true", "background": True}, "background: not available yet"),
        (
            {"command": "true", "notify_on_complete": True, "watch_patterns": ["x"]},
            "notify_on_complete and watch_patterns",
        ),
    ],
)
def test_bad_arguments_start_nothing(
    context, workspace: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict, message: str
) -> None:
    """terminal.T3: one clear sentence, and no process."""
    (workspace / "file").touch()
    monkeypatch.setattr(commands, "_start", lambda *args: pytest.fail("it was started"))
    with pytest.raises(ToolError, match=message):
        terminal(context, **arguments)


def test_the_longest_command_runs(context) -> None:
    """The limit is the one that the operating system has."""
    assert terminal(context, "#" + "x" * 131_070)["exit_code"] == 0


def test_a_command_that_cant_be_started_gets_a_sentence(make_context, workspace: Path, monkeypatch) -> None:
    """An environment that is too large for the system is told, without a traceback."""
    for i in range(40):
        monkeypatch.setenv(f"LARGE_{i}", "x" * 120_000)
    with pytest.raises(ToolError, match="can't be started in"):
        terminal(make_context(), "true")


# Time --------------------------------------------------------------------------------------------------------------


def test_a_timeout_keeps_the_output(context) -> None:
    """terminal.T1a: error, error_type and what was written until then."""
    answer = terminal(context, "echo begun; sleep 600", timeout=0.5)
    assert answer["output"] == "begun\n"
    assert answer["error_type"] == "timeout"
    assert "timed out" in answer["error"]
    assert answer["duration"] < 30


def test_the_operators_timeout_is_the_default(make_context) -> None:
    """Without its own, a command gets terminal.timeout."""
    context = make_context()
    context.settings.terminal.timeout = 0.3
    assert terminal(context, "sleep 600")["error_type"] == "timeout"


def test_a_shorter_deadline_of_the_call_counts(make_context) -> None:
    """A call that is answered earlier anyway ends its command in time to keep the output."""
    started = time.monotonic()
    answer = terminal(make_context(seconds=1.0), "echo begun; sleep 600", timeout=100)
    assert time.monotonic() - started < 30
    assert (answer["output"], answer["error_type"]) == ("begun\n", "timeout")


@pytest.mark.parametrize(
    ("arguments", "seconds"),
    [
        ({}, None), ({"timeout": None}, None), ({"timeout": 10}, 15.0), ({"timeout": 0.5}, 5.5),
        ({"timeout": -10}, None), ({"timeout": float("nan")}, None), ({"timeout": "x"}, None),
    ],
)  # fmt: skip
def test_the_call_gets_five_seconds_more(arguments: dict, seconds: float | None) -> None:
    """dispatch.B2: the tool's deadline is its own timeout argument and 5 s."""
    assert plugin._timeout(arguments) == seconds


TREES = {
    "a child": "sleep 600 & echo $! > pid; wait",
    "a pipeline": "sh -c 'echo $$ > pid; exec sleep 600' | cat",
    "a session of its own": "setsid sh -c 'echo $$ > pid; exec sleep 600' & sleep 600",
    "an orphan": "(setsid sh -c 'echo $$ > pid; exec sleep 600' </dev/null >/dev/null 2>&1 &); sleep 600",
    "one that ignores the wish": "trap '' TERM HUP INT; echo $$ > pid; while :; do sleep 0.05; done",
    "one that is stopped": "sh -c 'echo $$ > pid; kill -STOP $$; sleep 600'; sleep 600",
    "without an environment": "env -i sh -c 'echo $$ > pid; exec sleep 600' & sleep 600",
    "one that starts others": "f() { sleep 0.01 & f2; }; f2() { sleep 600 & echo $! > pid; while :; do sleep 0.02 & done; }; f",
}


@LINUX
@pytest.mark.parametrize("command", TREES.values(), ids=TREES)
@pytest.mark.parametrize("ended_by", ["timeout", "cancelled"])
def test_the_whole_tree_ends(make_context, workspace: Path, command: str, ended_by: str) -> None:
    """terminal.E3: deadline and interrupt end every process of the command, wherever it went."""
    if "setsid" in command and not commands.shutil.which("setsid"):
        pytest.skip("there is no setsid here")
    pid = workspace / "pid"
    begun = time.monotonic()

    def cancelled() -> bool:
        return ended_by == "cancelled" and pid.exists() and pid.read_text().endswith("\n")

    context = make_context(cancelled=cancelled)
    answer = terminal(context, command, timeout=2 if ended_by == "timeout" else 60)
    assert answer["error_type"] == ended_by
    assert time.monotonic() - begun < 30
    assert not alive(int(pid.read_text()))
    assert terminal(make_context(), "echo usable")["output"] == "usable\n"


@LINUX
def test_whom_it_has_seen_once_it_doesn_t_lose() -> None:
    """terminal.E3: a process that ends or becomes another program has no environment for a moment, and no parent may be left."""
    with subprocess.Popen(["sleep", "600"], env={}, start_new_session=True) as process:
        started = next(each.started for each in tree._processes() if each.pid == process.pid)
        nobody = 2**22 + 1
        assert tree._members(nobody, "mark", set()) == set()
        assert tree._members(nobody, "mark", {(process.pid, started + 1)}) == set()
        assert tree._members(nobody, "mark", {(process.pid, started)}) == {process.pid}
        process.kill()
        process.wait()
        assert tree._members(nobody, "mark", {(process.pid, started)}) == set()


@LINUX
@pytest.mark.parametrize(
    "command",
    [
        "sleep 0.6; touch marker",
        "sh -c 'sleep 0.6'; touch marker",
        "(sleep 0.6; touch marker) & wait",
        "sleep 0.6 | cat; touch marker",
    ],
)
def test_nothing_goes_on_after_the_end(context, workspace: Path, command: str) -> None:
    """terminal.E3: a shell whose program is ended doesn't go on to its next command."""
    for _ in range(5):
        assert terminal(context, command, timeout=0.1)["error_type"] == "timeout"
    terminal(context, "sleep 0.7")
    assert not (workspace / "marker").exists()


def test_an_exception_ends_the_tree(make_context, workspace: Path) -> None:
    """KeyboardInterrupt in the middle leaves the tool and no process."""
    pid = workspace / "pid"

    def interrupt() -> bool:
        if pid.exists() and pid.read_text().endswith("\n"):
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        terminal(make_context(cancelled=interrupt), "echo $$ > pid; exec sleep 600")
    assert not alive(int(pid.read_text()))


def test_a_grandchild_that_holds_the_pipe_isnt_waited_for(context, workspace: Path) -> None:
    """The answer comes when the command has ended; what it left running goes on."""
    answer = terminal(context, "sleep 600 & echo $!; echo done", timeout=60)
    pid = int(answer["output"].split()[0])
    try:
        assert answer["output"].endswith("done\n")
        assert answer["duration"] < 20
        assert "error" not in answer
        assert alive(pid)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_grandchild_that_keeps_writing_isnt_waited_for(context) -> None:
    """Output without an end doesn't keep the answer."""
    answer = terminal(context, "yes & echo $! >&2; sleep 0.1", timeout=60)
    assert answer["duration"] < 20
    assert answer["exit_code"] == 0


def test_nothing_stays_open(context) -> None:
    """No descriptor and no child is left, however a command ends."""
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("descriptors can't be counted here")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for command, timeout in [("true", 5), ("exit 1", 5), ("sleep 60", 0.1), ("cat", 5), ("sleep 0.5 & true", 5)]:
        terminal(context, command, timeout=timeout, stdin="x" if command == "cat" else None)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_several_threads_run_commands_at_once(context) -> None:
    """Each gets its own output, and none holds up another."""
    results: dict[int, str] = {}

    def run(number: int) -> None:
        results[number] = terminal(context, f"sleep 0.2; echo {number}")["output"]

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == {number: f"{number}\n" for number in range(8)}


# Output ------------------------------------------------------------------------------------------------------------


def test_much_output_is_bounded(context) -> None:
    """terminal.E4: the beginning and the end are kept, and a marker tells the totals."""
    answer = terminal(context, "seq 1 200000")
    assert answer["truncated"] is True
    assert answer["output"].startswith("1\n2\n3\n")
    assert answer["output"].endswith("199999\n200000\n")
    assert "of 1,288,895 characters (200,000 lines in all) left out" in answer["output"]
    assert len(answer["output"]) < plugin.MAX_OUTPUT + 200


def test_endless_output_takes_no_memory(context) -> None:
    """A flood is bounded while it comes."""
    import tracemalloc

    tracemalloc.start()
    try:
        answer = terminal(context, "yes 0123456789012345678901234567890", timeout=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert answer["error_type"] == "timeout"
    assert peak < 10_000_000


def test_bytes_of_any_kind_are_taken(context) -> None:
    """What isn't UTF-8 is replaced; what steers a terminal is left out."""
    assert terminal(context, r"printf 'a\377b\000c\n'")["output"] == "a\ufffdbc\n"
    assert terminal(context, r"printf '\033[1;31mred\033[0m\n'")["output"] == "red\n"
    assert terminal(context, r"printf '10%%\r50%%\r100%%\n'")["output"] == "100%\n"
    assert terminal(context, "head -c 300000 /dev/urandom")["exit_code"] == 0


def test_characters_come_whole(context) -> None:
    """terminal.E2: UTF-8 that is split over writes is put together."""
    script = "import os,time\nfor b in 'שלום é 🌦\\n'.encode(): os.write(1, bytes([b])); time.sleep(0.002)"
    assert terminal(context, f'{sys.executable} -c "{script}"')["output"] == "שלום é 🌦\n"


# Secrets and questions -----------------------------------------------------------------------------------------------


def test_secrets_dont_reach_commands(make_context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E5: by their names, by the configuration; env_passthrough names exceptions; no shell file is read."""
    (workspace / "rc").write_text("export LEAK=leaked\n")
    for name in ("SOME_API_KEY", "TOKEN", "db_password", "PLAIN", "MY_MODEL"):
        monkeypatch.setenv(name, "value-of-it")
    monkeypatch.setenv("BASH_ENV", str(workspace / "rc"))
    monkeypatch.setenv("ENV", str(workspace / "rc"))
    command = 'echo "$SOME_API_KEY,$TOKEN,$db_password,$PLAIN,$LEAK,$BASH_ENV,$OPENAI_API_KEY"'
    assert terminal(make_context(), command)["output"] == ",,,value-of-it,,,\n"
    assert terminal(make_context(passthrough=["TOKEN"]), command)["output"] == ",value-of-it,,value-of-it,,,\n"


def test_no_shell_file_is_read_over_ssh(make_context, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E5: Debian's bash would read ~/.bashrc for a command that it thinks came over ssh."""
    (workspace / ".bashrc").write_text("export LEAK=leaked\n")
    monkeypatch.setenv("HOME", str(workspace))
    monkeypatch.setenv("SSH_CLIENT", "::1 1 22")
    monkeypatch.delenv("SHLVL", raising=False)
    assert terminal(make_context(), 'echo "[$LEAK]"')["output"] == "[]\n"


def test_a_process_that_cant_be_ended_isnt_waited_for(context, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that another user runs (sudo) can't be ended; the answer comes all the same."""
    pids = []
    monkeypatch.setattr(commands, "PATIENCE", 0.1)
    monkeypatch.setattr(commands, "end_tree", lambda pid, mark, grace: pids.append(pid))
    try:
        with pytest.warns(ResourceWarning):
            answer = terminal(context, "exec sleep 600", timeout=0.1)
    finally:
        os.kill(pids[0], signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(pids[0], 0)
    assert (answer["error_type"], answer["exit_code"]) == ("timeout", 137)


@LINUX
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 3])
def test_a_signal_to_the_program_leaves_no_process(workspace: Path, tmp_path: Path, number: int, times: int) -> None:
    """terminal.E3: Ctrl-C, also an impatient one, ends the whole tree, though nothing in it heeds SIGINT or SIGTERM."""
    pids = workspace / "pids"
    os.mkfifo(pids)
    command = "trap '' INT TERM; (setsid sh -c 'echo $$ >&3; sleep 300; sleep 300' 3>&3 &) ; echo $$ >&3; sleep 300; sleep 300"
    words = [sys.executable, "-m", "mibyan", "call", "terminal", f"command=exec 3>{pids}; {command}", "--yes"]
    process = subprocess.Popen(
        words,
        cwd=workspace,
        env={**os.environ, "MIBYAN_HOME": str(tmp_path / "home")},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with pids.open() as told:
            tree = [int(told.readline()), int(told.readline())]
        for _ in range(times):
            process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait(60)
    assert process.returncode == 128 + number
    assert err.count("\n") == 1
    assert wait_until(lambda: not any(alive(pid) for pid in tree))
