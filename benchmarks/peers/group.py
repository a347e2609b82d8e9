"""What ours takes beside the peers: in one run, window by window in turn."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import work
from benchmarks.figures import Target
from benchmarks.harness import Pair, PerAwait, PerCall, measure, own_loop
from benchmarks.installation import Process, compile_all, install
from benchmarks.peers.environments import PEERS, cache_folder, environment
from benchmarks.peers.worker import ADAPTERS, Worker, peer_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.figures import Figure
    from benchmarks.harness import Effort
    from benchmarks.peers.environments import Peer

GROUP = "peers"

#: What `mibyan tools list` may take of the neighbouring agent's time.
_LISTING = {"hermes": Target(0.2)}


def figures(effort: Effort, names: Sequence[str]) -> list[Figure]:
    """The peers' figures; a peer that can't be had is told on standard error and left out."""
    found: list[tuple[Peer, Path]] = []
    for name in names:
        print(f"the environment of {name} ...", file=sys.stderr, flush=True)
        try:
            found.append((PEERS[name], environment(PEERS[name], cache_folder())))
        except RuntimeError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
    return [*_calls(effort, found), *_listings(effort, found)]


def _calls(effort: Effort, found: Sequence[tuple[Peer, Path]]) -> list[Figure]:
    pairs: list[Pair] = []
    with ExitStack() as stack:
        ours = _ours(stack)
        for peer, folder in found:
            for variant in peer.variants:
                try:
                    worker = stack.enter_context(Worker(folder / "bin/python", ADAPTERS / peer.adapter, variant.name))
                except RuntimeError as error:
                    print(f"{variant.name} of {peer.name} is left out: {error}", file=sys.stderr)
                    continue
                target = Target(variant.bound) if variant.bound else None
                pairs.append(Pair(f"Runtime.{variant.ours}", f"{peer.name}: {variant.name}", worker,
                                  ours[variant.ours], "µs", target))  # fmt: skip
        return measure(GROUP, pairs, effort.windows)


def _ours(stack: ExitStack) -> dict[str, Callable[[], float]]:
    """Our ways to make the call, by the names that variants have for them."""
    plain, hooked = stack.enter_context(work.runtime()), stack.enter_context(work.runtime())
    work.register(plain)
    work.register(hooked)
    work.add_hooks(hooked)
    call, with_hooks, acall = plain.call, hooked.call, plain.acall
    loop = stack.enter_context(own_loop())
    return {
        "call": PerCall(lambda: call("flat", dict(work.ARGUMENTS))),
        "call with hooks": PerCall(lambda: with_hooks("flat", dict(work.ARGUMENTS))),
        "acall": PerAwait(loop, lambda: acall("list_folder_async", work.TEXT)),
    }


def _listings(effort: Effort, found: Sequence[tuple[Peer, Path]]) -> list[Figure]:
    """`mibyan tools list` beside the peers' own, each with nothing but what it brings along."""
    listing = [(peer, folder) for peer, folder in found if peer.listing]
    if not listing:
        return []
    with tempfile.TemporaryDirectory(prefix="mibyan-bench-") as folder:
        made = install(Path(folder))
        compile_all(made)
        ours = Process([made.mibyan, "tools", "list"], made, made.work / "home", processor=effort.processor)
        ours.output()
        pairs = []
        for peer, theirs in listing:
            home = Path(folder) / peer.name
            home.mkdir()
            command = [str(theirs / "bin" / peer.listing[0]), *peer.listing[1:]]
            process = Process(command, made, home, peer_environment(home), processor=effort.processor)
            process.output()
            pairs.append(Pair("mibyan tools list", " ".join(peer.listing), process, ours, effort.process_unit,
                              _LISTING.get(peer.name)))  # fmt: skip
        return measure(GROUP, pairs, effort.processes)
