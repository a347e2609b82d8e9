"""The script's side of the calls: it is copied into the script's folder, beside the generated `mibyan_tools`."""

from __future__ import annotations

import json
import os
import socket
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Bytes of a call's arguments at most; the host takes no more.
MAX_FRAME = 4 * 1024 * 1024

_lock = allocate_lock()
#: Connections on which nobody waits; a call has one to itself, so calls of several threads run at once.
_idle: list[socket.socket] = []
_owner = os.getpid()
_count = 0


class ToolError(Exception):
    """A tool call that didn't go well.

    Attributes:
        tool: The tool's name.
        error_type: In a word what went wrong, such as `invalid_arguments`, `denied`, `timeout`, `limit`.
        status: `error`, `blocked`, `denied`, `timeout` or `cancelled`.
        fields: All that the tool's result says, by name: `hint`, `violations`, `output`, ...
    """

    def __init__(self, message: str, tool: str, error_type: str, status: str, fields: dict[str, Any]) -> None:
        super().__init__(message)
        self.tool = tool
        self.error_type = error_type
        self.status = status
        self.fields = fields


def call_tool(name: str, arguments: dict[str, Any] | None = None) -> Any:
    """Call a tool by its name.

    Args:
        name: The tool's name.
        arguments: Its arguments; paths may be `pathlib` objects.

    Returns:
        The result: what its JSON stands for (a dict or a list), else its text; a list of content parts where it has
        images or sound.

    Raises:
        ToolError: It didn't go well.
        TypeError: The arguments have no JSON form.
    """
    global _count  # noqa: PLW0603 - one count for all threads
    with _lock:
        _count += 1
        number = _count
    request = {"id": number, "name": name, "arguments": arguments or {}}
    data = json.dumps(request, default=os.fspath).encode("utf-8", "surrogatepass")
    if len(data) > MAX_FRAME:
        raise ToolError(
            f"The arguments have {len(data):,} bytes; the limit is {MAX_FRAME:,}", name, "limit", "error", {}
        )
    try:
        reply = _exchanged(data)
    except (OSError, ValueError) as error:
        raise ToolError(f"The host doesn't answer any more: {error}", name, "cancelled", "cancelled", {}) from None
    if reply["status"] == "ok":
        return reply["result"]
    message, kind = reply.get("error") or "The call failed", reply.get("error_type") or "tool_exception"
    raise ToolError(message, name, kind, reply["status"], reply.get("fields") or {})


def _exchanged(data: bytes) -> dict[str, Any]:
    connection = _connection()
    try:
        connection.sendall(len(data).to_bytes(4, "big") + data)
        reply: dict[str, Any] = json.loads(_received(connection, int.from_bytes(_received(connection, 4), "big")))
    except BaseException:
        connection.close()  # What comes on it later would be the answer to something else.
        raise
    with _lock:
        _idle.append(connection)
    return reply


def _connection() -> socket.socket:
    global _owner  # noqa: PLW0603 - the process's
    import _mibyan_connection as host  # type: ignore[import-not-found]

    with _lock:
        if _owner != os.getpid():  # The connections are the parent's.
            _idle.clear()
            _owner = os.getpid()
        if _idle:
            return _idle.pop()
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.connect(host.path)
    token = host.token.encode()
    made.sendall(len(token).to_bytes(4, "big") + token)
    return made


def _received(connection: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        part = connection.recv(min(size, 1 << 20))
        if not part:
            raise OSError("the connection was closed")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _after_fork() -> None:
    """In a child process: nobody else is at the connections."""
    global _lock  # noqa: PLW0603 - likewise
    _lock = allocate_lock()


os.register_at_fork(after_in_child=_after_fork)
