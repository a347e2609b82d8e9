"""What registering and defining costs, in steps and bytes instead of seconds (registry.R9, D3)."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime, ToolRegistry
from mibyan.schema import formats
from mibyan.tools.store import RegistryStore


def schema(number: int) -> dict[str, Any]:
    return {
        "name": f"tool_{number:05d}",
        "description": f"List the entries number {number} of a folder.",
        "parameters": {"type": "object", "properties": {
            "path": {"type": "string", "description": "Folder to list."},
            "limit": {"type": "integer", "default": 100, "description": "Largest number of entries."},
            "recursive": {"type": "boolean", "default": False, "description": "Whether to go down."},
        }, "required": ["path"]},
    }  # fmt: skip


def fill(registry: ToolRegistry, numbers: range) -> None:
    for number in numbers:
        registry.register(f"tool_{number:05d}", "many", schema(number), lambda args, number=number: str(number))


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[Runtime]:
    with Runtime(home=tmp_path) as made:
        made._parts._loaded = True
        yield made


def test_registry_R9_a_registration_copies_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """registry.R9: the registry is copied for the first reader after a change, not by who changes it."""
    copies = []
    copy = RegistryStore._copy
    monkeypatch.setattr(RegistryStore, "_copy", lambda store: copies.append(store) or copy(store))
    registry = ToolRegistry()
    fill(registry, range(300))
    assert registry.get_entry("tool_00299") is not None
    assert copies == []
    assert len(registry.snapshot.entries) == 300
    assert registry.snapshot is registry.snapshot
    assert len(copies) == 1


def test_registry_D3_one_change_is_one_definition(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    """registry.D3: definitions are kept a tool and a format: what didn't change isn't made again."""
    fill(runtime.registry, range(50))
    runtime.definitions()
    runtime.definitions(["many"])
    made = []
    render = formats.render
    monkeypatch.setattr(
        formats, "render", lambda schema, form, **more: made.append((schema["name"], form)) or render(schema, form, **more)
    )  # fmt: skip
    runtime.definitions(["many"])
    fill(runtime.registry, range(7, 8))
    runtime.definitions(["many"])
    runtime.definitions()
    assert [one for one in made if one[0]] == [("tool_00007", "openai")]
    runtime.definitions(format="anthropic")
    assert len([one for one in made if one[1] == "anthropic" and one[0]]) == 50
    runtime.definitions(format="anthropic")
    assert len([one for one in made if one[1] == "anthropic" and one[0]]) == 50


def test_a_tool_takes_less_than_four_kibibytes(runtime: Runtime) -> None:
    """A raw tool with its definition, and all that is kept of it, is small; nothing stays of one that is gone."""
    count = 500
    fill(runtime.registry, range(count))
    runtime.definitions()
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        fill(runtime.registry, range(count, 3 * count))
        runtime.definitions()
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0] - before
        for number in range(count, 3 * count):
            runtime.registry.deregister(f"tool_{number:05d}")
        runtime.definitions()
        gc.collect()
        left = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert 0 < taken < 2 * count * 4096
    assert left < taken / 4


def test_registry_R9_an_interrupt_leaves_a_whole_registry() -> None:
    """registry.R9: whatever comes between, a registration is there or it isn't, and the next snapshot is of it."""

    class Interrupted(dict):
        def __setitem__(self, key: str, value: Any) -> None:
            if key == "tool_00001":
                raise KeyboardInterrupt
            super().__setitem__(key, value)

        def copy(self) -> dict[str, Any]:
            return dict(self)

    registry = ToolRegistry()
    registry._store._held = Interrupted()
    fill(registry, range(1))
    before = registry.snapshot
    with pytest.raises(KeyboardInterrupt):
        fill(registry, range(1, 2))
    assert registry.generation == before.generation == 1
    assert list(registry.snapshot.entries) == ["tool_00000"]
    fill(registry, range(2, 3))
    after = registry.snapshot
    assert (sorted(after.entries), after.generation) == (["tool_00000", "tool_00002"], 2)
    assert registry.snapshot is after
