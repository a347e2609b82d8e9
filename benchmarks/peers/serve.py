"""Run by a peer's interpreter: `serve.py ADAPTER VARIANT WORK`; JSON lines in, JSON lines out.

WORK is a JSON object with `arguments` and `schema`. The first line out is what one call answers; each line in is a number
of calls, each further line out the nanoseconds that they took. Only the standard library and the peer are here.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import inspect
import json
import os
import sys
from itertools import repeat
from time import perf_counter_ns
from typing import Any


def main(adapter: str, variant: str, work: str) -> None:
    """Serve until there is nothing more to read."""
    # What the peer prints goes elsewhere.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    told = json.loads(work)
    call = _load(adapter).make(variant, told["arguments"], told["schema"])
    loop = asyncio.new_event_loop() if inspect.iscoroutinefunction(call) else None
    print(json.dumps(repr(loop.run_until_complete(call()) if loop else call())), file=out, flush=True)
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        calls = json.loads(line)
        took = loop.run_until_complete(_awaited(call, calls)) if loop else _called(call, calls)
        print(json.dumps(took), file=out, flush=True)
    out.flush()
    os._exit(0)  # Threads that the peer has left don't keep it.


def _load(path: str) -> Any:
    spec = importlib.util.spec_from_file_location("benchmark_adapter", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{path} is no module")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _called(call: Any, calls: int) -> int:
    started = perf_counter_ns()
    for _ in repeat(None, calls):
        call()
    return perf_counter_ns() - started


async def _awaited(call: Any, calls: int) -> int:
    started = perf_counter_ns()
    for _ in repeat(None, calls):
        await call()
    return perf_counter_ns() - started


if __name__ == "__main__":
    # Beside this file there are modules with the names of the peers: they aren't to be imported.
    sys.path.pop(0)
    main(*sys.argv[1:])
