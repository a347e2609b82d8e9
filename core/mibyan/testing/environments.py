"""`EnvironmentConformance`: the tests that every terminal backend passes, to subclass (terminal.E1)."""

# ruff: noqa: RUF001, S101 - these are tests, and letters of every script are inputs

from __future__ import annotations

import shlex
import signal
import tempfile
import time
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mibyan.environments import CommandProcess, Environment

#: Directories that a program which quotes badly loses.
ODD_NAMES = ("two words", "a\nline", "مجلد", 'it\'s "quoted"', "$HOME;`id`", "-rf", "*", "tab\there", " blank ")

#: Writers that go on when only the shell is ended: children, orphans, sessions of their own, those that ignore signals.
_WRITERS = """
cd {folder}
(sleep 1.5; touch child) &
(setsid sh -c 'sleep 1.5; touch session' </dev/null >/dev/null 2>&1 &)
sh -c 'trap "" TERM HUP INT; sleep 1.5; touch stubborn' &
(nohup sh -c 'sleep 1.5; touch orphan' </dev/null >/dev/null 2>&1 &)
echo ready
sleep 60
touch next
"""


class EnvironmentConformance:
    """What must be so of every environment, whatever it runs on: a base class of tests.

    A backend's tests are a subclass that says how one is made; pytest finds the rest. Each test makes an environment and
    closes it. On the machine it runs on there must be bash and the usual programs of POSIX.

        class TestCloud(EnvironmentConformance):
            def make(self):
                return CloudEnvironment(EnvironmentContext(settings=settings))
    """

    #: Seconds that a command may take beyond its own time before a test fails.
    patience: float = 30.0

    @abstractmethod
    def make(self) -> Environment:
        """A new environment; its task has run nothing yet."""

    def folder(self, environment: Environment) -> str:
        """A new empty directory that commands may write in, on the machine they run on."""
        made = environment.run("mktemp -d", timeout=self.patience)
        assert made.exit_code == 0, made.text
        return made.text.removesuffix("\n")

    # Results -----------------------------------------------------------------------------------------------------

    def test_exit_codes(self) -> None:
        """0 to 255 are the command's own, 128 + n is signal n, 126 and 127 the shell's."""
        with self.make() as environment:
            expected = {"true": 0, "exit 3": 3, "exit 255": 255, "(exit 7)": 7, "kill -9 $$": 137, "kill -TERM $$": 143,
                        "/nonexistent/program": 127, "/dev/null": 126, "if": 2}  # fmt: skip
            assert {command: environment.run(command).exit_code for command in expected} == expected
            result = environment.run("echo fine")
            assert (result.ended_by, result.text, result.omitted, result.note) == ("exit", "fine\n", 0, None)
            assert 0 <= result.duration < self.patience

    def test_both_streams_in_order(self) -> None:
        """What was written first comes first, whichever stream it was written to."""
        with self.make() as environment:
            result = environment.run("for i in 1 2 3 4 5; do echo out$i; echo err$i >&2; done")
            assert result.text == "".join(f"out{i}\nerr{i}\n" for i in range(1, 6))

    def test_binary_input(self) -> None:
        """Every byte goes in and comes out as it is; without input there is an end at once."""
        data = bytes(range(256)) * 2000
        with self.make() as environment:
            assert environment.run("cat", stdin=data, timeout=self.patience).output == data
            assert environment.run("cat", stdin=b"").output == b""
            assert environment.run("cat; echo end", timeout=self.patience).text == "end\n"
            assert environment.run("exec 0<&-; echo closed", stdin=data, timeout=self.patience).text == "closed\n"

    def test_much_output(self) -> None:
        """Five megabytes come whole; of more than is kept the first 40 and the last 60 hundredths, with the difference told."""
        command = "head -c 5000000 /dev/zero | tr '\\0' x; echo end"
        with self.make() as environment:
            assert environment.run(command, timeout=self.patience).output == b"x" * 5_000_000 + b"end\n"
            short = environment.run(command, timeout=self.patience, keep=1000)
            assert (len(short.output), short.omitted) == (1000, 5_000_004 - 1000)
            assert short.output.endswith(b"xend\n")
            pieces: list[bytes] = []
            passed = environment.run(command, timeout=self.patience, on_output=pieces.append)
            assert (passed.output, sum(map(len, pieces))) == (b"", 5_000_004)

    def test_characters_split_over_reads(self) -> None:
        """A character whose bytes are written apart is one in the end."""
        with self.make() as environment:
            result = environment.run(r"printf '\303'; sleep 0.1; printf '\251\360\237'; sleep 0.1; printf '\214\246'")
            assert result.text == "é🌦"

    # State -------------------------------------------------------------------------------------------------------

    def test_state_persists(self) -> None:
        """Directory, exported variables and functions stay, also after `exit` and a failing `set -e`."""
        with self.make() as environment:
            folder = self.folder(environment)
            value = "a 'b' \"c\" $d `e` \\f\nمرحبا\té"
            first = f'cd {folder}; export KEPT={shlex.quote(value)}; greet() {{ echo "hello $1"; }}; exit 3'
            assert environment.run(first).exit_code == 3
            assert environment.run("mkdir sub; set -e; cd sub; export LATER=1; false; echo not").exit_code == 1
            result = environment.run('pwd; printf %s "$KEPT$LATER"; echo; greet you; false; echo on')
            assert result.text == f"{folder}/sub\n{value}1\nhello you\non\n"
            assert (environment.cwd, result.cwd) == (f"{folder}/sub", f"{folder}/sub")
            environment.run("unset KEPT; unset -f greet")
            assert (
                environment.run('echo "${KEPT-gone}"; type greet >/dev/null 2>&1 || echo gone').text == "gone\ngone\n"
            )

    def test_one_command_only(self) -> None:
        """A directory and variables that are for one command don't stay; a set directory does."""
        with self.make() as environment:
            folder = self.folder(environment)
            environment.run(f"mkdir -p {folder}/a {folder}/b; cd {folder}/a")
            result = environment.run('pwd; echo "$ONCE"', cwd=f"{folder}/b", env={"ONCE": "1"})
            assert (result.text, result.cwd) == (f"{folder}/b\n1\n", f"{folder}/b")
            assert environment.run('pwd; echo "$ONCE"').text == f"{folder}/a\n\n"
            assert environment.run("pwd", cwd="../b").text == f"{folder}/b\n"
            environment.set_cwd(f"{folder}/b")
            assert environment.run("pwd").text == f"{folder}/b\n"

    def test_a_directory_that_vanished(self) -> None:
        """Its nearest parent takes its place, and the result says so."""
        with self.make() as environment:
            folder = self.folder(environment)
            environment.run(f"mkdir -p {folder}/a/b; cd {folder}/a/b; rmdir {folder}/a/b {folder}/a")
            result = environment.run("pwd")
            assert result.text == f"{folder}\n"
            assert f"{folder}/a/b" in (result.note or "")

    def test_odd_directories(self) -> None:
        """Blanks, line breaks, quotes, other scripts and leading dashes are nothing special."""
        with self.make() as environment:
            folder = self.folder(environment)
            for name in ODD_NAMES:
                path = f"{folder}/{name}"
                assert environment.run(f"mkdir -- {shlex.quote(path)}").exit_code == 0
                assert environment.run("pwd", cwd=path).text == f"{path}\n"
                environment.run(f"cd -- {shlex.quote(path)}")
                assert (environment.run("pwd").text, environment.cwd) == (f"{path}\n", path)

    # The end -----------------------------------------------------------------------------------------------------

    def test_a_deadline_ends_the_whole_tree(self) -> None:
        """What was written is kept, nothing that the command has started goes on, and the environment stays usable."""
        with self.make() as environment:
            folder = self.folder(environment)
            result = environment.run(_WRITERS.format(folder=folder), timeout=0.7)
            # A shell may say that its program was terminated before it is itself.
            assert (result.ended_by, result.text[:6]) == ("timeout", "ready\n")
            assert result.exit_code != 0
            self._nothing_appears(environment, folder)

    def test_an_interrupt_ends_the_whole_tree(self) -> None:
        """As the deadline does, soon after it came."""
        with self.make() as environment:
            folder = self.folder(environment)
            told: list[bytes] = []
            moment: list[float] = []

            def cancelled() -> bool:
                if told and not moment:
                    moment.append(time.monotonic())
                return bool(told)

            result = environment.run(
                _WRITERS.format(folder=folder), timeout=self.patience, cancelled=cancelled, on_output=told.append
            )
            assert (result.ended_by, b"".join(told)[:6]) == ("cancelled", b"ready\n")
            assert time.monotonic() - moment[0] < self.patience / 2
            self._nothing_appears(environment, folder)

    def _nothing_appears(self, environment: Environment, folder: str) -> None:
        assert environment.run(f"sleep 1.7; ls -A {folder}", timeout=self.patience).text == ""

    def test_started_once(self) -> None:
        """A command whose answer fails to be taken was started once all the same."""
        with self.make() as environment:
            folder = self.folder(environment)

            def refuse(data: bytes) -> None:
                raise ValueError(data)

            try:
                command = f"echo started >> {folder}/log; echo started; sleep 60"
                environment.run(command, on_output=refuse, timeout=self.patience)
            except ValueError:
                pass
            else:
                raise AssertionError("the exception of on_output was lost")
            assert environment.run(f"cat {folder}/log").text == "started\n"

    # Started commands --------------------------------------------------------------------------------------------

    def test_background(self) -> None:
        """A started command runs while others do; its output is read as it comes, its input given, its end awaited."""
        with self.make() as environment:
            environment.run("export SEEN=1")
            process = environment.spawn('echo "begun $SEEN"; read line; echo "got $line"; exit 4', keep_stdin=True)
            try:
                assert self._output(process, b"begun 1\n") == b"begun 1\n"
                assert (process.poll(), process.wait(timeout=0.05)) == (None, None)
                assert environment.run("echo meanwhile").text == "meanwhile\n"
                process.write(b"this\n")
                assert self._output(process, None) == b"got this\n"
                assert process.wait(timeout=self.patience) == 4
            finally:
                process.kill()
                process.close()
                process.close()

    def test_killing_a_started_command(self) -> None:
        """`kill` takes what it has started too; `signal` reaches the command; what is ended may be ended again."""
        with self.make() as environment:
            folder = self.folder(environment)
            process = environment.spawn(_WRITERS.format(folder=folder))
            assert self._output(process, b"ready\n") == b"ready\n"
            process.kill()
            process.kill()
            assert process.wait(timeout=self.patience) not in {None, 0}
            process.close()
            self._nothing_appears(environment, folder)
            other = environment.spawn("trap 'echo caught; exit 9' TERM; echo on; while :; do sleep 0.05; done")
            assert self._output(other, b"on\n") == b"on\n"
            other.signal(signal.SIGTERM)
            assert self._output(other, None).endswith(b"caught\n")
            assert other.wait(timeout=self.patience) == 9
            other.close()

    def _output(self, process: CommandProcess, until: bytes | None) -> bytes:
        """What it writes until that, or until its end."""
        data, end = b"", time.monotonic() + self.patience
        while time.monotonic() < end and (until is None or until not in data):
            piece = process.read(0.1)
            if piece is None:
                break
            data += piece
        return data

    def test_terminal(self) -> None:
        """On request the three streams are a terminal, with input and a size, in the foreground and in the background."""
        with self.make() as environment:
            command = "test -t 0 && test -t 1 && test -t 2 && echo terminal; read line; echo got $line; cat; echo end"
            result = environment.run(command, pty=True, stdin=b"this\nthat\n", timeout=self.patience)
            assert (result.exit_code, result.ended_by) == (0, "exit")
            assert all(word in result.text for word in ("terminal\r\n", "got this\r\n", "that\r\n", "end\r\n"))
            process = environment.spawn("stty size; read line; stty size", pty=True, keep_stdin=True)
            try:
                assert b"24 80\r\n" in self._output(process, b"24 80\r\n")
                process.resize(33, 101)
                process.write(b"\n")
                assert b"33 101\r\n" in self._output(process, None)
                assert process.wait(timeout=self.patience) == 0
            finally:
                process.kill()
                process.close()

    # Files and the end -------------------------------------------------------------------------------------------

    def test_upload_and_download(self) -> None:
        """Files and folders come over as they are, in both directions; missing parents are made."""
        data = bytes(range(256)) * 500
        with self.make() as environment, tempfile.TemporaryDirectory() as here:
            folder = self.folder(environment)
            (Path(here) / "tree" / "deep er").mkdir(parents=True)
            (Path(here) / "tree" / "deep er" / "file").write_bytes(data)
            environment.run(f"cd {folder}")
            environment.upload(Path(here) / "tree" / "deep er" / "file", "new/one")
            environment.upload(Path(here) / "tree", f"{folder}/tree")
            assert environment.run("cat new/one").output == data
            assert environment.run("cat 'tree/deep er/file'").output == data
            environment.download("new/one", Path(here) / "back" / "one")
            environment.download(f"{folder}/tree", Path(here) / "back" / "tree")
            assert (Path(here) / "back" / "one").read_bytes() == data
            assert (Path(here) / "back" / "tree" / "deep er" / "file").read_bytes() == data

    def test_errors_are_backend_errors(self) -> None:
        """A directory or a file that isn't there is a `BackendError`, and nothing is started."""
        from mibyan.environments import BackendError

        def refused(environment: Environment, here: Path) -> list[bool]:
            found = []
            for attempt in (
                lambda: environment.run("touch /tmp/started", cwd="/nonexistent/place"),
                lambda: environment.spawn("true", cwd="/nonexistent/place"),
                lambda: environment.download("/nonexistent/file", here / "file"),
                lambda: environment.upload(here / "missing", "file"),
            ):
                try:
                    attempt()
                except BackendError:
                    found.append(True)
            return found

        with self.make() as environment, tempfile.TemporaryDirectory() as here:
            assert len(refused(environment, Path(here))) == 4

    def test_closing(self) -> None:
        """Closing ends what runs; a second time does nothing; afterwards commands are refused."""
        from mibyan.environments import BackendError

        environment = self.make()
        process = environment.spawn("echo on; sleep 60")
        assert self._output(process, b"on\n") == b"on\n"
        environment.close()
        environment.close()
        assert process.wait(timeout=self.patience) not in {None, 0}
        process.close()
        try:
            environment.run("true")
        except BackendError:
            return
        raise AssertionError("a closed environment has run a command")
