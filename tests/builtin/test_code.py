"""execute_code: real scripts, their calls, their ends, and what is left of them (terminal.X1, X2; registry.D2)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from mibyan import Block, Runtime, ToolCall

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="found through /proc")
NOTHING = {"type": "object", "properties": {}}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A profile, with a folder of its own for temporary files."""
    (tmp_path / "t").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    return tmp_path / "home"


@pytest.fixture
def runtime(home: Path):
    """A runtime whose person approves everything; its scripts' folders are gone at the end."""
    with Runtime(home=home) as runtime:
        runtime.approvals.notify(lambda request: runtime.approvals.resolve(request.id, "once"))
        runtime.registry.register("echo", "t", {"description": "Says it again.", "parameters": {
            "type": "object", "properties": {"text": {"type": "string"}, "times": {"type": "integer", "default": 1}},
            "required": ["text"], "additionalProperties": False}}, lambda args: {"said": args["text"] * args.get("times", 1)})  # fmt: skip
        yield runtime
    assert [path.name for path in (home.parent / "t").iterdir()] == []
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("mibyan-code")] == []


@pytest.fixture
def session(runtime: Runtime, workspace: Path):
    return runtime.session(cwd=workspace)


@pytest.fixture
def run(runtime: Runtime, session):
    """Run a script; the result's data."""

    def execute(code: str, session=session, **arguments) -> dict:
        return runtime.execute_guarded(ToolCall("execute_code", {"code": code, **arguments}), session=session).data

    return execute


def waiting(inside: threading.Event, over: threading.Event):
    """A handler that tells that it runs, and waits to be let go."""

    def handler(args: dict) -> dict:
        inside.set()
        return {"over": over.wait(30)}

    return handler


def descriptors() -> int:
    """This process's open files."""
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_until(true, seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not true():
        if time.monotonic() > until:
            return False
        threading.Event().wait(0.01)
    return True


def test_X1_a_script_calls_tools(run, workspace: Path) -> None:
    """Results are what their JSON stands for; defaults, positions and keywords work; the working directory is the session's."""
    code = (
        "from mibyan_tools import echo, write_file, call_tool\nimport os\nprint(echo('a'), echo(text='b', times=2))\n"
    )
    code += (
        "write_file('x.txt', 'hi')\nprint(open('x.txt').read(), os.getcwd(), call_tool('echo', {'text': 'c'})['said'])"
    )
    answer = run(code)
    assert answer["output"] == f"{{'said': 'a'}} {{'said': 'bb'}}\nhi {workspace.resolve()} c\n"
    assert (answer["exit_code"], answer["truncated"]) == (0, False)
    assert [(call["name"], call["status"]) for call in answer["calls"]] == [
        ("echo", "ok"),
        ("echo", "ok"),
        ("write_file", "ok"),
        ("echo", "ok"),
    ]
    assert "error" not in answer


def test_X1_a_call_that_fails_raises(run) -> None:
    """`ToolError` has what the result says; the script goes on."""
    code = "from mibyan_tools import echo, ToolError\ntry:\n    echo(5)\nexcept ToolError as e:\n    print(e.error_type, e.status, e.tool, sorted(e.fields))"
    answer = run(code)
    assert answer["output"] == "invalid_arguments error echo ['error', 'error_type', 'violations']\n"
    assert answer["calls"][0]["error_type"] == "invalid_arguments"


def test_X1_every_call_takes_the_pipeline(runtime: Runtime, run) -> None:
    """Hooks see nested calls in the same session and can block them."""
    seen = []
    runtime.add_hook(
        "pre_tool_call",
        lambda tool_name, session_id: (
            seen.append((tool_name, session_id)) or (Block("no") if tool_name == "echo" else None)
        ),
    )
    answer = run("from mibyan_tools import echo\necho('a')")
    assert [name for name, _ in seen] == ["execute_code", "echo"]
    assert len({session for _, session in seen}) == 1
    assert (answer["exit_code"], answer["calls"][0]["status"]) == (1, "blocked")
    assert "mibyan_tools_client.ToolError: no\n" in answer["output"]


def test_X1_only_tools_of_the_session(runtime: Runtime, run) -> None:
    """Scope holds for forged names; an empty set means none; neither scripts in scripts nor what the agent answers."""
    code = "import mibyan_tools as m\nprint(m.__all__)\nfor n in ['read_file', 'execute_code', 'todo_list', 'nonesuch', 'Execute-Code']:\n"
    code += "    try: print(m.call_tool(n))\n    except m.ToolError as e: print(n, e.error_type)"
    with runtime.session(enabled_toolsets=["code"]) as own:
        answer = run(code, session=own)
    assert answer["output"].splitlines() == [
        "['ToolError', 'call_tool']", "read_file tool_not_in_session", "execute_code blocked", "todo_list tool_not_in_session",
        "nonesuch unknown_tool", "Execute-Code unknown_tool",
    ]  # fmt: skip
    assert (answer["calls"], answer["calls_refused"]) == ([], 5)


def test_X1_calls_run_at_once(runtime: Runtime, run) -> None:
    """Four threads of a script wait in four calls at the same time."""
    barrier = threading.Barrier(4)
    runtime.registry.register(
        "meet", "t", {"description": "d", "parameters": NOTHING}, lambda args: {"n": barrier.wait(20)}
    )
    code = "import threading\nfrom mibyan_tools import meet\nfor i in range(4): threading.Thread(target=lambda: print(meet())).start()"
    assert len(run(code)["output"].splitlines()) == 4


def test_X1_fifty_calls(run) -> None:
    """The fifty-first is refused, and said so."""
    code = "from mibyan_tools import echo, ToolError\nfor i in range(52):\n    try: echo('a')\n    except ToolError as e: print(i, e.error_type)"
    answer = run(code)
    assert answer["output"] == "50 limit\n51 limit\n"
    assert (len(answer["calls"]), answer["calls_refused"]) == (50, 2)


def test_X1_tracebacks_have_the_scripts_lines(run) -> None:
    """As if it had been run by itself."""
    answer = run("\n\ndef f():\n    return 1 / 0\n\nf()\n")
    told = [line for line in answer["output"].splitlines() if set(line) - set(" ~^")]  # newer Pythons mark the places
    assert told[:5] == [
        "Traceback (most recent call last):", '  File "execute_code.py", line 6, in <module>', "    f()",
        '  File "execute_code.py", line 4, in f', "    return 1 / 0",
    ]  # fmt: skip
    assert answer["output"].endswith("ZeroDivisionError: division by zero\n")
    assert run("x = (")["output"].startswith('  File "execute_code.py", line 1\n    x = (\n')


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [("import sys; sys.exit(3)", 3), ("import os; os.kill(os.getpid(), 9)", 137), ("import os; os._exit(4)", 4)],
)
def test_X1_the_exit_code_is_data(run, code: str, exit_code: int) -> None:
    """128 + n after signal n; no error."""
    answer = run(code)
    assert (answer["exit_code"], "error" in answer) == (exit_code, False)


def test_X1_the_output_is_bounded(run) -> None:
    """Head and tail, with the total; memory doesn't grow with it."""
    answer = run("for i in range(200000): print(f'line {i:06}')")
    assert answer["truncated"] is True
    assert answer["output"].startswith("line 000000\n")
    assert answer["output"].endswith("line 199999\n")
    assert len(answer["output"]) < 60_000
    assert "of 2,400,000 characters" in answer["output"]


@pytest.mark.parametrize("timeout", [0, -1])
def test_X1_a_timeout_is_seconds(runtime: Runtime, session, timeout: float) -> None:
    """One clear error."""
    result = runtime.execute(ToolCall("execute_code", {"code": "1", "timeout": timeout}), session=session)
    assert (result.status, "greater than 0" in result.error) == ("error", True)


@LINUX
def test_X1_the_whole_tree_ends_at_the_deadline(run, workspace: Path) -> None:
    """Daemons in sessions of their own that have wiped their environment too; the partial output is kept."""
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        open("pid", "w").write(str(os.getpid()))
        os.execve("/bin/sleep", ["sleep", "600"], {})
    os._exit(0)
while not os.path.exists("pid") or not open("pid").read(): time.sleep(0.01)
print("begun")
time.sleep(600)
"""
    answer = run(code, timeout=1)
    assert (answer["error_type"], answer["output"]) == ("timeout", "begun\n")
    assert not alive(int((workspace / "pid").read_text()))


@LINUX
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_X1_who_ends_the_watch_doesnt_get_away(run, workspace: Path, number: int) -> None:
    """The process that watches is killed or stopped by the script: the host ends it all the same."""
    code = f"import os, time\nopen('pid', 'w').write(str(os.getpid()))\nos.kill(os.getppid(), {int(number)})\ntime.sleep(600)"
    assert run(code, timeout=0.8)["exit_code"] > 128
    assert not alive(int((workspace / "pid").read_text()))


def test_X1_an_interrupt_ends_script_and_calls(runtime: Runtime, session, workspace: Path) -> None:
    """`session.interrupt()`: the status is cancelled, and nothing of the script goes on."""
    inside, over = threading.Event(), threading.Event()
    runtime.registry.register("wait", "t", {"description": "d", "parameters": NOTHING}, waiting(inside, over))
    results = []
    code = "from mibyan_tools import wait\ntry: wait()\nfinally: open('marker', 'w').close()"
    thread = threading.Thread(
        target=lambda: results.append(
            runtime.execute_guarded(ToolCall("execute_code", {"code": code}), session=session)
        )
    )
    thread.start()
    assert inside.wait(20)
    session.interrupt()
    thread.join(20)
    over.set()
    assert results[0].status == "cancelled"
    assert wait_until(lambda: not list((workspace.parent / "t").iterdir()))


def test_X1_calls_end_with_the_script(runtime: Runtime, run) -> None:
    """A call that a script leaves running is cancelled when it ends."""
    inside, over = threading.Event(), threading.Event()
    runtime.registry.register("wait", "t", {"description": "d", "parameters": NOTHING}, waiting(inside, over))
    runtime.registry.register(
        "ready", "t", {"description": "d", "parameters": NOTHING}, lambda args: {"in": inside.wait(20)}
    )
    code = "import threading, os\nfrom mibyan_tools import wait, ready\nthreading.Thread(target=wait, daemon=True).start()\nready()"
    answer = run(code)
    over.set()
    assert {call["name"]: call["status"] for call in answer["calls"]} == {"wait": "cancelled", "ready": "ok"}


def test_X1_secrets_stay(run, monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E5: neither in the environment nor in an argument."""
    monkeypatch.setenv("MY_API_KEY", "planted-secret-value")
    monkeypatch.setenv("PLAIN", "seen")
    answer = run(
        "import os, sys\nprint(dict(os.environ), sys.argv, sys.orig_argv, open('/proc/self/cmdline').read())"
        if sys.platform == "linux"
        else "import os; print(dict(os.environ))"
    )
    assert "seen" in answer["output"]
    assert "planted-secret-value" not in answer["output"]
    assert "MY_API_KEY" not in answer["output"]


def test_X1_the_working_directory_isnt_imported_from(run, workspace: Path) -> None:
    """A `json.py` that lies about is no module of the script's."""
    (workspace / "json.py").write_text("raise SystemExit('hijacked')")
    assert run("import json; print(json.dumps(1))")["output"] == "1\n"


HOSTILE = {
    "garbage": "for i in range(50):\n    s = connect(); s.sendall(os.urandom(5000) if i % 2 else b'\\0\\0\\0\\5hello'); print(gone(s)) if i > 47 else s.close()",
    "forged token": "s = connect(); t = b'0' * 64; s.sendall(len(t).to_bytes(4, 'big') + t); print(gone(s))",
    "huge frame": "s = connect(); s.sendall(len(token).to_bytes(4, 'big') + token + b'\\xff\\xff\\xff\\xff'); print(gone(s))",
    "no call": "for body in (b'[]', b'nonsense', b'{\"id\": [], \"name\": 1}', b'[' * 100000):\n    s = connect(); s.sendall(len(token).to_bytes(4, 'big') + token + len(body).to_bytes(4, 'big') + body); print(gone(s))",
    "many connections": "held = []\nfor i in range(3000):\n    try: held.append(connect())\n    except OSError: held.clear()\nheld.clear()\nimport time; time.sleep(1)  # the host has to see that they are gone",
    "unread": "s = connect(); body = b'{\"id\": 1, \"name\": \"x\", \"arguments\": {}}'; s.sendall(len(token).to_bytes(4, 'big') + token)\ntry:\n    for i in range(100000): s.sendall(len(body).to_bytes(4, 'big') + body)\nexcept OSError: print('gone')",
    "closed descriptors": "os.closerange(3, 256)",
    "a folder nobody may read": "d = os.path.dirname(_mibyan_connection.path) + '/a/b'; os.makedirs(d); open(d + '/f', 'w').close(); os.chmod(d, 0); os.symlink('/etc', os.path.dirname(d) + '/link')",
}  # fmt: skip
BEGIN = """
import os, socket, _mibyan_connection
token = _mibyan_connection.token.encode()
def connect():
    s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(_mibyan_connection.path); return s
def gone(s):
    try: return s.recv(1) == b''
    except ConnectionError: return True
"""


@pytest.mark.parametrize("what", HOSTILE)
def test_X1_a_hostile_script_harms_nobody(runtime: Runtime, run, what: str) -> None:
    """What isn't of the protocol ends its connection; calls go on as before, and nothing stays open."""
    run("print()")
    before = descriptors()
    answer = run(BEGIN + HOSTILE[what] + "\nfrom mibyan_tools import echo\nprint(echo('fine'))", timeout=60)
    assert answer["exit_code"] == 0, answer["output"]
    assert answer["output"].endswith("{'said': 'fine'}\n")
    assert "False" not in answer["output"]
    assert wait_until(lambda: descriptors() <= before)


@LINUX
def test_X1_the_socket_is_this_users_only(run) -> None:
    """0600 in a folder of 0700."""
    code = "import os, _mibyan_connection as c\nprint(oct(os.stat(c.path).st_mode & 0o777), oct(os.stat(os.path.dirname(c.path)).st_mode & 0o777))"
    assert run(code)["output"] == "0o600 0o700\n"


@LINUX
def test_X1_a_killed_host_leaves_nothing(home: Path, workspace: Path) -> None:
    """After kill -9 of the host the script and its daemon end, and its folder goes."""
    code = "import os, time\nif os.fork() == 0: os.setsid()\nopen(f'pid{os.getpid()}', 'w').close()\ntime.sleep(600)"
    host = (
        "import sys, tempfile; from mibyan import Runtime\ntempfile.tempdir = sys.argv[2]\nrt = Runtime(home=sys.argv[1])\n"
        "rt.approvals.notify(lambda r: rt.approvals.resolve(r.id, 'once'))\nrt.call('execute_code', {'code': sys.argv[3]})"
    )
    process = subprocess.Popen([sys.executable, "-c", host, str(home), str(home.parent / "t"), code], cwd=workspace)
    try:
        assert wait_until(lambda: len(list(workspace.glob("pid*"))) == 2, 30)
    finally:
        process.kill()
        process.wait()
    pids = [int(path.name[3:]) for path in workspace.glob("pid*")]
    assert wait_until(lambda: not any(map(alive, pids)))
    assert wait_until(lambda: not list((home.parent / "t").iterdir()))


def test_X2_a_script_is_judged_before_it_runs(home: Path, workspace: Path) -> None:
    """Without a person what is dangerous doesn't run, what is safe does; what is hardline isn't even asked about."""
    with Runtime(home=home) as runtime:
        session = runtime.session(cwd=workspace)
        call = lambda code: runtime.execute(ToolCall("execute_code", {"code": code}), session=session)
        assert call("print(1)").status == "ok"
        assert call("import os; os.system('touch marker')").status == "denied"
        runtime.approvals.notify(lambda request: runtime.approvals.resolve(request.id, "once"))
        assert call("import shutil; open('marker', 'w'); shutil.rmtree('/')").status == "blocked"
        assert not (workspace / "marker").exists()


def test_X2_the_person_sees_script_and_findings(home: Path, workspace: Path) -> None:
    """The question has both."""
    asked = []
    with Runtime(home=home) as runtime:
        runtime.approvals.notify(lambda request: (asked.append(request), runtime.approvals.resolve(request.id, "deny")))
        runtime.call("execute_code", {"code": "import os\nos.system('ls')"}, session=runtime.session(cwd=workspace))
    told = f"{asked[0].text} {asked[0].reason} {asked[0].findings}"
    assert "os.system" in told
    assert "run another program from Python" in told


def test_D2_the_schema_names_what_survived(runtime: Runtime) -> None:
    """registry.D2: of the tools that the model sees; the same bytes each time."""

    def described(*toolsets: str) -> str:
        shown = {d["function"]["name"]: d["function"] for d in runtime.definitions(list(toolsets))}
        return shown["execute_code"]["description"]

    assert described("code", "files", "planning").endswith(
        "Scripts can call: patch, read_file, search_files, write_file."
    )
    assert described("code").endswith("There are no tools that scripts can call now.")
    assert json.dumps(runtime.definitions()) == json.dumps(runtime.definitions())
    assert "echo" in described("code", "t")


def test_D2_stubs_are_data(runtime: Runtime, run) -> None:
    """Names that Python can't have, and texts that try to be code: functions with signatures and docstrings."""
    schema = {"description": 'x"""\nraise SystemExit("injected")\n"""', "parameters": {"type": "object", "required": ["class", "b"], "properties": {
        "class": {"type": "string"}, "a=print(666)": {"type": "string"}, "b": {"type": ["integer", "null"]},
        "c": {"enum": ["x", "y"], "default": "y"}, "d": {"type": "array", "items": {"type": "string"}}}}}  # fmt: skip
    runtime.registry.register("my-tool", "t", schema, lambda args: {"given": sorted(args)})
    runtime.registry.register("import", "t", {"description": "d", "parameters": NOTHING}, lambda args: {"ok": True})
    code = "import inspect\nfrom mibyan_tools import my_tool, import_\nprint(inspect.signature(my_tool))\nprint(my_tool(1, **{'class': 'k'}), import_())"
    answer = run(code)
    first, second = answer["output"].splitlines()
    assert first == """(b: 'int | None', c: "Literal['x', 'y']" = 'y', d: 'list[str]' = ..., **more: 'Any') -> 'Any'"""
    assert second == "{'given': ['b', 'c', 'class']} {'ok': True}"
