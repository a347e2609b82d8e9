"""What a registration may say: wrong values are a sentence, before anything depends on them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime, ToolRegistry, ToolSchemaError

SCHEMA = {"description": "d"}


@pytest.mark.parametrize("names", ["\ud800", ["FINE", "\udcff"], [""], [3], 3, {"A": 1}])
def test_names_of_variables_that_cannot_be(tmp_path: Path, names: Any) -> None:
    """registry.R1: what can't name a variable is refused at registration; no later call stumbles over it."""
    with Runtime(home=tmp_path) as rt:
        with pytest.raises(TypeError, match=r"requires_env .*names of environment variables"):
            rt.registry.register("t", "x", SCHEMA, lambda args: "ok", requires_env=names)
        assert rt.registry.get_entry("t") is None


@pytest.mark.parametrize("names", ["A", ["A", "B"], ("A",), None, []])
def test_names_of_variables(tmp_path: Path, names: Any) -> None:
    """registry.R1: one name or several; the tool can be called whether or not they are set."""
    with Runtime(home=tmp_path) as rt:
        rt.registry.register("t", "x", SCHEMA, lambda args: "ok", requires_env=names)
        assert rt.call("t", {}) == "ok"


def test_a_schema_is_a_dict_and_not_what_makes_one_R1() -> None:
    """registry.R1: something that is called for the schema could say another each time, or raise for everybody."""
    registry = ToolRegistry()

    class Turning(dict):
        def __call__(self) -> dict:
            raise RuntimeError

    for made in (lambda: {"description": "d"}, Turning):
        with pytest.raises(ToolSchemaError, match="expected a dict"):
            registry.register("turns", "t", made, lambda args: "")
    assert registry.generation == 0
    entry = registry.register("plain", "t", Turning(description="d"), lambda args: "")
    assert entry is not None
    assert entry.schema["description"] == "d"
