"""`Environment`: the contract of a backend (terminal.E1)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from mibyan.environments.running import KEPT, Run, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from mibyan.environments.process import CommandProcess
    from mibyan.environments.records import CommandResult, EnvironmentContext


class Environment(ABC):
    """Where the commands of one task run: this machine, a container, a machine elsewhere.

    It keeps what a shell would keep between two commands (its directory, exported variables, functions), also after one
    that ended by `exit 3`. Several threads may run commands at once. It is a context manager that closes it.

    A backend implements `spawn`, `upload`, `download`, `close`, `cwd` and `set_cwd`; `mibyan.testing.environments` has the
    tests that it must pass.

    Args:
        context: Whom it is for, and what the operator has set.

    Raises:
        BackendError: It can't be made: a program or an extra is missing, a setting is wrong, nobody answers.
    """

    #: The backend's name, as `terminal.backend` has it.
    name: ClassVar[str] = ""
    #: Whether its file system is its own and can be thrown away, without folders of the host (terminal.P4).
    isolated: bool = False

    def __init__(self, context: EnvironmentContext) -> None:
        self.context = context

    @property
    @abstractmethod
    def cwd(self) -> str:
        """The directory that the next command runs in, absolute, on the machine it runs on."""

    @abstractmethod
    def set_cwd(self, path: str) -> None:
        """Let the following commands run in `path`, whatever directory the shell was in.

        Args:
            path: An absolute path of the machine they run on. It is looked at when the next command starts.
        """

    @abstractmethod
    def spawn(
        self, command: str, *, cwd: str | None = None, stdin: bytes | None = None, keep_stdin: bool = False,
        env: Mapping[str, str] | None = None, pty: bool = False, persist: bool = False,
    ) -> CommandProcess:  # fmt: skip
        """Start a command and return at once. Whatever goes wrong afterwards, it is started at most once.

        Args:
            command: For bash; where there is none, for sh.
            cwd: The directory for this command only: absolute, relative to `self.cwd`, or with `~`.
            stdin: Its input; `None`: none.
            keep_stdin: Whether its input stays open after that, for `CommandProcess.write`.
            env: Variables for this command only.
            pty: Whether its input and output are a terminal, of 24 rows and 80 columns until it is resized.
            persist: Whether its directory, exported variables and functions are the environment's once it has ended.

        Raises:
            BackendError: It couldn't be started: a directory that doesn't exist, a command too large for the system.
        """

    def run(
        self, command: str, cwd: str | None = None, timeout: float | None = None, stdin: bytes | None = None,
        env: Mapping[str, str] | None = None, pty: bool = False,  # noqa: FBT001, FBT002 - the published signature
        *, cancelled: Callable[[], bool] | None = None, on_output: Callable[[bytes], None] | None = None,
        keep: int = KEPT,
    ) -> CommandResult:  # fmt: skip
        """Run a command to its end, its deadline or its cancellation; then none of its processes that must end is left.

        A process that it has put into the background and that goes on after it isn't waited for, nor ended.

        Args:
            command: As for `spawn`.
            cwd: As for `spawn`.
            timeout: Seconds; at the end of them its processes are ended and what it has written is kept. `None`: no limit.
            stdin: Its input; `None`: none.
            env: Variables for this command only.
            pty: Whether its input and output are a terminal.
            cancelled: Asked at least twenty times a second; true ends the command like the deadline.
            on_output: Gets each piece of output as it comes, instead of `CommandResult.output`.
            keep: Bytes of output that are kept: of more than that the first 40 and the last 60 hundredths.

        Raises:
            BackendError: It couldn't be started.
        """
        limits = Run(timeout, cancelled, on_output, keep)
        return run_to_end(
            lambda: self.spawn(command, cwd=cwd, stdin=stdin, env=env, pty=pty, persist=True), limits
        )  # fmt: skip

    @abstractmethod
    def upload(self, source: Path, target: str) -> None:
        """Copy a file or a folder, with what is in it, to the environment.

        Args:
            source: A path of this machine.
            target: Where it is to be: absolute, relative to `self.cwd`, or with `~`. Missing parents are made, a file that
                is there is replaced, a folder that is there is added to.

        Raises:
            BackendError: It can't be read or written.
        """

    @abstractmethod
    def download(self, source: str, target: Path) -> None:
        """Copy a file or a folder from the environment; see `upload`.

        Raises:
            BackendError: It can't be read or written.
        """

    @abstractmethod
    def close(self) -> None:
        """End every process that was started and still runs, and the environment. A second time does nothing.

        A command given afterwards is refused with `BackendError`.
        """

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
