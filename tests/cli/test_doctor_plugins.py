"""`mibyan doctor`'s look at the plugins (plugins.W6): each thing in a fabricated installation, none of them imported."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mibyan.cli.doctor.plugins import costs

from .conftest import Done, add_plugin

#: A module that tells when it is imported.
LOUD = "raise SystemExit('somebody imported me')\n"
TOOL = {"toolset": "words", "schema": {"description": "Says.", "parameters": {"type": "object", "properties": {}}}}


@pytest.fixture
def install(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Installs a wheel as pip leaves it, in a folder on `sys.path`; its dist-info."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def install(
        name: str, *, entry_points: str | None = None, metadata: str = "", manifest: dict | None = None,
        files: dict[str, str] | None = None,
    ) -> Path:  # fmt: skip
        module = name.replace("-", "_")
        info = site / f"{module}-1.0.dist-info"
        files = {f"{module}/__init__.py": LOUD} if files is None else files
        written = {
            **files,
            f"{info.name}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}",
            f"{info.name}/RECORD": "".join(f"{file},,\n" for file in files) + f"{info.name}/METADATA,,\n",
        }
        if entry_points != "":
            short = name.removeprefix("mibyan-plugin-")
            written[f"{info.name}/entry_points.txt"] = entry_points or f"[mibyan.plugins]\n{short} = {module}\n"
        if manifest is not None:
            written[f"{info.name}/extra_metadata/mibyan.json"] = json.dumps({"manifest_version": 1, **manifest})
        for file, text in written.items():
            (site / file).parent.mkdir(parents=True, exist_ok=True)
            (site / file).write_text(text)
        return info

    return install


@pytest.fixture
def found(run: Callable[..., Done]) -> Callable[..., list[dict]]:
    """The findings of a check; that plugins have faults never makes the command fail."""

    def found(check: str = "plugins") -> list[dict]:
        done = run("doctor", "--json")
        assert "the check itself failed" not in done.out
        assert "somebody imported me" not in done.out + done.err
        return [one for one in done.data["findings"] if one["check"] == check]

    return found


def told(findings: list[dict]) -> list[tuple[str, str, str]]:
    return [(one["severity"], one["what"], one["where"]) for one in findings]


def test_plugins_W6_nothing_is_wrong_with_a_good_plugin(install: Callable, found: Callable, home: Path) -> None:
    """A whole wheel and a whole folder plugin with hooks: nothing to say."""
    source = (
        "import mibyan\n\n\n@mibyan.hookimpl(tryfirst=True)\ndef pre_tool_call(tool_name, *, args, mine=3, **more):\n"
        "    return None\n\n\ndef register(ctx):\n    ctx.register_hook('post_tool_call', after)\n\n\ndef after(status): ...\n"
    )
    install("mibyan-plugin-good", metadata="Requires-Dist: click>=1\nRequires-Python: >=3.8\n",
            files={"mibyan_plugin_good/__init__.py": source})  # fmt: skip
    add_plugin(home, "fine", source)
    assert found() == []


GROUPS = ["mibyan.plugns", "mybian.plugins", "Mibyan-Plugin", "mibyan_plugins", "mibyan.extensions", "mibyan.tools"]


@pytest.mark.parametrize("group", GROUPS)
def test_plugins_W6_groups_that_are_nearly_right(install: Callable, found: Callable, group: str) -> None:
    """W6: a group that somebody wrote for ours: once, with what its author writes."""
    info = install("weather", entry_points=f"[{group}]\nweather = weather\n")
    (one,) = [*found("discovery"), *found()]
    assert (one["severity"], one["where"]) == ("warning", str(info))
    assert repr(group) in one["what"]
    assert "mibyan.plugins" in one["fix"]


@pytest.mark.parametrize(
    "group", ["console_scripts", "mypy.plugins", "pytest11", "mibyan_weather.stations", "flake8.extension"]
)
def test_plugins_W6_other_peoples_groups(install: Callable, found: Callable, group: str) -> None:
    """W6: a group that is somebody else's is nobody's mistake."""
    install("weather", entry_points=f"[{group}]\nweather = weather\n")
    assert [*found("discovery"), *found()] == []


@pytest.mark.parametrize(
    "name", ["mibyan-plugin-weather", "mibyan-plugins-weather", "mibyanplugin-weather", "mibyan-plugins"]
)
def test_plugins_W6_names_that_are_nearly_right(install: Callable, found: Callable, name: str) -> None:
    """W6: a distribution that is called like a plugin and has no entry point."""
    info = install(name, entry_points="")
    (one,) = [*found("discovery"), *found()]
    assert (one["severity"], one["where"]) == ("warning", str(info))
    assert name in one["what"].replace("_", "-")
    assert "mibyan.plugins" in one["fix"]


CONFLICTS = [
    ("Requires-Dist: no-such-thing>=2", "requires no-such-thing>=2, which isn't installed", "python -m pip install 'no-such-thing>=2'"),
    ("Requires-Dist: click>=999", "requires click>=999; ", "python -m pip install 'click>=999'"),
    ("Requires-Dist: click (<1)", "requires click<1; ", "python -m pip install 'click<1'"),
    ("Requires-Dist: mibyan>=99", "requires mibyan>=99; ", "works with this Mibyan"),
    ("Requires-Dist: no-such-thing; python_version > '3'", "requires no-such-thing, which isn't", "no-such-thing'"),
    ("Requires-Dist: ~what?", "can't be understood", "author"),
    ("Requires-Python: <3", "is made for Python <3", "mibyan plugins disable weather"),
]  # fmt: skip


@pytest.mark.parametrize(("metadata", "what", "fix"), CONFLICTS)
def test_plugins_W6_dependency_conflicts(
    install: Callable, found: Callable, metadata: str, what: str, fix: str
) -> None:
    """W6: what a plugin's metadata requires and what is installed, by name, version and marker."""
    info = install("mibyan-plugin-weather", metadata=f"{metadata}\n")
    (one,) = found()
    assert (one["severity"], one["where"]) == ("warning", str(info))
    assert "plugin 'weather'" in one["what"]
    assert what in one["what"]
    assert fix in one["fix"]


def test_plugins_W6_no_conflicts(install: Callable, found: Callable, home: Path) -> None:
    """W6: extras, markers that don't hold and what is met say nothing; neither does a plugin that is off."""
    install("mibyan-plugin-weather", metadata=(
        "Provides-Extra: x\nRequires-Dist: nothing; extra == 'x'\nRequires-Dist: nothing; python_version < '3'\n"
        "Requires-Dist: click\nRequires-Dist: mibyan>=0.0.1.dev0\n"
    ))  # fmt: skip
    install("mibyan-plugin-off", metadata="Requires-Dist: nothing\n")
    (home / "config.yaml").write_text("plugins: {disabled: ['off']}\n")
    assert found() == []


def test_plugins_W6_missing_binaries_and_variables(
    install: Callable, found: Callable, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W6: what one tool needs is a finding of that tool; what a whole plugin needs is the plugin's state."""
    monkeypatch.delenv("TIDE_KEY", raising=False)
    needs = {"env": ["TIDE_KEY"], "bins": ["no-such-program"], "modules": ["no_such_module"]}
    info = install("mibyan-plugin-tides", manifest={
        "id": "tides",
        "tools": [{"name": "tide", **TOOL, "requires": needs}, {"name": "moon", **TOOL, "requires_env": ["MOON_KEY", "PATH"]}],
    })  # fmt: skip
    add_plugin(home, "keyed", LOUD, "manifest_version: 1\nid: keyed\nrequires: {env: [TIDE_KEY]}\n")
    one, said = found()
    assert (one["severity"], one["where"]) == ("warning", str(info))
    assert one["what"] == (
        "tool 'tide' of plugin 'tides' isn't available: environment variable TIDE_KEY is not set; "
        "program 'no-such-program' is not on PATH; module 'no_such_module' is not installed"
    )
    assert "export TIDE_KEY=" in one["fix"]
    assert (said["severity"], said["fix"]) == ("info", "export MOON_KEY=…")
    assert said["what"] == "tool 'moon' of plugin 'tides' says that it reads the variable MOON_KEY, which isn't set"
    (state,) = found("discovery")
    assert "plugin 'keyed' lacks something: environment variable TIDE_KEY is not set" in state["what"]
    monkeypatch.setenv("TIDE_KEY", "x")
    assert found("discovery") == []


HOOKS = [
    ("@mibyan.hookimpl\ndef pre_tool_cal(args): ...\n", "there is no hook 'pre_tool_cal'", "call it pre_tool_call", 3),
    ("@hookimpl\ndef zzz(): ...\n", "there is no hook 'zzz'", "take it away", 3),
    ("@mibyan.hookimpl(specname='post_tool_cal')\ndef x(args): ...\n", "no hook 'post_tool_cal'", "post_tool_call", 3),
    ("@mibyan.hookimpl\nasync def pre_tool_call(tool_nam): ...\n", "its pre_tool_call needs 'tool_nam'", "write tool_name", 3),
    ("@mibyan.hookimpl\ndef mibyan_unload(*, qqq): ...\n", "needs 'qqq'", "there are none", 3),
    ("@mibyan.hookimpl\ndef pre_tool_call(args, /): ...\n", "takes 'args' by position only", "the `/`", 3),
    ("def register(ctx):\n    ctx.register_hook('on_sesion_end', lambda: None)\n", "'on_sesion_end'", "on_session_end", 3),
    ("def register(ctx):\n    ctx.register_hook('on_session_end', bye)\ndef bye(who): ...\n", "needs 'who'", "session_id, platform", 3),
]  # fmt: skip


@pytest.mark.parametrize(("source", "what", "fix", "line"), HOOKS)
def test_plugins_W6_hooks_that_cannot_be_bound(
    found: Callable, home: Path, source: str, what: str, fix: str, line: int
) -> None:
    """W6: unknown hooks with what was meant, and arguments that the hook doesn't give: with the line, without an import."""
    root = add_plugin(home, "hooked", f"from mibyan import hookimpl; {LOUD}{source}")
    (one,) = found()
    assert (one["severity"], one["where"]) == ("warning", f"{root}/__init__.py:{line}")
    assert what in one["what"]
    assert fix in one["fix"]


def test_plugins_W6_what_is_found_is_what_loading_says(run: Callable, found: Callable, home: Path) -> None:
    """L3: each hook that doctor objects to makes the load fail or is passed over, and each it lets pass is bound."""
    for number, (source, *_) in enumerate(HOOKS):
        add_plugin(home, f"hooked{number}", f"import mibyan; from mibyan import hookimpl\n{source}")
    objected = {one["what"].split("'")[1] for one in found()}
    report = run("plugins", "list", "--load", "--json").data
    failed = {one["id"] for one in report["plugins"] if one["state"] == "failed"}
    unknown = {one["plugin_id"] for one in report["problems"] if one["kind"] == "unknown"}
    assert objected == failed | unknown == {f"hooked{number}" for number in range(len(HOOKS))}


def test_plugins_W6_hooks_that_can_be_bound(found: Callable, home: Path) -> None:
    """W6: optional hooks, other people's functions and sources that aren't Python are no findings."""
    add_plugin(home, "hooked", (
        "import mibyan, pluggy\n@mibyan.hookimpl(optionalhook=True)\ndef somebodys(x): ...\n@pluggy.other\ndef pre_tool_call(y): ...\n"
        "def register(ctx):\n    ctx.register_hook(ctx.name, print)\n    ctx.register_hook()\n"
    ))  # fmt: skip
    add_plugin(home, "broken", "@mibyan.hookimpl\ndef f(:\n")
    assert found() == []


@pytest.mark.parametrize(("file", "name"), [
    ("utils/__init__.py", "utils"), ("tests/test_a.py", "tests"), ("Config.py", "Config"), ("json/__init__.py", "json"),
    ("core.cpython-311-x86_64-linux-gnu.so", "core"),
])  # fmt: skip
def test_plugins_W6_generic_modules(install: Callable, found: Callable, file: str, name: str) -> None:
    """W6: a top-level module that others have too, or the standard library."""
    info = install("mibyan-plugin-weather", files={"mibyan_plugin_weather/__init__.py": LOUD, file: LOUD})
    ((severity, what, where),) = told(found())
    assert (severity, where) == ("warning", str(info))
    assert what.startswith(f"plugin 'weather' installs the top-level module {name!r}, ")


def test_plugins_W6_modules_that_are_its_own(install: Callable, found: Callable) -> None:
    """W6: scripts, metadata, data and byte code in RECORD are no modules; what is inside the package may be called anything."""
    info = install("mibyan-plugin-weather")
    own = "mibyan_plugin_weather/utils/__init__.py,,\n../../../bin/tests,,\n/etc/config,,\n__pycache__/utils.pyc,,\nweather.data/x,,\nnote.txt,,\n"
    (info / "RECORD").write_text((info / "RECORD").read_text() + own)
    assert found() == []


def test_plugins_W6_top_level_txt(install: Callable, found: Callable) -> None:
    """W6: what has no RECORD says it in top_level.txt."""
    info = install("mibyan-plugin-weather")
    (info / "RECORD").unlink()
    (info / "top_level.txt").write_text("mibyan_plugin_weather\nhelpers\n")
    ((_, what, _),) = told(found())
    assert "'helpers'" in what


def test_plugins_W6_two_plugins_with_one_module(install: Callable, found: Callable) -> None:
    """W6: of one package in two wheels one is overwritten; parts of a namespace may come from several."""
    first = install("mibyan-plugin-one", files={"weather/__init__.py": LOUD, "space/one.py": ""})
    second = install("mibyan-plugin-two", files={"weather/__init__.py": LOUD, "space/two.py": ""})
    ((severity, what, where),) = told(found())
    assert (severity, where) == ("warning", f"{first}, {second}")
    assert what.startswith("plugins 'one' and 'two' both install the top-level module 'weather'")


def test_plugins_W6_circles(found: Callable, home: Path) -> None:
    """W6: `requires_plugins` and `after` that go in a circle, each circle once, from its smallest id."""
    for name, other in (
        ("a", "c"),
        ("b", "a"),
        ("c", "B >=0"),
        ("alone", "alone"),
        ("far", "a"),
        ("after1", "after2"),
        ("after2", "after1"),
    ):
        key = "after" if name.startswith("after") else "requires_plugins"
        add_plugin(home, name, "", f"manifest_version: 1\nid: {name}\nversion: '1'\n{key}: ['{other}']\n")
    first, second = sorted(one["what"] for one in found())
    assert "a requires c requires b requires a" in first
    assert "alone requires alone" in second
    (after,) = [one for one in found("discovery") if "circle" in one["what"]]
    assert (after["severity"], after["where"]) == ("warning", str(home / "plugins" / "after1" / "plugin.yaml"))


def test_plugins_W6_slow_imports(run: Callable, found: Callable, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """W6: an import that took longer than the limit when the plugin was last loaded; nothing before any load."""
    add_plugin(home, "words", "import mibyan\n@mibyan.tool(toolset='words')\ndef word() -> str:\n    return 'x'\n")
    monkeypatch.setattr(costs, "SLOW_MS", 0.0)
    assert found() == []
    run("plugins", "list", "--load")
    ((severity, what, where),) = told(found())
    assert (severity, where) == ("warning", str(home / "plugins" / "words" / "plugin.yaml"))
    assert what.startswith("the import of plugin 'words' took ")
    monkeypatch.setattr(costs, "SLOW_MS", 1e9)
    assert found() == []


def test_plugins_W6_plugins_that_are_not_learned(run: Callable, found: Callable, home: Path) -> None:
    """W6: a plugin that is imported at each start, and why; one that was learned isn't told."""
    tool = "import mibyan\n@mibyan.tool(toolset='words')\ndef {}() -> str:\n    return 'x'\n"
    add_plugin(home, "learned", tool.format("one"))
    root = add_plugin(home, "threads", tool.format("two") + (
        "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True, name='its-own').start()\n"
    ))  # fmt: skip
    run("tools", "list")
    ((severity, what, where),) = told(found())
    assert (severity, where) == ("info", str(root / "plugin.yaml"))
    assert what.startswith(
        "plugin 'threads' is imported at each start, as it isn't learned: it started threads that go on"
    )
    assert "its-own" in what


def test_plugins_W6_folders_of_no_plugin(found: Callable, home: Path, project: Path) -> None:
    """W6: what lies among the plugins and is none, what lies too deep to be found, and what a plugin has left."""
    add_plugin(home, "words", "")
    (home / "config.yaml").write_text("plugins: {disabled: [deploy]}\n")
    (home / "plugins" / "category" / "inner").mkdir(parents=True)
    (home / "plugins" / "category" / "inner" / "plugin.yaml").write_text("manifest_version: 1\nid: inner\n")
    (home / "plugins" / "category" / "inner" / "__init__.py").write_text("")
    stray = home / "plugins" / "download (1)"
    (stray / "deep" / "deeper").mkdir(parents=True)
    (stray / "deep" / "deeper" / "plugin.yaml").write_text("manifest_version: 1\n")
    empty = project / ".mibyan" / "plugins" / "empty"
    empty.mkdir()
    (home / "plugins" / "lone.py").write_text(LOUD)
    (home / "plugins" / ".hidden").mkdir()
    for state in ("words", "Gone_One", "deploy@0123456789ab"):
        (home / "state" / state).mkdir(parents=True)
    findings = {one["where"]: one for one in found()}
    assert set(findings) == {
        str(stray / "deep" / "deeper"), str(empty), str(home / "plugins" / "lone.py"), str(home / "state" / "Gone_One"),
    }  # fmt: skip
    assert findings[str(stray / "deep" / "deeper")]["fix"] == f"mv '{stray}/deep/deeper' '{stray}'"
    assert f"rm -r {empty}" in findings[str(empty)]["fix"]
    assert str(home / "tools") in findings[str(home / "plugins" / "lone.py")]["fix"]
    assert {one["severity"] for one in findings.values()} == {"info", "warning"}


def test_plugins_W6_untrusted_code_is_not_looked_into(found: Callable, project: Path) -> None:
    """S1: of a project's plugin that nobody trusts nothing is read but what says that."""
    source = project / ".mibyan" / "plugins" / "deploy" / "__init__.py"
    source.write_text("import mibyan\n@mibyan.hookimpl\ndef no_such_hook(): ...\n")
    assert found() == []


def test_plugins_W6_strange_metadata(install: Callable, found: Callable) -> None:
    """Names, metadata and records that are anything but text for a terminal: findings are one harmless line each."""
    info = install("mibyan-plugin-odd", metadata="Requires-Dist: a\x1b[31mb\nRequires-Python: what?\n")
    (info / "RECORD").write_bytes(b'\xff\xfe,,\n"unclosed\nutils\x1b[2J/__init__.py,,\n')
    for one in found():
        assert "\x1b" not in json.dumps(one, ensure_ascii=False)
        assert "\n" not in one["what"]
    assert os.fspath(info) in {one["where"] for one in found()}


def test_plugins_W6_a_broken_configuration(run: Callable, install: Callable, home: Path) -> None:
    """L8: also with a configuration that can't be used the plugins are looked at."""
    (home / "config.yaml").write_text("a: [\n")
    install("mibyan-plugin-weather", metadata="Requires-Dist: no-such-thing\n")
    done = run("doctor", "--json")
    assert done.code == 2
    assert any("no-such-thing" in one["what"] for one in done.data["findings"])
    assert "mibyan_plugin_weather" not in sys.modules
