"""`mibyan plugins manifest`: what a plugin's code registers becomes its manifest, whatever the code does meanwhile."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mibyan_builtin
from mibyan.plugins.manifest import manifest_json_schema

from .conftest import PATIENCE, add_plugin

BUILTIN = sorted(path.parent for path in Path(mibyan_builtin.__file__).parent.glob("*/mibyan.json"))

MANIFEST = """\
# the weather, as the author has it
id: weather   # and its id

hooks: [session_start]  # told below
# permissions come last
permissions: [network]
"""

HELPER = '''
import mibyan

@mibyan.tool(toolset="weather", read_only=True, aliases=("sky",))
def radar(place: str, size: int = 3) -> dict:
    """Look at the radar.

    Args:
        place: Where.
    """
    return {"place": place}


def is_there():
    return True
'''

CODE = """
import mibyan
from . import helper

print("noise on standard output")


def forecast(args, **context):
    return '{"sky": "blue"}'


@mibyan.hookimpl
def pre_tool_call(tool_name):
    return None


def register(ctx):
    schema = {"description": "Forecast.", "parameters": {"type": "object", "properties": {"day": {"type": "string"}}}}
    ctx.register_tool("forecast", "weather", schema, forecast, helper.is_there, ["WEATHER_KEY"], timeout=3, description="For people")
    ctx.register_tool("tides", "weather", dict(schema), forecast, lambda: True, timeout=lambda args: 2.0, override=True)
    ctx.register_toolset("outdoors", {"radar", "forecast"}, ["files"], "All of it")
    ctx.register_command("sky", lambda text: text, "Says it", "TEXT")
"""


@pytest.fixture
def weather(home: Path, tmp_path: Path) -> Path:
    """A folder plugin that nobody has frozen."""
    root = add_plugin(tmp_path, "weather", CODE, MANIFEST)
    (root / "helper.py").write_text(HELPER)
    return root


@pytest.fixture
def dice(home: Path, tmp_path: Path) -> Path:
    """A project that becomes a wheel, in the layout with `src`."""
    return make_project(tmp_path / "dice")


def make_project(root: Path, *, base: str = "src", backend: str = "hatchling.build", further: str = "") -> Path:
    package = root / base / "mibyan_plugin_dice"
    package.mkdir(parents=True)
    source = 'import mibyan\n\n\n@mibyan.tool(toolset="dice")\ndef roll(sides: int = 6) -> int:\n    """Roll a die."""\n    return 4\n'
    (package / "__init__.py").write_text(source)
    (root / "pyproject.toml").write_text(
        f'[build-system]\nrequires = []\nbuild-backend = "{backend}"\n[project]\nname = "mibyan-plugin-dice"\nversion = "1"\n'
        f'description = "Dice."\n[project.entry-points."mibyan.plugins"]\ndice = "mibyan_plugin_dice"\n{further}'
    )
    return root


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


# Printing, writing, checking --------------------------------------------------------------------------------------


def test_M4_the_manifest_is_printed_and_nothing_is_written(program: Callable, weather: Path) -> None:
    """plugins.M4: without an option the text that would be written is on standard output, and nothing else is."""
    before = snapshot(weather)
    done = program("plugins", "manifest", str(weather))
    assert done.code == 0
    assert done.out.startswith("# the weather, as the author has it\n")
    assert "noise" not in done.out
    assert "tides: its check can't be named" in done.err
    assert "tides: its time-out is code" in done.err
    assert snapshot(weather) == before
    written = program("plugins", "manifest", str(weather), "--write")
    assert written.code == 0
    assert (weather / "plugin.yaml").read_text() == done.out
    assert snapshot(weather).keys() == before.keys()


def test_M4_what_is_written_is_all_that_the_code_registers(run: Callable, weather: Path) -> None:
    """plugins.M4: tools with their flags and places, toolsets, hooks, commands, overrides."""
    manifest = run("plugins", "manifest", str(weather), "--json").data["manifest"]
    tools = {tool["name"]: tool for tool in manifest["tools"]}
    assert list(tools) == ["forecast", "radar", "tides"]
    assert tools["forecast"] == {
        "name": "forecast", "toolset": "weather", "check": ".helper:is_there", "requires_env": ["WEATHER_KEY"],
        "schema": {"description": "Forecast.", "parameters": {"type": "object", "properties": {"day": {"type": "string"}}}},
        "flags": {"description": "For people", "timeout": 3},
    }  # fmt: skip
    assert tools["radar"]["target"] == ".helper:radar"
    assert tools["radar"]["flags"] == {"aliases": ["sky"], "read_only": True}
    assert manifest["hooks"] == ["pre_tool_call"]
    assert manifest["toolsets"] == {
        "outdoors": {"description": "All of it", "tools": ["forecast", "radar"], "includes": ["files"]}
    }
    assert manifest["commands"] == [{"name": "sky", "description": "Says it", "args_hint": "TEXT"}]
    assert manifest["overrides"] == ["tides"]
    assert manifest["permissions"] == ["network"]


def test_M4_comments_and_the_authors_keys_stay(run: Callable, weather: Path) -> None:
    """plugins.M4: every line that isn't about what the code says is as it was, behind a second change too."""
    run("plugins", "manifest", str(weather), "--write")
    path = weather / "plugin.yaml"
    text = path.read_text()
    for line in MANIFEST.splitlines():
        if not line.startswith("hooks"):
            assert f"{line}\n" in text
    assert "hooks: [pre_tool_call]  # told below\n" in text
    noted = text.replace(
        "  - name: radar\n", "  # the radar is slow\n  - name: radar  # very\n    requires: {bins: [sh]}\n"
    )
    path.write_text(noted)
    assert run("plugins", "manifest", str(weather), "--check").code == 0
    (weather / "helper.py").write_text(HELPER.replace("size: int = 3", "size: int = 4"))
    run("plugins", "manifest", str(weather), "--write")
    assert path.read_text() == noted.replace("default: 3", "default: 4")


def test_M4_check_tells_drift_a_tool_at_a_time(run: Callable, weather: Path) -> None:
    """plugins.M4: --check is 0 on what was written, 1 with a diff once the code says something else, and writes nothing."""
    run("plugins", "manifest", str(weather), "--write")
    assert run("plugins", "manifest", str(weather), "--check").code == 0
    (weather / "helper.py").write_text(
        HELPER.replace("place: Where.", "place: Wherever.").replace("read_only=True", "cache=True")
    )
    before = snapshot(weather)
    done = run("plugins", "manifest", str(weather), "--check")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[:2] == ["--- tool radar (manifest)", "+++ tool radar (code)"]
    assert any(line.startswith("-") and '"Where."' in line for line in lines)
    assert any(line.startswith("+") and '"Wherever."' in line for line in lines)
    assert "forecast" not in done.out
    assert f"mibyan plugins manifest {weather} --write" in done.err
    told = run("plugins", "manifest", str(weather), "--check", "--json")
    assert (told.code, told.data["differs"]) == (1, True)
    assert [one["what"] for one in told.data["differences"]] == ["tool radar"]
    assert snapshot(weather) == before


def test_M4_a_tool_that_goes_and_one_that_comes(run: Callable, weather: Path) -> None:
    """plugins.M4: a tool that the code no longer has leaves the file, a new one comes behind the others."""
    run("plugins", "manifest", str(weather), "--write")
    (weather / "helper.py").write_text(HELPER.replace("def radar", "def basin"))
    done = run("plugins", "manifest", str(weather), "--check", "--json")
    assert {one["what"] for one in done.data["differences"]} == {"tool radar", "tool basin"}
    run("plugins", "manifest", str(weather), "--write")
    manifest = run("plugins", "manifest", str(weather), "--json").data["manifest"]
    assert [tool["name"] for tool in manifest["tools"]] == ["forecast", "tides", "basin"]
    assert "radar" not in [tool["name"] for tool in manifest["tools"]]
    assert run("plugins", "manifest", str(weather), "--check").code == 0


def test_M4_tools_that_only_the_manifest_registers(run: Callable, weather: Path) -> None:
    """plugins.M4: a tool by `target` stays the author's; one whose function has another name by now goes."""
    path = weather / "plugin.yaml"
    (weather / "__init__.py").write_text("def tell(args, **context):\n    return '{}'\n")
    own = "tools:\n  - {name: mine, toolset: t, schema: {description: Mine., parameters: {type: object, properties: {}}}, target: 'weather:tell'}\n"
    path.write_text("id: weather\n" + own)
    assert run("plugins", "manifest", str(weather), "--check").code == 0
    (weather / "__init__.py").write_text("from . import helper\n")
    path.write_text("id: weather\n" + own.replace("weather:tell", ".helper:radar"))
    assert run("plugins", "manifest", str(weather), "--write").code == 0
    manifest = run("plugins", "manifest", str(weather), "--json").data["manifest"]
    assert [tool["name"] for tool in manifest["tools"]] == ["radar"]


def test_M4_a_frozen_plugin_is_lazy_and_works(run: Callable, program: Callable, weather: Path, home: Path) -> None:
    """plugins.M4: what was written is a manifest by which the plugin is listed unimported and called."""
    run("plugins", "manifest", str(weather), "--write")
    (home / "plugins").mkdir()
    weather.rename(home / "plugins/weather")
    listed = program("tools", "list", "--json")
    assert {"forecast", "radar", "tides"} <= {tool["name"] for tool in listed.data["tools"]}
    called = program("call", "radar", "place=here", "--json")
    assert (called.code, "here" in called.out) == (0, True)
    states = program("plugins", "list", "--load", "--json").data
    assert [one["state"] for one in states["plugins"] if one["id"] == "weather"] == ["ready"]
    assert not [problem for problem in states["problems"] if "manifest" in str(problem)]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_M4_the_bytes_are_the_same_each_time(program: Callable, weather: Path, seed: str) -> None:
    """plugins.M4: neither the hash seed nor a set's order shows; a second --write changes nothing, not even the time."""
    code = CODE.replace(
        '"properties": {"day": {"type": "string"}}',
        '"properties": {"day": {"type": "string", "enum": list({"a", "b", "c", "d"})}}',
    )
    (weather / "__init__.py").write_text(code)
    first = program("plugins", "manifest", str(weather), "--write", PYTHONHASHSEED="7")
    assert first.code == 0
    path = weather / "plugin.yaml"
    content, written = path.read_bytes(), path.stat().st_mtime_ns
    again = program("plugins", "manifest", str(weather), "--write", PYTHONHASHSEED=seed)
    assert "says so already" in again.err
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (content, written)


def test_M4_schema_needs_no_path(run: Callable, home: Path) -> None:
    """plugins.M1: --schema prints the published JSON Schema."""
    assert run("plugins", "manifest", "--schema").data == manifest_json_schema()


# Places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("folder", BUILTIN, ids=lambda folder: folder.name)
def test_M4_the_built_in_manifests_are_what_their_code_says(run: Callable, home: Path, folder: Path) -> None:
    """plugins.M4: the command and the built-ins' own generator agree on every built-in, byte by byte."""
    assert run("plugins", "manifest", str(folder), "--check").code == 0
    assert run("plugins", "manifest", str(folder)).out == (folder / "mibyan.json").read_text()


def test_M4_a_project_gets_a_mibyan_json(run: Callable, dice: Path) -> None:
    """plugins.M1: without a manifest one is made where hatchling takes it from, and it is said what is to be done for that."""
    assert run("plugins", "manifest", str(dice), "--check").code == 1
    done = run("plugins", "manifest", str(dice), "--write")
    assert done.code == 0
    assert "extra-metadata" in done.err
    data = json.loads((dice / "mibyan.json").read_text())
    assert (data["id"], data["description"]) == ("dice", "Dice.")
    assert [(tool["name"], tool["target"]) for tool in data["tools"]] == [("roll", "mibyan_plugin_dice:roll")]
    assert run("plugins", "manifest", str(dice / "pyproject.toml"), "--check").code == 0
    assert not list(dice.rglob("__pycache__"))


@pytest.mark.parametrize("base", [".", "src", "lib/python"])
def test_M4_layouts(run: Callable, home: Path, tmp_path: Path, base: str) -> None:
    """plugins.M4: the packages are found in `src`, beside pyproject.toml, and where hatchling is told they are."""
    further = (
        f'[tool.hatch.build.targets.wheel]\npackages = ["{base}/mibyan_plugin_dice"]\n'
        '[tool.hatch.build.targets.wheel.extra-metadata]\n"meta/dice.json" = "mibyan.json"\n'
    )
    root = make_project(tmp_path / "dice", base=base, further=further)
    done = run("plugins", "manifest", str(root), "--write")
    assert (done.code, "extra-metadata" in done.err) == (0, False)
    assert json.loads((root / "meta/dice.json").read_text())["tools"][0]["name"] == "roll"


def test_M4_other_build_backends_have_package_data(run: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.M1: where there is no extra-metadata the manifest is package data."""
    root = make_project(tmp_path / "dice", backend="setuptools.build_meta")
    assert run("plugins", "manifest", str(root), "--write").code == 0
    assert "name: roll" in (root / "src/mibyan_plugin_dice/plugin.yaml").read_text()
    assert run("plugins", "manifest", str(root), "--check").code == 0


def test_M4_the_authors_json_keeps_its_form(run: Callable, dice: Path) -> None:
    """plugins.M4: in JSON the author's keys, their order and the indentation stay."""
    path = dice / "mibyan.json"
    path.write_text('{\n\t"permissions": ["dice"],\n\t"id": "dice"\n}\n')
    run("plugins", "manifest", str(dice), "--write")
    text = path.read_text()
    assert list(json.loads(text)) == ["permissions", "id", "tools"]
    assert text.startswith('{\n\t"permissions": [\n\t\t"dice"\n\t],\n')


@pytest.mark.parametrize("words", [("nowhere",), (), (".",), (".", "--write", "--check"), (".", "--timeout", "soon")])
def test_what_is_no_plugin_is_usage(run: Callable, home: Path, words: tuple[str, ...]) -> None:
    """api.md: no such path, no plugin, options that don't fit together: 2, with what to do."""
    done = run("plugins", "manifest", *words)
    assert done.code == 2
    assert done.err.startswith("mibyan: error: ")
    assert done.out == ""


# What code may do -------------------------------------------------------------------------------------------------

HOSTILE = {
    "exit": ("raise SystemExit(3)", "it ended the program"),
    "os-exit": ("import os\nprint('last words', flush=True)\nos._exit(7)", "with exit code 7; the last it printed: last words"),
    "killed": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "by SIGKILL"),
    "syntax": ("def register(:", "isn't Python"),
    "nothing": ("x = 1", "it offers nothing"),
    "missing": ("import nowhere_to_be_found", "'nowhere_to_be_found', which isn't there"),
    "base": ("class Odd(BaseException): ...\nraise Odd('no')", "it raised"),
    "schema": (
        "import mibyan\n@mibyan.tool\ndef odd(x: object()) -> str:\n    '''Odd.'''\n    return ''", "odd",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_L2_code_that_fails_is_told(run: Callable, weather: Path, name: str) -> None:
    """plugins.L2: whatever the code does at its import, the command ends with 1 and the reason, and the file is as it was."""
    source, told = HOSTILE[name]
    (weather / "__init__.py").write_text(source)
    for option in ("--write", "--check"):
        done = run("plugins", "manifest", str(weather), option)
        assert done.code == 1
        assert told in done.err
        assert "weather" in done.err
        assert done.out == ""
    assert (weather / "plugin.yaml").read_text() == MANIFEST
    assert told in run("plugins", "manifest", str(weather), "--json").data["error"]


def test_L2_code_that_hangs_is_ended(run: Callable, weather: Path, tmp_path: Path) -> None:
    """plugins.L2: after the time-out the process is ended, and those that it started."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    program = "printf x; exec sleep 600"
    (weather / "__init__.py").write_text(
        f"import subprocess, threading\nsubprocess.Popen(['sh', '-c', {program!r}], stdout=open({str(fifo)!r}, 'w'))\nthreading.Event().wait()\n"
    )
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = run("plugins", "manifest", str(weather), "--write", "--timeout", "5")
        assert done.code == 1
        assert "still running after 5 s" in done.err
        read_to_the_end(reader)
    finally:
        os.close(reader)


def read_to_the_end(reader: int) -> None:
    """Read the one byte that was written, and wait until nobody holds the other end."""
    for expected in (b"x", b""):
        assert select.select([reader], [], [], PATIENCE)[0]
        assert os.read(reader, 1) == expected


def test_M4_what_depends_on_the_environment_is_told(
    run: Callable, weather: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """plugins.M4: the environment of the command counts, and it is said that there is another answer without it."""
    (weather / "__init__.py").write_text(
        "import os, mibyan\nfrom . import helper\nif os.environ.get('MOON_PHASE'):\n"
        "    @mibyan.tool\n    def moon() -> str:\n        '''The moon.'''\n        return ''\n"
    )
    monkeypatch.setenv("MOON_PHASE", "full")
    done = run("plugins", "manifest", str(weather), "--json")
    assert [tool["name"] for tool in done.data["manifest"]["tools"]] == ["moon", "radar"]
    told = "it registers something else without the variables MOON_PHASE: the tools moon depend on them"
    assert [note["text"].startswith(told) for note in done.data["notes"]] == [True]
    monkeypatch.delenv("MOON_PHASE")
    assert run("plugins", "manifest", str(weather), "--json").data["notes"] == []


def test_M4_a_secret_isnt_published(run: Callable, weather: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.M4: a plugin that writes the value of a key into a description isn't frozen, and the value isn't shown."""
    monkeypatch.setenv("WEATHER_KEY", "moonlight-sonata")
    (weather / "helper.py").write_text(HELPER + "\nimport os\nradar._description = os.environ['WEATHER_KEY']\n")
    done = run("plugins", "manifest", str(weather), "--write")
    assert done.code == 1
    assert "the value of the variable WEATHER_KEY stands in what it registers" in done.err
    assert "moonlight" not in done.err + done.out + (weather / "plugin.yaml").read_text()


def test_M4_the_operators_home_is_left_alone(run: Callable, weather: Path, home: Path) -> None:
    """plugins.M4: the plugin is loaded with an empty home of its own; nothing is left of that."""
    (weather / "__init__.py").write_text(CODE + "\n    (ctx.state / 'seen').write_text('x')\n")
    (home / "config.yaml").write_text("plugins: {disabled: [weather]}\n")
    before = snapshot(home)
    assert run("plugins", "manifest", str(weather), "--check").code == 1
    assert snapshot(home) == before


def test_M4_killed_while_writing_the_file_is_whole(weather: Path) -> None:
    """plugins.M4: a kill -9 at the last moment leaves the old file, every byte of it."""
    script = (
        "import os, signal, sys\nreplace = os.replace\n"
        "def end(source, target, **more):\n"
        "    if str(target).endswith('plugin.yaml'):\n        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return replace(source, target, **more)\n"
        "os.replace = os.rename = end\nfrom mibyan.cli.main import main\nsys.exit(main(sys.argv[1:]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "plugins", "manifest", str(weather), "--write"],
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL
    assert (weather / "plugin.yaml").read_text() == MANIFEST


def test_M4_the_package_of_a_project_means_the_project(run: Callable, dice: Path) -> None:
    """plugins.M4: an editable install is known by its package's folder, which the hints name."""
    done = run("plugins", "manifest", str(dice / "src/mibyan_plugin_dice"), "--json")
    assert (done.code, done.data["path"]) == (0, str(dice / "mibyan.json"))


def test_M4_odd_plugins(run: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.M4: one file beside a helper; an id that is no identifier; a module called like its plugin; a link."""
    source = "import mibyan\nfrom .helper import radar\n@mibyan.tool(toolset='t')\ndef mine() -> str:\n    '''Mine.'''\n    return ''\n"
    single = add_plugin(tmp_path, "one-file", "", "id: one-file\nmodule: code.py\n")
    (single / "code.py").write_text(source)
    (single / "helper.py").write_text(HELPER)
    named = add_plugin(tmp_path, "my-name", source)
    (named / "helper.py").write_text(HELPER)
    (named / "my_name.py").write_text("raise RuntimeError\n")
    link = tmp_path / "work/my-name"
    link.symlink_to(named)
    found = {}
    for root in (single, named, link):
        tools = run("plugins", "manifest", str(root), "--json").data["manifest"]["tools"]
        found[root] = {tool["name"]: tool.get("target") for tool in tools}
    assert found[single] == {"mine": ".code:mine", "radar": ".helper:radar"}
    assert found[named] == found[link] == {"mine": None, "radar": ".helper:radar"}


def test_M4_a_wheel_that_is_one_module(run: Callable, home: Path, tmp_path: Path) -> None:
    """plugins.M4: an entry point may name a function of a module that is a single file."""
    root = tmp_path / "single"
    root.mkdir()
    (root / "single.py").write_text(
        "def plugin(ctx):\n    ctx.register_tool('s', 't', {'description': 'S', 'parameters': {}}, lambda args, **k: '{}')\n"
    )
    entry = '[project]\nname = "single"\n[project.entry-points."mibyan.plugins"]\nsingle = "single:plugin"\n'
    (root / "pyproject.toml").write_text(entry)
    assert run("plugins", "manifest", str(root), "--write").code == 0
    assert json.loads((root / "mibyan.json").read_text())["tools"][0]["name"] == "s"
    (root / "pyproject.toml").write_text(entry.replace("single =", "other ="))
    done = run("plugins", "manifest", str(root))
    assert (done.code, "other" in done.err) == (1, True)


def test_M4_a_faulty_manifest_is_told_and_left(run: Callable, weather: Path) -> None:
    """plugins.M1: what is wrong in the author's keys is told with its line; faulty tools are the code's to write anew."""
    path = weather / "plugin.yaml"
    path.write_text("id: weather\npermisions: [network]\n")
    done = run("plugins", "manifest", str(weather), "--write")
    assert (done.code, "permissions" in done.err) == (2, True)
    path.write_text("id: weather\ntools: 3\nhooks: {}\noverrides: 3\n")
    assert run("plugins", "manifest", str(weather), "--write").code == 0
    assert run("plugins", "manifest", str(weather), "--check").code == 0


def test_L2_code_that_prints_without_end_is_stopped(run: Callable, weather: Path) -> None:
    """plugins.L2: what is printed doesn't fill the disk."""
    (weather / "__init__.py").write_text("import sys\nwhile True:\n    sys.stdout.write('x' * 1_000_000)\n")
    done = run("plugins", "manifest", str(weather))
    assert done.code == 1
    assert "File too large" in done.err
    assert len(done.err) < 2_000


def test_M4_what_somebody_writes_meanwhile_isnt_lost(run: Callable, weather: Path) -> None:
    """plugins.M4: a file that has changed since it was read isn't overwritten."""
    path = weather / "plugin.yaml"
    (weather / "__init__.py").write_text(f"from . import helper\nopen({str(path)!r}, 'a').write('license: MIT\\n')\n")
    done = run("plugins", "manifest", str(weather), "--write")
    assert (done.code, "was changed meanwhile" in done.err) == (2, True)
    assert path.read_text() == MANIFEST + "license: MIT\n"


def test_M4_a_code_check_of_a_frozen_plugin_is_asked(
    run: Callable, program: Callable, weather: Path, home: Path
) -> None:
    """plugins.M4: the check that was named in the manifest decides, by the code as it is then."""
    run("plugins", "manifest", str(weather), "--write")
    (weather / "helper.py").write_text(HELPER.replace("return True", "return 'the moon is in the wrong place'"))
    (home / "plugins").mkdir()
    weather.rename(home / "plugins/weather")
    done = program("call", "forecast", WEATHER_KEY="k")
    assert done.code != 0
    assert "the moon is in the wrong place" in done.out


def test_L2_a_command_that_is_killed_leaves_nothing_running(weather: Path, tmp_path: Path) -> None:
    """plugins.L2: code that hangs ends by itself when nobody is there to end it."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (weather / "__init__.py").write_text(
        f"import os, threading\nend = os.open({str(fifo)!r}, os.O_WRONLY)\nos.write(end, b'x')\nthreading.Event().wait()\n"
    )
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    words = ["plugins", "manifest", str(weather), "--timeout", "3"]
    script = (
        "import os, sys\nfrom mibyan.cli import apart\napart._waited = lambda *_: os._exit(9)\n"
        f"from mibyan.cli.main import main\nmain({words!r})\n"
    )
    try:
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", script], timeout=PATIENCE, check=False, env=environment)
        assert done.returncode == 9
        read_to_the_end(reader)
    finally:
        os.close(reader)


# What only the file has, settings ---------------------------------------------------------------------------------


def test_M4_what_only_the_manifest_has_is_told_and_pruned(run: Callable, weather: Path) -> None:
    """plugins.M4: a toolset or command that the code doesn't register is no drift, but told; --prune leaves it out."""
    path = weather / "plugin.yaml"
    path.write_text("id: weather\ntoolsets:\n  lost: {tools: [radar]}\ncommands: [old]\n")
    run("plugins", "manifest", str(weather), "--write")
    done = run("plugins", "manifest", str(weather), "--check")
    assert done.code == 0
    assert "the toolset 'lost' is only in the manifest" in done.err
    assert "the command 'old' is only in the manifest" in done.err
    notes = run("plugins", "manifest", str(weather), "--check", "--json").data["notes"]
    assert {"tool": None, "text": "the command 'old' is only in the manifest: the code doesn't register it"} in notes
    assert run("plugins", "manifest", str(weather), "--check", "--prune").code == 1
    assert run("plugins", "manifest", str(weather), "--write", "--prune").code == 0
    manifest = run("plugins", "manifest", str(weather), "--json").data["manifest"]
    assert list(manifest["toolsets"]) == ["outdoors"]
    assert [command["name"] for command in manifest["commands"]] == ["sky"]
    assert "only in the manifest" not in run("plugins", "manifest", str(weather), "--check").err


def test_M4_pruning_all_of_a_key_takes_the_key(run: Callable, weather: Path) -> None:
    """plugins.M4: a key that says nothing any more goes."""
    path = weather / "plugin.yaml"
    (weather / "__init__.py").write_text("from . import helper\n")
    path.write_text("id: weather\ncommands: [old]  # long gone\ntoolsets: {lost: {}}\n")
    assert run("plugins", "manifest", str(weather), "--write", "--prune").code == 0
    text = path.read_text()
    assert "commands" not in text
    assert "toolsets" not in text


SETTINGS = """\
id: weather
config_schema:
  type: object
  required: [unit]
  properties: {name: {type: string, default: tides}, unit: {type: string}, deep: {type: object, properties: {n: {default: 3}}}}
"""


def test_M4_a_plugin_has_its_settings_while_it_is_frozen(run: Callable, weather: Path, tmp_path: Path) -> None:
    """plugins.M4: `ctx.config` has the defaults of the config_schema, and what --config gives; YAML and JSON."""
    (weather / "plugin.yaml").write_text(SETTINGS)
    (weather / "__init__.py").write_text(
        "def register(ctx):\n"
        "    text = f\"{ctx.config['deep']['n']} {ctx.config.get('unit')}\"\n"
        "    ctx.register_tool(ctx.config['name'], 't', {'description': text}, lambda args: '{}')\n"
    )

    def frozen(*words: str) -> tuple[str, str]:
        (tool,) = run("plugins", "manifest", str(weather), "--json", *words).data["manifest"]["tools"]
        return tool["name"], tool["schema"]["description"]

    assert frozen() == ("tides", "3 None")
    (tmp_path / "s.yaml").write_text("unit: metres\n")
    assert frozen("--config", str(tmp_path / "s.yaml")) == ("tides", "3 metres")
    (tmp_path / "s.json").write_text('{"unit": "feet", "name": "waves"}')
    assert frozen("--config", str(tmp_path / "s.json")) == ("waves", "3 feet")


@pytest.mark.parametrize("text", ["unit: 3\n", "- a\n", "{", "unit: x\nname: [1]\n"])
def test_M4_settings_that_arent_valid(run: Callable, weather: Path, tmp_path: Path, text: str) -> None:
    """plugins.M2: a file of settings that the schema refuses, or that is none, ends with 2 and says why."""
    (weather / "plugin.yaml").write_text(SETTINGS)
    (tmp_path / "s.yaml").write_text(text)
    done = run("plugins", "manifest", str(weather), "--config", str(tmp_path / "s.yaml"))
    assert (done.code, done.out) == (2, "")
    assert str(tmp_path / "s.yaml") in done.err


def test_a_pyproject_toml_that_is_nested_too_deeply_is_told_so_M1(run: Callable, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("a = " + "[" * 50_000 + "]" * 50_000)
    done = run("plugins", "manifest", str(tmp_path))
    assert (done.code, "pyproject.toml isn't TOML" in done.err) == (2, True), done.err
