"""`mibyan plugins list` and `show`: what the last load came to, told without loading (plugins.L8, L9)."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import add_plugin

TOLD = ("state", "reason", "fix", "tools", "hooks", "overrides", "rejected", "import_ms", "schema_tokens", "loaded_at")


def told(done, plugin_id: str = "bench") -> dict:
    one = next(one for one in done.data["plugins"] if one["id"] == plugin_id)
    return {key: one[key] for key in TOLD}


def test_list_tells_the_last_load(run: Callable, bench: Path) -> None:
    """`found` and no time before any load; then exactly what `list --load` told, and nothing is imported."""
    assert told(run("plugins", "list", "--json"))["state"] == "found"
    assert told(run("plugins", "list", "--json"))["loaded_at"] is None
    loaded = told(run("plugins", "list", "--load", "--json"))
    assert loaded["state"] == "active"
    assert loaded["loaded_at"] is not None
    later = run("plugins", "list", "--json")
    assert told(later) == loaded
    assert "greeting" not in later.err


@pytest.mark.parametrize("command", [["call", "echo", "text=x"], ["tools", "list"], ["tools", "schema"]])
def test_every_load_counts(run: Callable, bench: Path, command: list[str]) -> None:
    """A call and a listing load too: what became of the plugins then is told."""
    add_plugin(bench, "broken", "raise ValueError('no luck')\n")
    run(*command)
    listed = run("plugins", "list", "--json")
    assert told(listed)["state"] == "active"
    assert told(listed)["schema_tokens"] > 20
    assert told(listed, "broken")["state"] == "failed"
    assert [one["subject"] for one in listed.data["problems"]] == ["plugin:broken"]
    assert run("plugins", "list", "--strict").code == 3


def test_show_tells_it_with_its_time(run: Callable, bench: Path) -> None:
    """`plugins show`: the same for one plugin, for people and as JSON."""
    assert "loaded at" not in run("plugins", "show", "bench").out
    loaded = told(run("plugins", "list", "--load", "--json"))
    shown = run("plugins", "show", "bench", "--json").data
    assert {key: shown[key] for key in TOLD} == loaded
    assert f"loaded at    {loaded['loaded_at']}".split() == run("plugins", "show", "bench").out.splitlines()[5].split()


def test_the_table_has_the_time(run: Callable, bench: Path) -> None:
    """For people: to the minute, in UTC; nothing for what was never loaded."""
    run("plugins", "list", "--load")
    add_plugin(bench, "new", "")
    head, *rows = run("plugins", "list").out.splitlines()
    assert head.split()[-1] == "LOADED"
    by_id = {row.split()[0]: row.split() for row in rows if row}
    assert by_id["bench"][-1].endswith("Z")
    assert by_id["new"][-1] == "-"


def test_a_broken_configuration_turns_off_what_was_loaded(run: Callable, bench: Path) -> None:
    """plugins.L6: with a configuration error all are off, whatever their last load came to."""
    run("plugins", "list", "--load")
    (bench / "config.yaml").write_text("a: [\n")
    done = run("plugins", "list", "--json")
    assert {(one["state"], one["loaded_at"]) for one in done.data["plugins"]} == {("disabled", None)}


def test_an_explicit_load_is_now(run: Callable, bench: Path) -> None:
    """`plugins list --load` gives the outcome a new time though it is as it was."""
    run("plugins", "list", "--load")
    path = bench / "cache" / "plugins.json"
    content = json.loads(path.read_text())
    for known in content["outcomes"].values():
        for outcome in known.values():
            outcome["time"] = 1e9
    path.write_text(json.dumps(content))
    assert told(run("plugins", "list", "--json"))["loaded_at"] == "2001-09-09T01:46:40+00:00"
    loaded = told(run("plugins", "list", "--load", "--json"))
    assert told(run("plugins", "list", "--json")) == loaded
    assert loaded["loaded_at"] > "2020"
