"""`mibyan.lock` as a file (plugins.S3): deterministic, readable, and whatever stands in it is read or refused with a place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mibyan.errors import ConfigError
from mibyan.tools.lockdiff import differences
from mibyan.tools.locked import Lock, LockedPlugin, LockedTool
from mibyan.tools.lockfile import SIZE_LIMIT, parse, read_lock, text_of, write_lock

BIDI = "\u202e"
PARAMETERS = {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "integer", "default": 1}}}


def a_tool(name: str = "echo", description: str = "Say it.", owner: str = "bench", **more: object) -> LockedTool:
    return LockedTool(name, owner, "words", description, {"parameters": more.pop("parameters", PARAMETERS)}, **more)


def a_lock(*tools: LockedTool) -> Lock:
    plugins = {tool.owner: LockedPlugin(tool.owner, "user", "1.0", "0" * 64) for tool in tools}
    return Lock(plugins, {tool.name: tool for tool in tools})


def test_a_lock_reads_back_as_it_was_written_S3(tmp_path: Path) -> None:
    """plugins.S3: line breaks of every kind, hidden characters, other scripts, half a surrogate pair."""
    description = (
        f"First.\n\nThird\r\twith a {BIDI} and a \u200b\x1b[2J and \udc80 and \U000e0041, مرحبا \u00a0 \u2028 end\n"
    )
    lock = a_lock(a_tool(description=description), a_tool("zebra", dynamic=True))
    write_lock(tmp_path / "mibyan.lock", lock)
    text = (tmp_path / "mibyan.lock").read_text(encoding="utf-8")
    assert read_lock(tmp_path / "mibyan.lock") == lock
    assert text == text_of(lock)
    assert all(character == "\n" or character.isprintable() for character in text.replace("\u00a0", "\0"))
    assert "\\u202e" in text
    assert "مرحبا" in text


def test_the_text_is_the_same_whatever_the_order_S3() -> None:
    """plugins.S3: neither the order of tools nor that of keys is in it, and each line of a description is a line."""
    one, two = a_tool("a", "Line one\nLine two"), a_tool("b")
    turned = {"properties": dict(reversed(PARAMETERS["properties"].items())), "type": "object"}
    text = text_of(a_lock(one, two))
    again = parse(text_of(a_lock(a_tool("b", parameters=turned), one)), Path("x"))
    assert text_of(again) == text
    assert parse(text_of(a_lock(two, one)), Path("x")) == parse(text, Path("x"))
    assert a_tool(parameters=turned).hash == a_tool().hash
    assert [line.strip() for line in text.splitlines()].count('"Line two"') == 1
    assert json.loads(text)["mibyan_lock"] == 1
    assert json.loads(text)["written_by"].startswith("mibyan ")


@pytest.mark.parametrize(
    "other",
    [
        a_tool("echo2"), a_tool(description="Say it!"), a_tool(parameters={"type": "object"}),
        a_tool(parameters={**PARAMETERS, "properties": {**PARAMETERS["properties"], "a": {"type": "integer", "default": True}}}),
        a_tool(parameters={**PARAMETERS, "properties": {**PARAMETERS["properties"], "a": {"type": "integer", "default": 1.0}}}),
    ],
)  # fmt: skip
def test_the_hash_is_of_name_description_and_schema_S3(other: LockedTool) -> None:
    """plugins.S3: each of them counts; what Python takes for equal and a model doesn't is told apart."""
    assert other.hash != a_tool().hash
    if other.name == "echo":
        assert differences(a_lock(a_tool()), a_lock(other)).tools[0].what in {("description",), ("schema",)}


def test_there_is_no_lock(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "mibyan.lock") is None


GOOD = text_of(a_lock(a_tool()))
BAD = {
    "empty": ("", "isn't JSON"),
    "torn": (GOOD[: len(GOOD) // 2], "isn't JSON"),
    "not a lock": ("[]", "isn't a lock"),
    "another's": ('{"lockfileVersion": 3}', "isn't a lock"),
    "newer": (GOOD.replace('"mibyan_lock": 1', '"mibyan_lock": 2'), "in format 2, and this version knows 1"),
    "a format that is none": (GOOD.replace('"mibyan_lock": 1', '"mibyan_lock": true'), "must be a number"),
    "unknown key": (GOOD.replace('"written_by"', '"signed_by"'), "unknown key 'signed_by'"),
    "twice": (GOOD.replace('"toolset": "words"', '"toolset": "words", "toolset": "x"'), "'toolset' stands there twice"),
    "NaN": (GOOD.replace('"default": 1', '"default": NaN'), "NaN isn't JSON"),
    "deep": ("[" * 100_000, "isn't"),
    "a number without end": (GOOD.replace('"default": 1', '"default": ' + "1" * 5000), "isn't a lock"),
    "changed by hand": (GOOD.replace("Say it.", "Say it all."), "hash isn't that of the text"),
    "changed hash": (GOOD.replace('"hash": "sha256:', '"hash": "sha256:0'), "hash isn't that of the text"),
    "no owner": (GOOD.replace('"owner": "bench"', '"owner": "bank"'), "there is no plugin 'bank'"),
    "lacks": (GOOD.replace('"dynamic": false,', ""), "lacks `dynamic`"),
    "wrong type": (GOOD.replace('"toolset": "words"', '"toolset": 1'), "must be texts"),
    "a text for lines": (GOOD.replace('[\n        "Say it."\n      ]', '"Say it."'), "must be a list of lines"),
    "no object": ('{"mibyan_lock": 1, "written_by": "x", "plugins": [], "tools": {}}', "`plugins` must be there"),
    "bad digest": (GOOD.replace("sha256:" + "0" * 64, "sha256:0"), "digest must be"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_isnt_a_lock_is_refused_with_file_and_line_S3(kind: str, tmp_path: Path) -> None:
    """Garbled, hostile and newer files: the error says where and what to do, and the file stays as it is."""
    text, said = BAD[kind]
    path = tmp_path / "mibyan.lock"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_lock(path)
    assert said in str(caught.value)
    assert f"{path}:" in str(caught.value)
    assert caught.value.hint
    assert path.read_text() == text


def test_the_place_is_that_of_the_tool(tmp_path: Path) -> None:
    """A plugin and a tool may have one name: the line is the one that is meant."""
    text = text_of(a_lock(a_tool("bench"))).replace('"toolset": "words"', '"toolset": 1')
    line = next(number for number, one in enumerate(text.splitlines(), 1) if one == '    "bench": {' and number > 8)
    with pytest.raises(ConfigError, match=f"mibyan.lock:{line}: tools.bench"):
        parse(text, tmp_path / "mibyan.lock")


def test_what_isnt_a_file_is_refused_S3(tmp_path: Path) -> None:
    """A pipe isn't waited for; folders, loops, links to nowhere, bytes that aren't text and huge files are refused."""
    path = tmp_path / "mibyan.lock"

    def make_huge() -> None:
        path.touch()
        os.truncate(path, SIZE_LIMIT + 1)

    for make in (
        lambda: os.mkfifo(path), path.mkdir, lambda: path.symlink_to(path), lambda: path.symlink_to(tmp_path / "gone"),
        lambda: path.write_bytes(b"\xff\xfe{}"), make_huge,
    ):  # fmt: skip
        make()
        with pytest.raises(ConfigError, match=r"mibyan\.lock"):
            read_lock(path)
        path.rmdir() if path.is_dir() else path.unlink()


def test_a_linked_lock_is_read_and_stays_a_link(tmp_path: Path) -> None:
    """Who keeps the file elsewhere (with version control) may."""
    write_lock(tmp_path / "there", a_lock())
    (tmp_path / "mibyan.lock").symlink_to("there")
    write_lock(tmp_path / "mibyan.lock", a_lock(a_tool()))
    assert (tmp_path / "mibyan.lock").is_symlink()
    assert read_lock(tmp_path / "there") == a_lock(a_tool())


def test_a_writer_that_is_killed_leaves_the_old_lock_or_the_new_one_S3(tmp_path: Path) -> None:
    """Kill -9 at any moment of the write: what is read afterwards is whole."""
    path = tmp_path / "mibyan.lock"
    write_lock(path, a_lock(a_tool()))
    script = (
        "import sys, pathlib\n"
        "from mibyan.tools.lockfile import read_lock, write_lock\n"
        "path = pathlib.Path(sys.argv[1]); lock = read_lock(path)\n"
        "print('ready', flush=True)\n"
        "while True: write_lock(path, lock)\n"
    )
    for _ in range(3):
        child = subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        for _ in range(200):
            assert read_lock(path) == a_lock(a_tool())
        child.send_signal(signal.SIGKILL)
        child.communicate()
        assert read_lock(path) == a_lock(a_tool())


# How two differ -------------------------------------------------------------------------------------------------------


def test_a_diff_shows_what_changed_and_hides_nothing_S3() -> None:
    """A description is what a model obeys: whatever a terminal would hide or obey is written out."""
    before, after = (
        a_tool(description="Say it.\nPlainly."),
        a_tool(description=f"Say it.\n{BIDI}\x1b[8mObey\x07\u200b."),
    )
    (change,) = differences(a_lock(before), a_lock(after)).tools
    assert (change.name, change.change, change.plugin, change.what) == ("echo", "changed", "bench", ("description",))
    assert "-  Plainly." in change.diff.splitlines()
    assert "+  \\u202e\\u001b[8mObey\\u0007\\u200b." in change.diff.splitlines()
    assert all(character == "\n" or character.isprintable() for character in change.diff)


def test_a_diff_tells_what_came_and_went() -> None:
    """Added, removed, another owner, another toolset; and of plugins what is another."""
    before = a_lock(a_tool("gone"), a_tool("moved"), a_tool("same"))
    after = a_lock(a_tool("came"), a_tool("moved", owner="other"), a_tool("same"))
    found = differences(before, after)
    assert [(one.name, one.change, one.what) for one in found.tools] == [
        ("came", "added", ()), ("gone", "removed", ()), ("moved", "changed", ("owner",)),
    ]  # fmt: skip
    assert [(one.id, one.change) for one in found.plugins] == [("other", "added")]
    assert found.tools[0].diff.startswith("--- /dev/null\n+++ now/came\n")
    newer = Lock({"bench": LockedPlugin("bench", "pip", "2.0", "")}, {})
    (changed,) = differences(Lock({"bench": LockedPlugin("bench", "user", "1.0", "1" * 64)}, {}), newer).plugins
    assert changed.what == ("source", "version", "digest")
    assert "version 1.0 is now 2.0" in changed.sentence
    assert not differences(before, before)


def test_a_lock_that_can_t_be_looked_at_isn_t_taken_for_none_S3(tmp_path: Path) -> None:
    """A folder that may not be searched, or a loop of links above it: that is no absence."""
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match="can't read"):
        read_lock(tmp_path / "loop" / "mibyan.lock")
    assert read_lock(tmp_path / "nowhere" / "mibyan.lock") is None
