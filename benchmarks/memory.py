"""`python -m benchmarks.memory plain|runtime COUNT`: bytes of resident memory that a raw tool takes.

A process of its own, so that nothing that was freed before hides what is allocated.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks import work
from benchmarks.manytools import fill, tool_name


def main(kept: str, count: int) -> int:
    """Print the bytes a tool."""
    with work.runtime() as runtime:
        runtime.registry.register("first", "bench", work.flat_schema(), work.handle)
        runtime.definitions()  # Imports and builds what all others share.
        before = resident()
        if kept == "runtime":
            fill(runtime, count)
            definitions: list[Any] = runtime.definitions()
        else:
            definitions = [plain_definition(number) for number in range(count)]
        after = resident()
        if len(definitions) < count:
            raise RuntimeError(f"{len(definitions)} definitions of {count} tools")
    print((after - before) / count)
    return 0


def plain_definition(number: int) -> dict[str, Any]:
    """What a model is shown, as plain dicts."""
    return {"type": "function", "function": {"name": tool_name(number), **work.flat_schema(number)}}


def resident() -> int:
    """Bytes of this process that are in memory now."""
    gc.collect()
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except FileNotFoundError:
        import resource

        # Where there is no /proc the most there ever was has to do: here memory only grows.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
