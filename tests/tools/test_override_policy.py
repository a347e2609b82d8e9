"""registry.R4: what a host says about overriding is a boolean or names, and nothing that merely looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mibyan import Runtime


@pytest.mark.parametrize("allowed", ["terminal", b"terminal", "", None, 1, 0.5, [3], [""], [None], list])
def test_what_is_no_policy_is_refused(tmp_path: Path, allowed: Any) -> None:
    """A text isn't a list of its letters, and a number isn't a boolean: a TypeError, and nothing is allowed."""
    with Runtime(home=tmp_path, safe_mode=True) as rt:
        with pytest.raises(TypeError, match=r"^allowed must be true, false or a list of tool names"):
            rt.registry.register_plugin_override_policy("weather", allowed)
        assert rt.registry._store._opt_ins.get("weather") is None


@pytest.mark.parametrize("owner", [None, 3, [], {}, ""])
def test_whose_policy(tmp_path: Path, owner: Any) -> None:
    """The owner is a plugin's id."""
    with Runtime(home=tmp_path, safe_mode=True) as rt, pytest.raises(TypeError, match=r"^owner must be a plugin's id"):
        rt.registry.register_plugin_override_policy(owner, True)


@pytest.mark.parametrize("allowed", [True, False, ["terminal"], ("terminal",), {"terminal"}, ()])
def test_what_is_a_policy(tmp_path: Path, allowed: Any) -> None:
    """A boolean, or any list of names."""
    with Runtime(home=tmp_path, safe_mode=True) as rt:
        rt.registry.register_plugin_override_policy("weather", allowed)
        rt.registry.register_plugin_override_policy("other", iter(["terminal"]))
        assert rt.registry._store._opt_ins["other"] == {"terminal"}
        assert rt.registry._store._opt_ins["weather"] in {True, False, frozenset({"terminal"}), frozenset()}


@pytest.mark.parametrize("value", [3, b"x", []])
def test_paths_that_are_none(tmp_path: Path, value: Any) -> None:
    """What a host gives as a path and isn't one is a TypeError in words, wherever a path is taken."""
    with Runtime(home=tmp_path, safe_mode=True) as rt, rt.session() as session:
        with pytest.raises(TypeError, match=r"^cwd must be a path"):
            session.set_cwd(value)
        with pytest.raises(TypeError, match=r"^cwd must be a path"):
            rt.session(cwd=value)
        with pytest.raises(TypeError, match=r"^task_id must be text or None"):
            session.set_cwd(tmp_path, value)
    with pytest.raises(TypeError, match=r"^project must be a path"):
        Runtime(home=tmp_path, project=value)
