"""What a script's process begins with: `python -I boot.py FOLDER`; it is run as a program and never imported.

Two processes come of it. The one that the host has started only watches: it takes in what the script's processes leave
behind, and when the script or the host is over it ends all of them. The other one is the script's.
"""

from __future__ import annotations

import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

#: The script's file in its folder, and what tracebacks call it.
SCRIPT = "execute_code.py"
#: Seconds that the script's processes have to be gone after SIGKILL.
PATIENCE = 3.0
#: Seconds between two looks whether the host is still there, beside its end of the pipe.
LOOK = 0.5
_BECOME_SUBREAPER = 36


def main() -> None:
    """Start the script; returns in its process only, with the script run to its end."""
    folder, token = sys.argv[1], _first_line()
    waits, tells = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(tells)
        _run(folder, token, waits)
        return
    os.close(waits)
    _watch(child, tells, folder)


def _first_line() -> str:
    """The token, which the host writes; what comes after it is only the end."""
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, 1)
        if not data:
            os._exit(1)
        line += data
    return line.decode().strip()


# The script ------------------------------------------------------------------------------------------------------


def _run(folder: str, token: str, waits: int) -> None:
    os.setsid()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    with open(f"{folder}/{SCRIPT}", encoding="utf-8", newline="") as stream:  # noqa: PTH123 - nothing more is imported
        source = stream.read()
    connection = type(sys)("_mibyan_connection")
    vars(connection).update(path=f"{folder}/tools", token=token)
    module = type(sys)("__main__")
    # The old one's names would be gone with it.
    connection.boot = sys.modules["__main__"]  # type: ignore[attr-defined]
    sys.modules.update({"_mibyan_connection": connection, "__main__": module})
    sys.path.insert(0, folder)
    sys.argv[:] = [SCRIPT]
    sys.excepthook = _show
    if "mibyan_tools" in source:
        import mibyan_tools  # type: ignore[import-not-found]  # noqa: F401 - while the other process gets ready
    os.read(waits, 1)  # From then on nobody can get away from who watches.
    os.close(waits)
    exec(compile(source, SCRIPT, "exec", dont_inherit=True), vars(module))  # noqa: S102 - that is what it is for


def _show(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """A traceback that begins with the script."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    sys.__excepthook__(kind, error.with_traceback(trace), trace)


# Watching --------------------------------------------------------------------------------------------------------


def _watch(child: int, tells: int, folder: str) -> None:
    """Wait for the end of the script or of the host, then end every process; never returns."""
    _take_in_orphans()
    host = os.getppid()
    os.write(tells, b"!")
    os.close(tells)
    status = _until_over(child, host)
    _end_all(child)
    if status is None:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)  # The host may be gone.
        os._exit(137)
    code = os.waitstatus_to_exitcode(status)
    os._exit(128 - code if code < 0 else code)


def _take_in_orphans() -> None:
    """Let processes whose parents are gone become this one's children (Linux)."""
    if sys.platform != "linux":
        return
    try:
        import ctypes

        ctypes.CDLL(None).prctl(_BECOME_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return  # The host looks for them by their mark.


def _until_over(child: int, host: int) -> int | None:
    """The script's wait status; `None`: the host has let go of it, or is gone."""
    import select

    poller = select.poll()
    poller.register(0, select.POLLIN | select.POLLHUP)
    wait = LOOK * 1000
    try:
        poller.register(os.pidfd_open(child), select.POLLIN)
    except (AttributeError, OSError):
        wait = 10.0
    while True:
        events = poller.poll(wait)
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == child:
                return status
            if pid == 0:
                break
        if any(fd == 0 for fd, _ in events) or os.getppid() != host:
            return None


def _end_all(child: int) -> None:
    """Kill what is left, until there is nobody."""
    until = time.monotonic() + PATIENCE
    try:  # noqa: SIM105 - contextlib isn't imported, and needn't be
        os.killpg(child, 9)
    except (ProcessLookupError, PermissionError):
        pass
    while time.monotonic() < until:
        for pid in _children():
            try:
                os.kill(pid, 9)
            except (ProcessLookupError, PermissionError):
                continue
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _children() -> list[int]:
    """This process's children, those that it has taken in among them."""
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children", encoding="ascii") as stream:  # noqa: PTH123 - likewise
            return [int(pid) for pid in stream.read().split()]
    except OSError:
        return _found_children(own)


def _found_children(own: int) -> list[int]:
    """The same where the kernel doesn't list them."""
    found = []
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():  # noqa: PTH112, PTH208 - likewise
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123 - likewise
                parent = int(stream.read().rpartition(b")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == own:
            found.append(int(name))
    return found


if __name__ == "__main__":
    main()
