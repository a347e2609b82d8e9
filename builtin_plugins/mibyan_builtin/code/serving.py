"""The host's side of a script's calls: its connections, what comes on them, and the calls on their threads.

What a script sends may be anything. Nothing is trusted before the token, everything is bounded, and a connection on which
something else comes than what the protocol has is closed. A frame is four bytes of length and as many bytes of JSON:
`{"id", "name", "arguments"}` one way, `{"id", "status", "result" | "error", "error_type", "fields"}` the other.
"""

from __future__ import annotations

import hmac
import json
import os
import selectors
import socket
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from mibyan import ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

#: Connections at once.
MAX_PEERS = 64
#: Bytes of a frame, and of one that comes before the token.
MAX_FRAME = 4 * 1024 * 1024
MAX_TOKEN = 128
#: Bytes of all frames that haven't come whole yet.
MAX_WAITING = 16 * 1024 * 1024
#: Bytes of answers that a script leaves unread before its connection is closed, beside the results of its calls.
MAX_UNREAD = 256 * 1024
#: Seconds within which a connection must bring the token.
PATIENCE = 5.0
#: Tool calls of one script.
MAX_CALLS = 50
CHUNK = 65_536

Reply: TypeAlias = dict[str, Any]


@dataclass(slots=True, eq=False)
class Peer:
    """One connection."""

    connection: socket.socket
    since: float
    known: bool = False
    incoming: bytearray = field(default_factory=bytearray)
    outgoing: bytearray = field(default_factory=bytearray)
    closed: bool = False


@dataclass(slots=True)
class Made:
    """A call that the script has made."""

    name: str
    #: What the script calls it by.
    number: Any
    arguments: dict[str, Any]
    peer: Peer
    started: float
    status: str = "cancelled"
    error_type: str | None = None
    #: Seconds; `None`: it isn't over.
    duration: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As the tool's result tells of it."""
        seconds = time.monotonic() - self.started if self.duration is None else self.duration
        told = {"name": self.name, "status": self.status, "duration": round(seconds, 3)}
        return {**told, "error_type": self.error_type} if self.error_type else told


class Exchange:
    """The socket of one script, and the calls that come over it.

    Args:
        path: Where the socket is; nothing is there yet.
        token: What a connection must bring first.
        execute: Runs a call to its end; several threads ask at once.
        names: The tools that may be called.
        workers: Calls that run at once.
        refuse: What is said of any other tool: a message and an error type.
    """

    def __init__(
        self,
        path: str,
        token: str,
        execute: Callable[[ToolCall], ToolResult],
        names: Collection[str],
        workers: int,
        refuse: Callable[[str], tuple[str, str]],
    ) -> None:
        self.made: list[Made] = []
        #: Calls that were refused before they were made.
        self.refused = 0
        self._token = token.encode()
        self._execute = execute
        self._names = names
        self._workers = workers
        self._refuse = refuse
        self._peers: set[Peer] = set()
        self._queue: deque[Made] = deque()
        self._threads: dict[int, threading.Thread] = {}
        self._done: deque[tuple[Made, Reply]] = deque()
        self._bell, self._ring = socket.socketpair()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        os.chmod(path, 0o600)  # noqa: PTH101 - the folder is nobody else's, this is the second door
        self._listener.listen(MAX_PEERS)
        self._selector: selectors.BaseSelector | None = None
        for each in (self._listener, self._bell, self._ring):
            each.setblocking(False)  # noqa: FBT003 - its only argument

    def attach(self, selector: selectors.BaseSelector) -> None:
        """Let `selector` look after it: what it finds goes to the callables that it has as data."""
        self._selector = selector
        selector.register(self._listener, selectors.EVENT_READ, lambda _: self._accept())
        selector.register(self._bell, selectors.EVENT_READ, lambda _: self._settle())

    def tick(self) -> None:
        """Let go of connections that don't say who they are."""
        late = time.monotonic() - PATIENCE
        for peer in [each for each in self._peers if not each.known and each.since < late]:
            self._drop(peer)

    def close(self, patience: float = 1.0) -> None:
        """End it; calls that were ended elsewhere get a moment to come back. The calls that don't stay `cancelled`."""
        self._queue.clear()
        until = time.monotonic() + patience
        for thread in list(self._threads.values()):
            thread.join(max(0.0, until - time.monotonic()))
        for peer in list(self._peers):
            self._drop(peer)
        for each in (self._listener, self._bell, self._ring):
            if self._selector is not None:
                with suppress(KeyError, ValueError):
                    self._selector.unregister(each)
            each.close()

    # Connections -------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        for _ in range(MAX_PEERS):
            try:
                connection, _address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # no descriptors left: it stays in the queue, or its script has closed it
                return
            if len(self._peers) >= MAX_PEERS or not _is_ours(connection):
                connection.close()
                continue
            connection.setblocking(False)  # noqa: FBT003 - likewise
            peer = Peer(connection, time.monotonic())
            self._peers.add(peer)
            self._watch(peer, selectors.EVENT_READ, register=True)

    def _watch(self, peer: Peer, events: int, *, register: bool = False) -> None:
        if self._selector is None:
            return
        look = self._selector.register if register else self._selector.modify
        look(peer.connection, events, lambda found: self._serve(peer, found))

    def _drop(self, peer: Peer) -> None:
        peer.closed = True
        self._peers.discard(peer)
        if self._selector is not None:
            with suppress(KeyError, ValueError):
                self._selector.unregister(peer.connection)
        peer.connection.close()
        peer.incoming.clear()
        peer.outgoing.clear()

    def _serve(self, peer: Peer, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            self._write(peer)
        if events & selectors.EVENT_READ and not peer.closed:
            self._read(peer)

    def _read(self, peer: Peer) -> None:
        try:
            data = peer.connection.recv(CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._drop(peer)
            return
        peer.incoming += data
        if sum(len(each.incoming) for each in self._peers) > MAX_WAITING:
            self._drop(peer)
            return
        while not peer.closed and (frame := self._next_frame(peer)) is not None:
            self._take(peer, frame)

    def _next_frame(self, peer: Peer) -> bytes | None:
        """The next frame, if it is there; one that is too large ends the connection."""
        if len(peer.incoming) < 4:
            return None
        size = int.from_bytes(peer.incoming[:4], "big")
        if size > (MAX_FRAME if peer.known else MAX_TOKEN):
            self._drop(peer)
            return None
        if len(peer.incoming) < 4 + size:
            return None
        frame = bytes(peer.incoming[4 : 4 + size])
        del peer.incoming[: 4 + size]
        return frame

    def _write(self, peer: Peer) -> None:
        try:
            sent = peer.connection.send(peer.outgoing[:CHUNK])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self._drop(peer)
            return
        del peer.outgoing[:sent]
        if not peer.outgoing:
            self._watch(peer, selectors.EVENT_READ)

    def _send(self, peer: Peer, reply: Reply) -> None:
        if peer.closed:
            return
        data = json.dumps(reply).encode()
        was_empty = not peer.outgoing
        peer.outgoing += len(data).to_bytes(4, "big") + data
        if was_empty:
            self._watch(peer, selectors.EVENT_READ | selectors.EVENT_WRITE)

    # Calls -------------------------------------------------------------------------------------------------------

    def _take(self, peer: Peer, frame: bytes) -> None:
        if not peer.known:
            peer.known = hmac.compare_digest(frame, self._token)
            if not peer.known:
                self._drop(peer)
            return
        request = _read_request(frame)
        if request is None:
            self._drop(peer)
            return
        number, name, arguments = request
        why = self._why_not(name)
        if why is None:
            self.made.append(Made(name, number, arguments, peer, time.monotonic()))
            self._queue.append(self.made[-1])
            self._start()
            return
        self.refused += 1
        if len(peer.outgoing) > MAX_UNREAD:
            self._drop(peer)
            return
        self._send(peer, {"id": number, "status": "error", "error": why[0], "error_type": why[1]})

    def _why_not(self, name: str) -> tuple[str, str] | None:
        if name not in self._names:
            return self._refuse(name)
        if len(self.made) >= MAX_CALLS:
            return f"A script can make {MAX_CALLS} tool calls; this is one more", "limit"
        return None

    def _start(self) -> None:
        while self._queue and len(self._threads) < self._workers:
            made = self._queue.popleft()
            thread = threading.Thread(target=self._run, args=(made,), name=f"mibyan-code-{made.name}", daemon=True)
            self._threads[id(made)] = thread
            try:
                thread.start()
            except RuntimeError as error:  # the system gives no thread
                self._done.append((made, _failed(made, f"Error executing {made.name}: {error}", "internal")))
                self._wake()

    def _run(self, made: Made) -> None:
        """One call, on a thread of its own."""
        made.started = time.monotonic()
        try:
            result = self._execute(ToolCall(made.name, made.arguments))
            reply = _reply(made, result)
        except BaseException as error:
            reply = _failed(made, f"Error executing {made.name}: {type(error).__name__}", "internal")
        made.duration = time.monotonic() - made.started
        made.status, made.error_type = reply["status"], reply.get("error_type")
        self._done.append((made, reply))
        self._wake()

    def _wake(self) -> None:
        with suppress(OSError):  # it rings already, or nobody listens any more
            self._ring.send(b"!")

    def _settle(self) -> None:
        """Send what has come of calls, and start those that wait."""
        with suppress(OSError):
            self._bell.recv(4096)
        while self._done:
            made, reply = self._done.popleft()
            self._threads.pop(id(made), None)
            self._send(made.peer, reply)
        self._start()


def _is_ours(connection: socket.socket) -> bool:
    """Whether the process at the other end is this user's, where the system tells that."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid()


def _read_request(frame: bytes) -> tuple[Any, str, dict[str, Any]] | None:
    """The number, the name and the arguments of a call; `None`: it isn't one."""
    try:
        request = json.loads(frame.decode("utf-8", "surrogatepass"))
        number, name, arguments = request["id"], request["name"], request["arguments"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    plain = isinstance(number, int | str) and isinstance(name, str) and isinstance(arguments, dict)
    return (number, name, arguments) if plain else None


def _reply(made: Made, result: ToolResult) -> Reply:
    """What the script is told of a call's result."""
    if result.ok:
        value: Any = result.text if result.data is None else result.data
        if result.content is not None:
            value = list(result.content)
        return {"id": made.number, "status": "ok", "result": value}
    fields = result.data if isinstance(result.data, dict) else {}
    said = {"error": result.error or result.text, "error_type": result.error_type, "fields": fields}
    return {"id": made.number, "status": result.status, **said}


def _failed(made: Made, message: str, kind: str) -> Reply:
    return {"id": made.number, "status": "error", "error": message, "error_type": kind}
