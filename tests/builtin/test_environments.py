"""terminal.E1: the conformance suite over the backend `local`, plain and in each sandbox, and what is local's own."""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from mibyan.environments import BackendError, EnvironmentContext
from mibyan.testing.environments import EnvironmentConformance
from mibyan_builtin.terminal import command as commands
from mibyan_builtin.terminal import sandbox as sandboxes
from mibyan_builtin.terminal.exports import read_exports
from mibyan_builtin.terminal.local import LocalEnvironment


def settings(**given: object) -> SimpleNamespace:
    return SimpleNamespace(**{"cwd": None, "env_passthrough": [], "sandbox": "none", "sandbox_network": False, **given})


def local(cwd: object = None, **given: object) -> LocalEnvironment:
    return LocalEnvironment(EnvironmentContext(cwd=None if cwd is None else str(cwd), settings=settings(**given)))


def missing(kind: str) -> str | None:
    """Why a sandbox doesn't work here; `None`: it does."""
    try:
        sandboxes.sandbox(kind, "/tmp", network=False)
    except BackendError as error:
        return error.message
    return None


SANDBOXES = [pytest.param("none", id="plain")] + [
    pytest.param(kind, marks=pytest.mark.skipif(bool(why), reason=str(why)))
    for kind in ("bwrap", "landlock")
    for why in [missing(kind)]
]


@pytest.mark.parametrize("kind", SANDBOXES)
class TestLocal(EnvironmentConformance):
    """Each test once for each way of running commands here."""

    @pytest.fixture(autouse=True)
    def _chosen(self, kind: str) -> None:
        self.kind = kind

    def make(self) -> LocalEnvironment:
        return local(sandbox=self.kind)


# What is the sandboxes' own ------------------------------------------------------------------------------------------


def confined(kind: str) -> LocalEnvironment:
    why = missing(kind)
    if why:
        pytest.skip(why)
    return local(sandbox=kind)


@pytest.fixture
def elsewhere() -> Iterator[Path]:
    """A folder that isn't below the temporary ones, in which everything may be written."""
    folder = Path(tempfile.mkdtemp(dir="/var/tmp"))
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_a_sandbox_lets_commands_write_in_the_workspace_only(kind: str, elsewhere: Path) -> None:
    """terminal.sandbox: the workspace and the temporary folders; also not where a command has gone before."""
    (elsewhere / "work").mkdir()
    (elsewhere / "kept").write_text("mine")
    confined(kind).close()
    with local(elsewhere / "work", sandbox=kind) as environment:
        assert environment.run("echo x > inside; t=$(mktemp); echo y > $t && rm $t; cat inside").text == "x\n"
        for attempt in ("> ../kept", "rm -f ../kept", "> ../new", "mkdir ../new", "mv inside ../new", "ln -s x ../new"):
            assert environment.run(attempt).exit_code != 0, attempt
        environment.run("cd ..")
        assert environment.run("echo x > new").exit_code != 0
        assert environment.run("cat kept").text == "mine"
        environment.set_cwd(str(elsewhere))
        assert environment.run("echo x > new").exit_code == 0


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
@pytest.mark.parametrize("network", [False, True])
def test_a_sandbox_has_no_network_unless_it_is_allowed(kind: str, network: bool) -> None:
    """terminal.sandbox_network: a server of this machine is reached only when that is on."""
    confined(kind).close()
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"import socket; socket.create_connection({server.getsockname()!r}, 5)"
        with local(sandbox=kind, sandbox_network=network) as environment:
            result = environment.run(f'{sys.executable} -c "{code}"', timeout=60)
    assert (result.exit_code == 0) is network


def test_a_sandbox_that_cant_be_had_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing runs without it instead."""
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    with pytest.raises(BackendError, match="bwrap isn't on PATH") as caught:
        local(sandbox="bwrap")
    assert "terminal.sandbox none" in str(caught.value)
    monkeypatch.setattr(sandboxes.sys, "platform", "darwin")
    with pytest.raises(BackendError, match="it needs Linux"):
        local(sandbox="landlock")


# What is local's own -------------------------------------------------------------------------------------------------


def test_secrets_don_t_persist(monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E5: what a command exports under a secret's name isn't kept, nor are a shell's start files."""
    with local(env_passthrough=["MY_TOKEN"]) as environment:
        environment.run("export A_KEY=1 MY_TOKEN=2 ENV=/x BASH_ENV=/x FINE=3")
        assert environment.run('echo "$A_KEY,$MY_TOKEN,$ENV,$BASH_ENV,$FINE"').text == ",2,,,3\n"


def test_what_the_host_changes_reaches_the_next_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """terminal.E2: only what commands have changed is kept, and the rest is the host's as it is now."""
    monkeypatch.setenv("SEEN", "before")
    with local() as environment:
        environment.run("export OWN=1")
        monkeypatch.setenv("SEEN", "after")
        assert environment.run('echo "$SEEN,$OWN"').text == "after,1\n"


def test_commands_at_the_same_time_keep_what_each_has_changed() -> None:
    """terminal.E2: the one that ends last doesn't undo what the other did."""
    with local() as environment:
        first = environment.spawn("export ONE=1; read line", keep_stdin=True, persist=True)
        environment.run("export TWO=2; cd /")
        first.write(b"\n")
        assert first.wait(timeout=30) == 0
        first.close()
        assert environment.run('echo "$ONE,$TWO"; pwd').text == "1,2\n/\n"


def test_the_shell_shows_nothing_of_its_own() -> None:
    """What keeps the state stays out of traces, arguments and line numbers, whatever options a command sets."""
    with local() as environment:
        assert environment.run("set -x; echo $#; true").text == "++ echo 0\n0\n++ true\n"
        assert "line 2: mibyan-nonesuch" in environment.run("true\nmibyan-nonesuch").text
        assert environment.run("trap 'echo bye' EXIT; export LEFT=1").text == "bye\n"
        assert environment.run("echo $LEFT; set -euv").text == "1\n"
        assert environment.run("pwd() { echo no; }; printf() { :; }; exit() { :; }; cd /").exit_code == 0
        assert environment.cwd == "/"


def test_sh_keeps_what_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without bash the directory and exported variables stay; functions, which sh can't tell, don't."""
    monkeypatch.setattr(commands.shutil, "which", lambda name: None if name == "bash" else f"/bin/{name}")
    with local() as environment:
        environment.run("cd /; export A=\"it's\" B='x y'; exit 3")
        assert environment.run('pwd; echo "$A $B"').text == "/\nit's x y\n"


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (b'declare -x A="x"\n', {"A": "x"}),
        (b'declare -x A="a\\"b\\\\c\\$d\\`e"\ndeclare -x B=""\n', {"A": 'a"b\\c$d`e', "B": ""}),
        (b"declare -x A=$'a\\nb\\'c\\303\\251\\x41\\E'\n", {"A": "a\nb'c\u00e9A\x1b"}),
        (b"export A='a'\"'\"'b'\nexport C\nexport B='1\n2'\n", {"A": "a'b", "B": "1\n2"}),
        (b'declare -ax L=([0]="a\nb")\ndeclare -ix N="3"\ndeclare -x E\n', {"N": "3"}),
        (b"nonsense\nexport A=1", {"A": "1"}),
        (b'declare -x A="half', {"A": ""}),
    ],
)
def test_what_shells_say_of_their_variables_is_read(said: bytes, meant: dict[str, str]) -> None:
    """Bash's and sh's ways of quoting; what has no value, and arrays, are none of an environment."""
    assert read_exports(said) == meant
