"""What became of a plugin's last load is told without loading it (plugins.L9)."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.plugins import outcomes
from mibyan.plugins.contents import Contents
from mibyan.plugins.outcomes import Outcomes, _read
from mibyan.plugins.rows import row
from mibyan.plugins.state import PluginRecord

from .world import World, answer, frozen_tool, tool, write

BROKEN = "raise ValueError('no luck')\n"
#: Everything that a row says of an outcome.
TOLD = ("state", "reason", "fix", "tools", "hooks", "overrides", "rejected", "import_ms", "schema_tokens", "loaded_at")


def kept(world: World) -> Path:
    return world.home / "cache" / "plugins.json"


def surveyed(world: World, plugin_id: str, **services: Any) -> PluginRecord:
    """What a process that loads nothing says of a plugin."""
    return next(record for record in world.loader(**services).survey() if record.id == plugin_id)


def told(record: PluginRecord, snapshot: Any = None) -> dict[str, Any]:
    return {key: value for key, value in row(record, snapshot).items() if key in TOLD}


# What is told -----------------------------------------------------------------------------------------------------


HOOKED = tool("word") + "    ctx.register_hook('post_tool_call', lambda: None)\n"


def place(world: World, kind: str, source: str) -> str:
    """A plugin of some kind; its id."""
    if kind == "wheel":
        return world.wheel("out_comes", source)
    if kind == "file":
        world.tool_file("clock", f"import mibyan\nregistry = mibyan.registry\n{source}\nif 0: pass\n"
                        "registry.register('word', 'words', {'description': 'd'}, lambda args: 'word')\n")  # fmt: skip
        return "tools.clock"
    project = kind == "project"
    root = world.folder("plain", source, project=project)
    if project:
        world.trust("plain", root)
    return "plain"


@pytest.mark.parametrize("source", [HOOKED, BROKEN])
@pytest.mark.parametrize("kind", ["folder", "project", "wheel", "file"])
def test_the_last_outcome_is_told(world: World, kind: str, source: str) -> None:
    """State, reason, hint, tools, hooks, overrides, import time, tokens and time are those of the load; found before it."""
    plugin_id = place(world, kind, source if kind != "file" or source == BROKEN else "")
    before = surveyed(world, plugin_id)
    assert (before.state, before.loaded_at) == ("found", None)
    loader = world.load()
    loaded = loader.get(plugin_id)
    assert loaded.state == ("failed" if source == BROKEN else "active")
    snapshot = loader._services.store.snapshot
    assert told(surveyed(world, plugin_id)) == told(loaded, snapshot)
    assert row(surveyed(world, plugin_id))["loaded_at"].endswith("+00:00")
    if source != BROKEN:
        assert row(surveyed(world, plugin_id))["schema_tokens"] > 5


def test_an_override_is_told(world: World) -> None:
    """What a plugin displaced is part of its outcome."""
    world.folder("a", tool("word"))
    world.folder("b", tool("word").replace("answer", "x").replace("'word')", "'word', override=True)", 1)
                 .replace("lambda args: 'word', override=True)", "lambda args: 'b', override=True)"))  # fmt: skip
    world.config("plugins: {entries: {b: {allow_tool_override: true}}}")
    assert world.load().get("b").overrides == ("word",)
    assert surveyed(world, "b").overrides == ("word",)


def test_a_survey_still_imports_nothing(world: World) -> None:
    """plugins.L8: what is told of an installed plugin's last load costs no import."""
    plugin_id = world.wheel("out_quiet", HOOKED)
    world.load().close()
    del sys.modules["out_quiet"]
    assert surveyed(world, plugin_id).state == "active"
    assert "out_quiet" not in sys.modules


def test_an_announced_plugin_is_ready_and_once_imported_active(world: World) -> None:
    """A manifest that is read tells less than an import: the import's outcome stays until the content changes."""
    root = world.folder("lazy", tool("word"), {"tools": [frozen_tool("word")]})
    loader = world.load()
    assert surveyed(world, "lazy").state == "ready"
    answer(loader, "word")
    active = surveyed(world, "lazy")
    assert (active.state, active.import_ms) == ("active", loader.get("lazy").import_ms)
    before = kept(world).stat().st_mtime_ns
    world.load()
    assert kept(world).stat().st_mtime_ns == before
    assert surveyed(world, "lazy") == active
    write(root / "more.py", "x = 1\n")
    assert surveyed(world, "lazy").state == "found"


def test_a_first_use_that_fails_is_told(world: World) -> None:
    """What a plugin's import came to at its first use is an outcome like any."""
    world.folder("lazy", BROKEN, {"tools": [frozen_tool("word")]})
    loader = world.load()
    with pytest.raises(Exception, match="no luck"):
        loader.activate("lazy")
    found = surveyed(world, "lazy")
    assert (found.state, found.hint) == ("failed", "mibyan plugins disable lazy")
    assert "no luck" in found.reason


def test_a_reload_and_a_plugin_that_lost_what_it_needs_are_told(world: World) -> None:
    """A reload is a load; so is being taken out because a required plugin failed."""
    root = world.folder("plain", BROKEN)
    world.folder("needy", tool("word"), {"requires_plugins": ["plain"], "after": []})
    loader = world.load()
    assert surveyed(world, "needy").state == "needs"
    assert "plain" in surveyed(world, "needy").reason
    write(root / "__init__.py", tool("other"))
    loader.reload("plain")
    assert surveyed(world, "plain").tools == ("other",)


@pytest.mark.parametrize(
    ("config", "state"),
    [("plugins: {disabled: [plain]}", "disabled"), ("plugins: {entries: {plain: {isolation: process}}}", "failed")],
)
def test_what_speaks_against_it_now_is_told_instead(world: World, config: str, state: str) -> None:
    """A plugin that wouldn't be loaded now is told as that, whatever its last load came to; afterwards it is back."""
    world.folder("plain", HOOKED)
    world.load()
    world.config(config)
    assert (surveyed(world, "plain").state, surveyed(world, "plain").loaded_at) == (state, None)
    world.load()
    world.config("")
    assert surveyed(world, "plain").state == "active"


# For which content ------------------------------------------------------------------------------------------------


def edited(root: Path) -> None:
    write(root / "__init__.py", HOOKED + "#\n")


CHANGES: dict[str, Callable[[Path], object]] = {
    "edited": edited,
    "another file": lambda root: write(root / "deep" / "more.txt", ""),
    "renamed": lambda root: (root / "helper.py").rename(root / "helped.py"),
    "removed": lambda root: (root / "helper.py").unlink(),
    "manifest": lambda root: write(root / "plugin.yaml", '{"version": "2"}'),
}
SAME: dict[str, Callable[[Path], object]] = {
    "touched": lambda root: os.utime(root / "__init__.py", (1, 1)),
    "bytecode": lambda root: write(root / "__pycache__" / "x.pyc", ""),
    "hidden": lambda root: write(root / ".git" / "HEAD", ""),
    "written again": lambda root: write(root / "helper.py", ""),
}


@pytest.mark.parametrize("change", [*CHANGES, *SAME])
def test_an_outcome_is_for_a_folder_s_bytes(world: World, change: str) -> None:
    """One changed, added, renamed or removed file and nothing is known; bytecode and times of change don't count."""
    root = world.folder("plain", HOOKED, helper="")
    world.load()
    {**CHANGES, **SAME}[change](root)
    assert surveyed(world, "plain").state == ("found" if change in CHANGES else "active")


@pytest.mark.parametrize(
    "record", [None, "", "out_wheel/__init__.py,,\n", "out_wheel/__init__.py,,\nout_beside.py,,\n"]
)
def test_an_outcome_is_for_a_wheel_s_installation(world: World, record: str | None) -> None:
    """A wheel's version, its `RECORD` and the files that this lists are its content, those of its own module in any case."""
    plugin_id = world.wheel("out_wheel", HOOKED)
    info = world.site / "out_wheel-1.0.dist-info"
    write(world.site / "out_beside.py", "")
    if record is not None:
        write(info / "RECORD", record)

    def is_known() -> bool:
        state = surveyed(world, plugin_id).state
        world.load()
        return state == "active"

    assert not is_known()
    assert is_known()
    write(world.site / "out_beside.py", "x = 1\n")
    assert is_known() == ("beside" not in (record or ""))
    write(world.site / "out_wheel" / "part.py", "")
    assert not is_known()
    write(info / "RECORD", "out_wheel/__init__.py,,1\n")
    assert not is_known()
    info.rename(world.site / "out_wheel-1.1.dist-info")
    assert not is_known()


def test_an_editable_install_is_told_apart_by_its_files(world: World) -> None:
    """Editable: path, time of change and size of each file, whatever RECORD says."""
    plugin_id = world.wheel("out_edit", HOOKED)
    info = world.site / "out_edit-1.0.dist-info"
    write(info / "RECORD", "")
    write(info / "direct_url.json", '{"dir_info": {"editable": true}}')
    world.load()
    assert surveyed(world, plugin_id).state == "active"
    os.utime(world.site / "out_edit" / "__init__.py", (1, 1))
    assert surveyed(world, plugin_id).state == "found"


def test_a_module_that_is_one_file(world: World) -> None:
    """`plugins.modules`: a module without a folder is told apart by its file."""
    path = write(world.site / "out_single.py", HOOKED)
    world.config("plugins: {modules: [out_single]}")
    world.load()
    assert surveyed(world, "out_single").state == "active"
    path.write_text(path.read_text() + "#\n")
    assert surveyed(world, "out_single").state == "found"


def test_what_can_t_be_told_has_no_digest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Too many files: nothing is kept, and nothing is wrong."""
    world.folder("plain", HOOKED)
    monkeypatch.setattr("mibyan.plugins.contents.FILES_LIMIT", 1)
    world.load()
    assert Contents().digest(surveyed(world, "plain").candidate) is None
    assert surveyed(world, "plain").state == "found"
    assert not kept(world).exists()


def test_odd_files_in_a_folder(world: World) -> None:
    """Links in a circle and to nowhere, pipes, links to folders: they are what they are, and aren't followed or read."""
    root = world.folder("plain", HOOKED)
    (root / "loop").symlink_to(root / "loop")
    (root / "nowhere").symlink_to(root / "not there")
    (root / "up").symlink_to(root.parent)
    os.mkfifo(root / "pipe")
    world.load()
    assert surveyed(world, "plain").state == "active"
    (root / "nowhere").unlink()
    assert surveyed(world, "plain").state == "found"


def test_large_folders_are_told_apart_by_time_and_size(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a limit of bytes the files aren't read."""
    root = world.folder("plain", HOOKED)
    monkeypatch.setattr("mibyan.plugins.contents.BYTES_LIMIT", 10)
    world.load()
    assert surveyed(world, "plain").state == "active"
    os.utime(root / "__init__.py", (1, 1))
    assert surveyed(world, "plain").state == "found"


# The file ---------------------------------------------------------------------------------------------------------


def test_nothing_is_written_when_nothing_changed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second load that comes to the same leaves the file alone; an hour later it is given the new time."""
    world.folder("plain", HOOKED)
    world.folder("bad", BROKEN)
    world.load()
    before = kept(world).stat()
    world.load()
    assert (kept(world).stat().st_ino, kept(world).stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    monkeypatch.setattr(outcomes, "_STALE", -1.0)
    world.load()
    assert kept(world).stat().st_ino != before.st_ino


def test_an_explicit_load_gives_the_time_anew(world: World) -> None:
    """`plugins list --load`: also what is as it was gets the time of this load."""
    world.folder("plain", HOOKED)
    first = world.load().get("plain").loaded_at
    loader = world.load()
    assert surveyed(world, "plain").loaded_at == first
    loader.keep_outcomes(afresh=True)
    assert surveyed(world, "plain").loaded_at == loader.get("plain").loaded_at != first


def test_what_is_gone_is_dropped(world: World, tmp_path: Path) -> None:
    """The file doesn't grow: one outcome for a plugin's place, none once that is gone; another place's stays."""
    root = world.folder("plain", HOOKED)
    world.folder("other", tool("other"))
    for number in range(5):
        write(root / "__init__.py", HOOKED + f"# {number}\n")
        world.load()
    assert len(json.loads(kept(world).read_text())["outcomes"]["plain"]) == 1
    elsewhere = world.folder("local", tool("local"), project=True)
    world.trust("local", elsewhere)
    world.load()
    for file in root.rglob("*"):
        if file.is_file():
            file.unlink()
    world.load(project=None)
    assert set(json.loads(kept(world).read_text())["outcomes"]) == {"other", "local"}
    assert surveyed(world, "local").state == "active"


def test_the_number_of_outcomes_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest stay."""
    monkeypatch.setattr(outcomes, "_LIMIT", 3)
    for number in range(5):
        world.folder(f"p{number}", tool(f"t{number}"))
    world.load()
    assert set(json.loads(kept(world).read_text())["outcomes"]) == {"p2", "p3", "p4"}


def test_no_home_is_made(world: World, tmp_path: Path) -> None:
    """A home that isn't there isn't made by loading."""
    absent = tmp_path / "absent"
    world.folder("plain", tool("word"), project=True)
    world.load(home=absent)
    world.loader(home=absent).survey()
    assert not absent.exists()


FOREIGN = {
    "empty": "", "torn": '{"version": 1, "outcomes": {"plain": {"abc": {"state": "act',
    "a list": "[]", "a number": "1", "another version": '{"version": 99, "outcomes": {}}',
    "wrong shapes": '{"version": 1, "outcomes": {"plain": [1], "x": {"y": 3}}}', "no outcomes": '{"version": 1}',
    "deep": "[" * 100_000, "not text": "\x00\ud800",
}  # fmt: skip


@pytest.mark.parametrize("content", FOREIGN)
def test_a_broken_file_is_an_empty_one(world: World, content: str, caplog: pytest.LogCaptureFixture) -> None:
    """What isn't ours is passed over without a word, and replaced by the next load that has something to keep."""
    world.folder("plain", HOOKED)
    kept(world).parent.mkdir()
    kept(world).write_bytes(FOREIGN[content].encode("utf-8", "surrogatepass"))
    assert surveyed(world, "plain").state == "found"
    world.load()
    assert surveyed(world, "plain").state == "active"
    assert not caplog.records


WRONG: dict[str, Any] = {
    "state": "disabled", "reason": 3, "hint": 3, "tools": "word", "hooks": [1], "overrides": None, "import_ms": "1",
    "tool_tokens": [1e999], "time": 1e300, "origin": None, "by": [], "more": 1,
}  # fmt: skip


@pytest.mark.parametrize("key", WRONG)
def test_an_outcome_with_a_wrong_part_is_none(world: World, key: str) -> None:
    """Each part is looked at: what somebody else wrote there never reaches a table."""
    world.folder("plain", HOOKED)
    world.load()
    content = json.loads(kept(world).read_text())
    (data,) = content["outcomes"]["plain"].values()
    data[key] = WRONG[key]
    kept(world).write_text(json.dumps(content))
    assert surveyed(world, "plain").state == "found"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(content=JSON, inside=st.booleans())
def test_whatever_the_file_says_is_read(tmp_path_factory: pytest.TempPathFactory, content: Any, inside: bool) -> None:
    """Total: any JSON is read as outcomes or as none."""
    path = tmp_path_factory.mktemp("kept") / "plugins.json"
    path.write_text(json.dumps({"version": 1, "outcomes": {"x": {"y": content}, "z": content}} if inside else content))
    assert not any(known for known in _read(path).values())


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_home_that_can_t_be_written_is_no_error(world: World, what: str, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing is kept, nothing is said, and the plugins work."""
    world.folder("plain", HOOKED)
    if what == "file":
        write(world.home / "cache", "in the way")
    else:
        kept(world).mkdir(parents=True)
    loader = world.load()
    assert loader.get("plain").state == "active"
    assert not caplog.records
    assert not loader._services.log.report().problems
    assert surveyed(world, "plain").state == "found"


def test_a_lock_that_is_held_is_waited_for_in_vain(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs with the lock holds nobody up for long: what isn't kept now is kept at the next start."""
    from mibyan.paths import file_lock

    monkeypatch.setattr(outcomes, "_PATIENCE", 0.01)
    world.folder("plain", HOOKED)
    with file_lock(kept(world)):
        assert world.load().get("plain").state == "active"
    assert surveyed(world, "plain").state == "found"
    world.load()
    assert surveyed(world, "plain").state == "ready"


def _load_in(home: str, plugin_id: str, barrier: Any) -> None:
    """In a process of its own: keep an outcome at the same time as others."""
    from mibyan.plugins.candidate import Candidate
    from mibyan.tools.store import RegistryStore

    root = Path(home) / "plugins" / plugin_id
    candidate = Candidate(plugin_id, "user", str(root / "plugin.yaml"), root=root)
    store = Outcomes(Path(home))
    barrier.wait(60)
    for number in range(5):
        record = PluginRecord(candidate, "active", f"imported in {number} ms", loaded_at=1e9 + number)
        store.keep([record], RegistryStore(), Contents(), afresh=True)


def test_two_processes_lose_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written under a lock and as a whole: what others keep meanwhile stays, and no reader sees a part."""
    names = ["one", "two", "three"]
    for name in names:
        world.folder(name, HOOKED)
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(len(names))
    monkeypatch.setattr(outcomes, "_PATIENCE", 60.0)
    processes = [context.Process(target=_load_in, args=(str(world.home), name, barrier)) for name in names]
    for process in processes:
        process.start()
    while any(process.is_alive() for process in processes):
        if kept(world).exists():
            assert json.loads(kept(world).read_text())["version"] == 1
    for process in processes:
        process.join()
    found = _read(kept(world))
    last = {name: [one.time for one in known.values()] for name, known in found.items()}
    assert last == {name: [1e9 + 4] for name in names}
    assert not [path for path in kept(world).parent.iterdir() if path.suffix == ".tmp"]


def test_a_schema_that_can_t_be_made_keeps_the_rest(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A typed function whose schema fails costs its plugin the number of tokens, not its outcome."""
    world.folder("plain", HOOKED)
    with monkeypatch.context() as patch:
        patch.setattr("mibyan.plugins.rows.tool_tokens", lambda record, snapshot: 1 // 0)
        world.load()
    (known,) = _read(kept(world))["plain"].values()
    assert (known.state, known.tool_tokens) == ("active", None)
    assert row(surveyed(world, "plain"))["schema_tokens"] == 0


def test_a_hand_named_directory_is_kept_too(world: World, tmp_path: Path) -> None:
    """`discover_builtin_tools(dir)` loads; it drops nothing that was kept of others."""
    world.folder("plain", HOOKED)
    loader = world.load()
    write(tmp_path / "more" / "extra.py", "import mibyan\nregistry = mibyan.registry\n"
          "registry.register('extra', 'words', {'description': 'd'}, lambda args: 'x')\n")  # fmt: skip
    assert loader.load_tools_directory(tmp_path / "more") == ["tools.extra"]
    assert set(_read(kept(world))) == {"plain", "tools.extra"}
