"""A host in an installation of fifty faulty plugins: prints what it found as JSON, between marks that nobody else prints."""

from __future__ import annotations

import builtins
import json
import logging
import os
import sys
import threading
from pathlib import Path
from typing import Any

from mibyan import Runtime, ToolCall


def process() -> dict[str, Any]:
    """What plugins may not change of the process."""
    return {
        "path": list(sys.path), "handlers": [type(one).__name__ for one in logging.root.handlers], "level": logging.root.level,
        "disabled": logging.root.manager.disable, "environ": dict(os.environ), "directory": str(Path.cwd()),
        "builtins": sorted(vars(builtins)), "len": len([1]), "json": sys.modules["json"].__name__, "os": sys.modules["os"].__name__,
        "recursion": sys.getrecursionlimit(), "excepthook": sys.excepthook.__name__,
        "streams": [sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    }  # fmt: skip


def told(definitions: list[Any]) -> list[Any]:
    """All but the one that has gone with its lie, and the one that names all others."""
    return [one for one in definitions if one["function"]["name"] not in {"left_lies", "execute_code"}]


def main() -> None:
    """Load, call, look."""
    sys.path += os.environ["INSTALLED"].split(os.pathsep)  # behind the standard library, as an environment has it
    logging.basicConfig(level=logging.ERROR)
    before = process()
    with Runtime() as rt:
        definitions = rt.definitions()
        after = process()
        calls = {name: rt.execute(ToolCall(name, {"text": "x"})).to_dict() for name in sys.argv[1:]}
        lies = rt.execute(ToolCall("left_lies", {})).to_dict()
        parts, offers = rt._parts, rt.plugins.offers
        found = {
            "before": before, "after": after, "calls": calls, "lies": lies,
            "definitions": [one["function"]["name"] for one in definitions], "again": told(rt.definitions()) == told(definitions),
            "tools": rt.registry.get_all_tool_names(), "aliases": [*parts.store.snapshot.aliases],
            "toolsets": [*parts.store.declared_toolsets], "toolset_aliases": [*parts.store.snapshot.toolset_aliases],
            "commands": [*offers.commands], "services": [*offers.services],
            "hooks": sorted({one.owner.id for one in parts.hooks.chain("post_tool_call").plain}),
            "records": {one.origin: [one.id, one.state, one.reason, one.hint] for one in rt.plugins.all_records()},
            "modules": {name: str(getattr(one, "__file__", "")) for name, one in sys.modules.items()},
            "threads": [one.name for one in threading.enumerate()], "decisions": [one.to_dict() for one in rt.report().decisions],
        }  # fmt: skip
    sys.stdout.write(f"\n<<<{json.dumps(found)}>>>\n")
    sys.stdout.flush()
    os._exit(0)  # what hangs is let go


if __name__ == "__main__":
    main()
