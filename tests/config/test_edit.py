"""Edits: the value changes and nothing else does, no process loses another's edit, no file is ever torn."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from mibyan.config import InvalidConfigError, load_config
from mibyan.config.edit import append_to_list, get, parse_value, remove_from_list, set_value, unset
from mibyan.config.render import block, inline
from mibyan.config.yamlfile import parse_document
from mibyan.errors import ConfigError, MibyanError

#: A file as people keep it: comments, blank lines, odd indentation, every kind of quote and collection.
TEXT = """\
# my settings
plugins:
    disabled:   # ids
        - a     # the first
        - 'b'

    # about single plugins
    entries:
        "x.y": {allow_tool_override: false}   # watch this

# next section
dispatch: {timeout:   300, max_workers: 8}  # in one line
approvals:
    mode: "manual"   # mode
    deny: []  # nothing yet

command_allowlist:
- one # because
- "two"

# the end
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def change(path: Path, text: str, edit, *arguments: object) -> str:
    """The text after an edit."""
    path.write_bytes(text.encode())
    assert edit(path, *arguments) is True
    return path.read_bytes().decode()


def replaced(old: str, new: str, text: str = TEXT) -> str:
    """`text` with the one place changed."""
    assert text.count(old) == 1
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("edit", "arguments", "old", "new"),
    [
        (set_value, ("dispatch.timeout", 5.5), "timeout:   300", "timeout:   5.5"),
        (set_value, ("dispatch.hook_timeout", 5), "max_workers: 8}", "max_workers: 8, hook_timeout: 5}"),
        (set_value, ("approvals.mode", "off"), '"manual"', '"off"'),
        (set_value, ("approvals.timeout", 5), "    deny: []  # nothing yet\n", "    deny: []  # nothing yet\n    timeout: 5\n"),
        (set_value, ("approvals.deny", ["x"]), "deny: []", "deny: [x]"),
        (set_value, ("plugins.disabled", []), "disabled:   # ids\n        - a     # the first\n        - 'b'\n", "disabled: []   # ids\n"),
        (set_value, ("plugins.disabled[1]", "on"), "- 'b'", "- 'on'"),
        (set_value, ("plugins.entries.'x.y'.allow_tool_override", ["a", "b"]), "override: false", "override: [a, b]"),
        (set_value, ("plugins.entries.z.source", "pip"), "# watch this\n", "# watch this\n        z:\n            source: pip\n"),
        (set_value, ("agent.memory.max_chars", 3), '- "two"\n', '- "two"\nagent:\n    memory:\n        max_chars: 3\n'),
        (set_value, ("dispatch", {"timeout": 4}), "dispatch: {timeout:   300, max_workers: 8}  # in one line\n", "dispatch:  # in one line\n    timeout: 4\n"),
        (append_to_list, ("command_allowlist", "rm *"), '- "two"\n', '- "two"\n- rm *\n'),
        (append_to_list, ("plugins.disabled", "c"), "        - 'b'\n", "        - 'b'\n        - c\n"),
        (append_to_list, ("approvals.deny", "git push *"), "deny: []  # nothing yet\n", "deny:  # nothing yet\n        - git push *\n"),
        (append_to_list, ("platform_toolsets.cli", "mine"), '- "two"\n', '- "two"\nplatform_toolsets:\n    cli: [mibyan-cli, mine]\n'),
        (remove_from_list, ("command_allowlist", "two"), '- "two"\n', ""),
        (remove_from_list, ("command_allowlist", "one"), "- one # because\n", ""),
        (remove_from_list, ("plugins.disabled", "b"), "        - 'b'\n", ""),
        (unset, ("plugins.disabled",), "    disabled:   # ids\n        - a     # the first\n        - 'b'\n", ""),
        (unset, ("plugins.entries.'x.y'",), '    entries:\n        "x.y": {allow_tool_override: false}   # watch this\n', "    entries: {}\n"),
        (unset, ("plugins.entries",), '    entries:\n        "x.y": {allow_tool_override: false}   # watch this\n', ""),
        (unset, ("dispatch.timeout",), "timeout:   300, ", ""),
        (unset, ("dispatch.max_workers",), ", max_workers: 8", ""),
        (unset, ("command_allowlist",), 'command_allowlist:\n- one # because\n- "two"\n', ""),
    ],
)  # fmt: skip
@pytest.mark.parametrize("form", ["plain", "crlf", "bom", "no-last-line-end"])
def test_nothing_else_changes(edit, arguments, old, new, form, path):
    """terminal.P3: comments, order, indentation, quotes and line ends stay, byte by byte."""
    before, after = TEXT, replaced(old, new)
    match form:
        case "crlf":
            before, after = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
        case "bom":
            before, after = "\ufeff" + before, "\ufeff" + after
        case "no-last-line-end":
            before, after = before[:-1], after[:-1]
    assert change(path, before, edit, *arguments) == after


@pytest.mark.parametrize(
    ("text", "edit", "arguments", "expected"),
    [
        (None, set_value, ("dispatch.timeout", 5), "dispatch:\n  timeout: 5\n"),
        ("", set_value, ("dispatch.timeout", 5), "dispatch:\n  timeout: 5\n"),
        ("# c\n", set_value, ("dispatch.timeout", 5), "# c\ndispatch:\n  timeout: 5\n"),
        ("# c", append_to_list, ("command_allowlist", "ls"), "# c\ncommand_allowlist: [ls]\n"),
        ("---\n", set_value, ("dispatch.timeout", 5), "---\ndispatch:\n  timeout: 5\n"),
        ("{}\n", set_value, ("dispatch.timeout", 5), "dispatch:\n  timeout: 5\n"),
        ("{dispatch: {}}\n", set_value, ("dispatch.timeout", 5), "{dispatch: {timeout: 5}}\n"),
        ("dispatch:\n", set_value, ("dispatch.timeout", 5), "dispatch:\n  timeout: 5\n"),
        ("dispatch:", set_value, ("dispatch.timeout", 5), "dispatch:\n  timeout: 5"),
        ("dispatch: # c\nagent:\n", set_value, ("dispatch.timeout", 5), "dispatch: # c\n  timeout: 5\nagent:\n"),
        ("dispatch: ~ # c\n", set_value, ("dispatch.timeout", 5), "dispatch: # c\n  timeout: 5\n"),
        ("agent: {} # c\n", set_value, ("agent.memory.max_chars", 5), "agent: # c\n  memory:\n    max_chars: 5\n"),
        ("agent:\n  model:\n  max_turns: 3\n", set_value, ("agent.model", "m"), "agent:\n  model: m\n  max_turns: 3\n"),
        ("dispatch:\n  timeout: 5", unset, ("dispatch.timeout",), "dispatch: {}"),
        ("dispatch:\n  timeout: 5\n", unset, ("dispatch",), ""),
        ("dispatch: {timeout: 5, }\n", set_value, ("dispatch.max_workers", 5), "dispatch: {timeout: 5, max_workers: 5, }\n"),
        ("dispatch: {\n  timeout: 5, # c\n}\n", set_value, ("dispatch.max_workers", 5), "dispatch: {\n  timeout: 5, max_workers: 5, # c\n}\n"),
        ("command_allowlist: [a, 'b', c]\n", remove_from_list, ("command_allowlist", "b"), "command_allowlist: [a, c]\n"),
        ("command_allowlist: [a, b, a]\n", remove_from_list, ("command_allowlist", "a"), "command_allowlist: [b]\n"),
        ("command_allowlist:\n  - a\n", remove_from_list, ("command_allowlist", "a"), "command_allowlist: []\n"),
        ("hooks:\n  pre_tool_call:\n  - matcher: x\n    command: y\n", unset, ("hooks.pre_tool_call[0].matcher",), "hooks:\n  pre_tool_call:\n  - command: y\n"),
        ("hooks:\n  pre_tool_call:\n  - command: |\n      a\n      b\n\n  # c\n  - command: z\n", set_value, ("hooks.pre_tool_call[0].command", "q"), "hooks:\n  pre_tool_call:\n  - command: q\n\n  # c\n  - command: z\n"),
        ("hooks:\n  pre_tool_call:\n  - command: a\n", append_to_list, ("hooks.pre_tool_call", {"command": "b"}), "hooks:\n  pre_tool_call:\n  - command: a\n  - {command: b}\n"),
        ("agent:\n- x\n", unset, ("agent",), ""),
        ("x: &x [a]\ncommand_allowlist: *x\n", append_to_list, ("command_allowlist", "b"), "x: &x [a]\ncommand_allowlist: [a, b]\n"),
        ('agent: {model: "é\U0001f600", max_turns: 5} # \U0001f600\n', set_value, ("agent.max_turns", 6), 'agent: {model: "é\U0001f600", max_turns: 6} # \U0001f600\n'),
        ("%YAML 1.1\n---\ndispatch:\n  timeout: 5\n...\n", set_value, ("agent.model", "b"), "%YAML 1.1\n---\ndispatch:\n  timeout: 5\nagent:\n  model: b\n...\n"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("parser", ["libyaml", "python"])
def test_forms(text, edit, arguments, expected, parser, path, monkeypatch):
    """Missing files, empty sections, braces, block text, anchors: each form is edited as a person would."""
    if parser == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    if text is not None:
        path.write_bytes(text.encode())
    assert edit(path, *arguments) is True
    assert path.read_bytes().decode() == expected


@pytest.mark.parametrize(
    ("edit", "arguments"),
    [
        (set_value, ("dispatch.timeout", 300)),
        (append_to_list, ("command_allowlist", "two")),
        (remove_from_list, ("command_allowlist", "three")),
        (remove_from_list, ("approvals.deny", "x")),
        (unset, ("agent.model",)),
        (unset, ("plugins.disabled[7]",)),
    ],
)
def test_nothing_to_do(edit, arguments, path):
    """An edit that says what the file says already doesn't write it."""
    path.write_text(TEXT)
    before = path.stat()
    assert edit(path, *arguments) is False
    assert path.read_text() == TEXT
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("edit", "arguments", "expected"),
    [
        (set_value, ("dispatch.timeout", -1), "config.yaml:12: key 'dispatch.timeout': expected a number greater than 0, got -1"),
        (set_value, ("dispatch.timeout", True), "expected a number, got true"),
        (set_value, ("dispach.timeout", 1), "there is no such key (did you mean 'dispatch'?)"),
        (set_value, ("plugins.disabled", "a"), "expected a list, got 'a'"),
        (set_value, ("mcp_servers.x.enabled", True), "it needs a 'command'"),
        (set_value, ("command_allowlist.x", 1), "'command_allowlist' is a list"),
        (set_value, ("command_allowlist[9]", "x"), "'command_allowlist' is a list"),
        (set_value, ("dispatch.timeout.x", 1), "'dispatch.timeout' is 300"),
        (set_value, ("agent.model", "\ud800"), "half characters"),
        (set_value, ("agent.model", object()), "can't be a setting"),
        (set_value, ("dispatch.timeout", float("inf")), "isn't a finite number"),
        (set_value, ((), 1), "the key is empty"),
        (set_value, ("plugins.entries.\udcff.source", "project"), "half characters"),
        (set_value, ("a b", 1), "isn't a key"),
        (append_to_list, ("dispatch", 1), "'dispatch' isn't a list, it is a mapping"),
        (append_to_list, ("command_allowlist", 5), "expected text, got 5"),
        (remove_from_list, ("dispatch.timeout", 5), "'dispatch.timeout' isn't a list, it is 300"),
    ],
)  # fmt: skip
def test_refused(edit, arguments, expected, path):
    """An edit that would make the file invalid, or can't be meant, is refused and changes nothing."""
    path.write_text(TEXT)
    with pytest.raises(ConfigError) as caught:
        edit(path, *arguments)
    assert expected in str(caught.value)
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    "key", ["command_allowlist.x", "command_allowlist[9]", "dispatch.timeout.x", "dispatch[0]", "x.y"]
)
def test_unset_below_what_has_nothing_below(key, path):
    """A key below a list, a number or nothing isn't written, so removing it changes nothing."""
    path.write_text(TEXT)
    assert unset(path, key) is False
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    "change", [lambda path: set_value(path, "dispatch.timeout", 5), lambda path: unset(path, "agent.max_turns")]
)
def test_an_anchor_that_is_used_again(change, path):
    """YAML allows an anchor at two places: such a file is read; an edit is refused with the line and what to do."""
    text = "dispatch: {timeout: &a 3}\nagent: {max_turns: &a 4}\n"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"anchor in line 1 .*\nEdit the file by hand"):
        change(path)
    assert path.read_text() == text


@pytest.mark.parametrize("content", [b"a: [1\n", b"- a\n", b"a: 1\na: 2\n", b"caf\xe9: 1", b"\x00"])
def test_broken_file(content, path):
    """A file that can't be read isn't edited: nothing of it could be kept safely."""
    path.write_bytes(content)
    with pytest.raises(MibyanError, match=r"config\.yaml"):
        set_value(path, "dispatch.timeout", 5)
    assert path.read_bytes() == content


def test_unknown_keys_stay(path):
    """terminal.P3: problems that were there before neither hinder an edit nor get lost; an edit can mend them."""
    text = change(path, "plugns: 3 # typo\ncommand_allowlist: [a]\n", append_to_list, "command_allowlist", "b")
    assert text == "plugns: 3 # typo\ncommand_allowlist: [a, b]\n"
    assert change(path, text, unset, "plugns") == "command_allowlist: [a, b]\n"
    with pytest.raises(InvalidConfigError):
        set_value(path, "plugns", 4)


@pytest.mark.parametrize(
    ("text", "edit", "arguments"),
    [
        (
            "dispatch: &d {timeout: 5}\nplugins: {entries: {a: {config: {<<: *d}}}}\n",
            set_value,
            ("dispatch.timeout", 6),
        ),
        (
            "dispatch: &d {timeout: 5}\nplugins: {entries: {a: {config: *d}}}\n",
            set_value,
            ("plugins.entries.a.config.timeout", 6),
        ),
        (
            "dispatch: &d {timeout: 5}\nplugins: {entries: {a: {config: {<<: *d}}}}\n",
            unset,
            ("plugins.entries.a.config.timeout",),
        ),
        ("command_allowlist: &x [a]\napprovals: {deny: *x}\n", append_to_list, ("command_allowlist", "b")),
        ("command_allowlist: &x [a]\napprovals: {deny: *x}\n", remove_from_list, ("approvals.deny", "a")),
        ("command_allowlist: &x [a]\napprovals: {deny: *x}\n", unset, ("command_allowlist",)),
    ],
)
def test_shared_values(text, edit, arguments, path):
    """What an anchor shares isn't changed behind somebody's back: the edit is refused, with what to do."""
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"without changing something else.*\n.*by hand"):
        edit(path, *arguments)
    assert path.read_text() == text


def test_get(path):
    """`get` tells what is written, not a default."""
    path.write_text(TEXT)
    assert get(path, "plugins.disabled") == ["a", "b"]
    assert get(path, "plugins.entries.'x.y'.allow_tool_override") is False
    with pytest.raises(ConfigError, match=r"'agent.model' isn't written in .*config.yaml"):
        get(path, "agent.model")
    with pytest.raises(ConfigError, match="isn't written"):
        get(path.parent / "nope.yaml", "agent.model")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5), ("off", False), ("~", None), ("", None), ("[a, 'b']", ["a", "b"]), ("{a: 1}", {"a": 1}), ('"5"', "5"),
        ("rm *", "rm *"), ("a: b", "a: b"), ("[a", "[a"), ("*x", "*x"), ("x\nother: 1", "x\nother: 1"), ("a # b", "a"),
    ],
)  # fmt: skip
def test_parse_value(text, value):
    """What a person types is YAML where it is, else text."""
    assert parse_value(text) == value


class TestFiles:
    def test_mode_and_link_stay(self, tmp_path):
        """The permissions stay, and so does a symbolic link into a folder of dotfiles."""
        real = tmp_path / "dotfiles" / "mibyan.yaml"
        real.parent.mkdir()
        real.write_text(TEXT)
        real.chmod(0o600)
        path = tmp_path / "config.yaml"
        path.symlink_to(real)
        assert set_value(path, "dispatch.timeout", 5)
        assert path.is_symlink()
        assert "timeout:   5," in real.read_text()
        assert real.stat().st_mode & 0o777 == 0o600

    @pytest.mark.parametrize("kind", ["folder", "fifo", "loop", "dangling-is-made"])
    def test_in_the_way(self, kind, path):
        """What isn't a file is never replaced; a link to a file that doesn't exist yet makes it."""
        match kind:
            case "folder":
                path.mkdir()
            case "fifo":
                os.mkfifo(path)
            case "loop":
                path.symlink_to(path)
            case _:
                path.symlink_to("real.yaml")
        with pytest.raises(MibyanError, match=r"config\.yaml"):
            set_value(path, "dispatch.timeout", 5)
        assert not list(path.parent.glob(".*.tmp"))

    def test_read_only_home(self):
        """A home that can't be written to is a sentence with the path."""
        with pytest.raises(MibyanError, match=r"can't lock /proc/mibyan-home/config\.yaml"):
            set_value(Path("/proc/mibyan-home/config.yaml"), "dispatch.timeout", 5)


class TestProcesses:
    CODE = (
        "import sys; from pathlib import Path; from mibyan.config.edit import append_to_list\n"
        "print('on', flush=True)\n"
        "for n in range(int(sys.argv[3])): append_to_list(Path(sys.argv[1]), 'command_allowlist', f'{sys.argv[2]}{n}')"
    )

    def start(self, path: Path, name: str, count: int) -> subprocess.Popen:
        return subprocess.Popen([sys.executable, "-c", self.CODE, str(path), name, str(count)], stdout=subprocess.PIPE)

    def test_no_lost_update(self, path):
        """terminal.P3: two processes that append at once lose nothing and invent nothing."""
        path.write_text(TEXT)
        processes = [self.start(path, name, 8) for name in "xy"]
        for process in processes:
            with process:
                process.communicate()
            assert process.returncode == 0
        expected = {"one", "two"} | {f"{name}{n}" for name in "xy" for n in range(8)}
        found = load_config(path.parent).settings.command_allowlist
        assert set(found) == expected
        assert len(found) == len(expected)
        assert re.findall("#.*", path.read_text()) == re.findall("#.*", TEXT)

    def test_killed_writer(self, path):
        """terminal.P3: kill -9 in the middle leaves a whole file with every grant that was made, and no lock."""
        path.write_text(TEXT)
        for number in range(4):
            with self.start(path, f"k{number}-", 10_000) as process:
                process.stdout.readline()
                # Not at once: the first edits come after the imports.
                seen = 0
                while seen < 2 + number:
                    seen = sum(
                        item.startswith(f"k{number}-") for item in load_config(path.parent).settings.command_allowlist
                    )
                process.send_signal(signal.SIGKILL)
            text = path.read_text()
            assert re.findall("#.*", text) == re.findall("#.*", TEXT)
            items = load_config(path.parent).settings.command_allowlist
            assert [f"k{number}-{n}" for n in range(seen)] == [
                item for item in items if item.startswith(f"k{number}-")
            ][:seen]
        assert append_to_list(path, "command_allowlist", "after")


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


@given(value=values, quote=st.sampled_from([None, "'", '"']))
def test_rendered_values_read_back(value, quote):
    """What is written as YAML reads back as exactly the same value, in one line and in lines of its own."""
    for text in (f"k: {inline(value, quote=quote)}", f"k: [{inline(value)}, 1]", "\n".join(block(["k"], value, 3))):
        found = parse_document(text, "f").data["k"]
        assert json.dumps(found) in {json.dumps(value), json.dumps([value, 1])}


names = st.sampled_from(["a", "b.c", "on", "12", "é", "x y"])
config_data = st.dictionaries(
    names, st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6), max_size=4
)  # fmt: skip


def write(data: object, draw, indent: int = 0) -> list[str]:
    """`data` as a person may write it: each collection in lines or in braces, comments anywhere."""
    lines: list[str] = []
    entries = data.items() if isinstance(data, dict) else [(None, item) for item in data]
    for name, value in entries:
        if draw(st.booleans()):
            lines.append(" " * draw(st.integers(0, 5)) + "# comment" if draw(st.booleans()) else "")
        head = " " * indent + ("-" if name is None else f"{inline(name)}:")
        comment = draw(st.sampled_from(["", "  # c"]))
        if isinstance(value, dict | list) and value and name is not None and draw(st.booleans()):
            lines += [head + comment, *write(value, draw, indent + draw(st.integers(1, 4)))]
        else:
            lines.append(f"{head} {inline(value)}{comment}")
    return lines


def places(data: object, path: tuple = ()):
    """The path of everything in `data`."""
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, value in parts:
        yield (*path, name)
        yield from places(value, (*path, name))


@given(data=config_data, value=values, drawn=st.data())
def test_any_edit_of_any_file(data, value, drawn, tmp_path_factory):
    """Whatever the file looks like: an edit does what it says, keeps every other value and every comment, or is refused."""
    assume(data)
    text = "\n".join(write(data, drawn.draw)) + drawn.draw(st.sampled_from(["", "\n", "\n\n# end\n"]))
    assume(json.dumps(parse_document(text, "f").data) == json.dumps(data))
    path = tmp_path_factory.mktemp("edit") / "config.yaml"
    path.write_bytes(text.encode())
    place = drawn.draw(st.sampled_from(sorted(places(data), key=repr)))
    kind = drawn.draw(st.sampled_from(["set", "unset", "add"]))

    def sound(_text: str, _label: str) -> list:
        return []

    expected = json.loads(json.dumps(data))
    target = expected
    for part in place[:-1]:
        target = target[part]
    match kind:
        case "set":
            target[place[-1]] = value
            set_value(path, place, value, check=sound)
        case "unset":
            del target[place[-1]]
            unset(path, place, check=sound)
        case _:
            assume(isinstance(target, dict))
            target["new"] = value
            set_value(path, (*place[:-1], "new"), value, check=sound)
    after = path.read_bytes().decode()
    assert json.dumps(parse_document(after, "f").data) == json.dumps(expected)
    if kind == "add":
        assert after.count("# c") == text.count("# c")


@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
    | st.sampled_from(["gpt: large", "a:b", "x:", "- x", "# no", "yes", "~", "1.0", "{}"])
)
def test_any_text_is_kept_as_it_is(text, tmp_path_factory):
    """Whatever text is set is read back the same: it is quoted where YAML would take it for something else."""
    path = tmp_path_factory.mktemp("edit") / "config.yaml"
    path.write_text("# mine\nagent:\n  max_turns: 3\n")
    key = ["toolsets", "custom", "mine", "description"]
    set_value(path, key, text)
    assert get(path, key) == text
    assert path.read_text(encoding="utf-8").startswith("# mine\nagent:\n  max_turns: 3\n")
