"""Listings that still hold are said again, and only those (architecture, "What is heavy is lazy"): presence is never cached."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from mibyan.cli.answers import answers_to

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(os.name != "posix", reason="stamps of POSIX file systems")

SOURCES = [str(Path(path).parent) for name in ("mibyan", "mibyan_builtin") for path in __import__(name).__path__]
SCRIPT = """
import sys
from mibyan.cli.main import main
code = main()
print("mibyan.runtime" in sys.modules, file=sys.stderr)
sys.exit(code)
"""


class World:
    """A home, a site directory with plugins, and a directory to stand in."""

    def __init__(self, root: Path) -> None:
        self.home, self.site, self.here = root / "home", root / "site", root / "here" / "below"
        for folder in (self.home, self.site, self.here):
            folder.mkdir(parents=True)
        self.script = root / "bin" / "mibyan"
        self.script.parent.mkdir()
        self.script.write_text(SCRIPT)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MIBYAN", "COV"))
        } | {"PYTHONPATH": os.pathsep.join([*SOURCES, str(self.site)]), "MIBYAN_HOME": str(self.home), "PYTHONUTF8": "1"}  # fmt: skip
        self.dist("rain")
        self.dist("snow", requires={"env": ["SNOW_KEY"]})
        (self.site / "other-1.0.dist-info").mkdir()
        (self.site / "other-1.0.dist-info" / "METADATA").write_text("Name: other\nVersion: 1.0\n")

    def dist(self, name: str, /, **changes: Any) -> Path:
        info = self.site / f"mibyan_plugin_{name}-1.0.dist-info"
        (info / "extra_metadata").mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Name: mibyan-plugin-{name}\nVersion: 1.0\n")
        (info / "RECORD").write_text("")
        (info / "entry_points.txt").write_text(f"[mibyan.plugins]\n{name} = mibyan_plugin_{name}\n")
        tool = {
            "name": name,
            "toolset": name,
            "target": f"mibyan_plugin_{name}:run",
            "schema": {"description": f"Makes {name}."},
        }
        manifest = {"id": name, "tools": [tool | changes]}
        (info / "extra_metadata" / "mibyan.json").write_text(json.dumps(manifest))
        (self.site / f"mibyan_plugin_{name}").mkdir(exist_ok=True)
        (self.site / f"mibyan_plugin_{name}" / "__init__.py").write_text("def run(args, **context):\n    return '{}'\n")
        return info

    def ask(self, *words: str, **environment: str) -> tuple[int, str, bool]:
        """The exit code, what was said, and whether it was worked out."""
        done = subprocess.run(
            [sys.executable, str(self.script), *words], cwd=self.here, env=self.environment | environment,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        *said, worked_out = done.stderr.splitlines()
        return done.returncode, done.stdout + "".join(said), worked_out == "True"

    def settle(self, *words: str) -> str:
        """Ask until the answer is said again; what it is."""
        until = time.monotonic() + 60
        while time.monotonic() < until:
            _, text, worked_out = self.ask(*words)
            if not worked_out:
                return text
        return pytest.fail("no answer was ever kept")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


LIST = ("tools", "list")
LISTINGS = [
    LIST, ("tools", "list", "--json"), ("--json", "tools", "list", "--enable", "rain"), ("tools", "schema"),
    ("tools", "schema", "--format=mcp"), ("toolsets", "list", "--json"), ("toolsets", "show", "rain"),
]  # fmt: skip


@pytest.mark.parametrize("words", LISTINGS, ids=" ".join)
def test_an_answer_is_said_again_word_for_word(world: World, words: tuple[str, ...]) -> None:
    code, first, worked_out = world.ask(*words)
    assert (code, worked_out) == (0, True)
    assert first
    assert world.settle(*words) == first


def rewrite(path: Path, old: str, new: str) -> None:
    """Change a text in place: the same size, the time of change set back."""
    status, text = path.stat(), path.read_text()
    assert old in text
    assert len(old) == len(new)
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def of_rain(world: World, name: str = "") -> Path:
    return world.site / "mibyan_plugin_rain-1.0.dist-info" / name


#: What may happen between two listings; each is seen at once.
CHANGES: dict[str, Callable[[World], object]] = {
    "a plugin comes": lambda w: w.dist("hail"),
    "a plugin goes": lambda w: shutil.rmtree(of_rain(w)),
    "its metadata goes": lambda w: of_rain(w, "METADATA").unlink(),
    "its entry point is edited in place": lambda w: rewrite(of_rain(w, "entry_points.txt"), "[mibyan.plugins]", "[mibyan.plugims]"),
    "its manifest is edited in place": lambda w: rewrite(of_rain(w, "extra_metadata/mibyan.json"), "Makes rain.", "Makes fogs."),
    "its manifest goes": lambda w: of_rain(w, "extra_metadata/mibyan.json").unlink(),
    "its manifest is replaced": lambda w: w.dist("rain", name="drizzle"),
    "another distribution becomes a plugin": lambda w: (w.site / "other-1.0.dist-info" / "entry_points.txt").write_text("[mibyan.plugins]\nother = other\n"),
    "a configuration comes": lambda w: (w.home / "config.yaml").write_text("plugins: {disabled: [rain]}\n"),
    "a user's plugin comes": lambda w: (w.home / "plugins" / "mine").mkdir(parents=True) or ((w.home / "plugins" / "mine" / "plugin.yaml").write_text("id: mine\ntools: [{name: mine, toolset: mine, target: 'mine:x', schema: {description: x}}]\n") and (w.home / "plugins" / "mine" / "__init__.py").write_text("x = print\n")),
    "a tool file comes": lambda w: (w.home / "tools").mkdir() or (w.home / "tools" / "mine.py").write_text("from mibyan import registry\nregistry.register('mine', 'mine', {'description': 'x'}, lambda args, **_: '{}')\n"),
    "a project is entered": lambda w: (w.here.parent / ".mibyan").mkdir() or (w.here.parent / ".mibyan" / "config.yaml").write_text("plugins: {disabled: [rain]}\n"),
    "a plugin ends the process": lambda w: (w.site / "mibyan_plugin_rain" / "__init__.py").write_text("import os; os._exit(3)") and subprocess.run([sys.executable, str(w.script), "call", "rain"], cwd=w.here, env=w.environment, check=False),
    "a link leads elsewhere": lambda w: (w.site.rename(w.site.with_name("one")), shutil.copytree(w.site.with_name("one"), w.site), shutil.rmtree(of_rain(w))),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_is_seen_at_once(world: World, change: str) -> None:
    """The answer is worked out anew, and is what it would be without any cache."""
    before = world.settle(*LIST)
    CHANGES[change](world)
    code, text, worked_out = world.ask(*LIST)
    assert worked_out
    shutil.rmtree(world.home / "cache")
    fresh = world.ask(*LIST)
    assert (code, text) == fresh[:2]
    if change != "its manifest goes":  # then its tools are learned from its code
        assert text != before


@pytest.mark.parametrize(
    ("name", "value", "differs"),
    [("SNOW_KEY", "x", True), ("MIBYAN_PLUGINS", "no:rain", True), ("MIBYAN_SAFE_MODE", "1", True), ("COLUMNS", "40", None)],
)  # fmt: skip
def test_the_environment_counts(world: World, name: str, value: str, differs: bool | None) -> None:
    before = world.settle(*LIST)
    _, text, worked_out = world.ask(*LIST, **{name: value})
    assert worked_out
    assert differs is None or (text != before) is differs
    assert world.ask(*LIST)[1] == before


def test_a_configuration_that_is_edited_in_place(world: World) -> None:
    (world.home / "config.yaml").write_text("plugins: {disabled: [rain]}\n")
    before = world.settle(*LIST)
    rewrite(world.home / "config.yaml", "rain", "snow")
    _, text, worked_out = world.ask(*LIST)
    assert worked_out
    assert ("Makes rain" in before, "Makes rain" in text) == (False, True)


CODE = """\
import os
try:
    import strange
except ImportError:
    strange = None

def run(args, **context):
    return "{}"

def register(ctx):
    ctx.register_tool(name="fog", toolset="fog", schema={"description": "Makes fog."}, handler=run)
    if strange is not None or os.environ.get("MORE_FOG"):
        ctx.register_tool(name="more_fog", toolset="fog", schema={"description": "Makes more."}, handler=run)
"""


def with_code(world: World) -> None:
    """Three plugins that aren't frozen: a wheel, a folder of the user's, a tool file."""
    info = world.dist("fog")
    shutil.rmtree(info / "extra_metadata")
    (info / "RECORD").write_text("mibyan_plugin_fog/__init__.py,,\nmibyan_plugin_fog/deep/__init__.py,,\n")
    package = world.site / "mibyan_plugin_fog"
    (package / "__init__.py").write_text(CODE)
    (package / "deep").mkdir()
    (package / "deep" / "__init__.py").write_text("")
    folder = world.home / "plugins" / "group" / "mine"
    folder.mkdir(parents=True)
    (folder / "plugin.yaml").write_text("id: mine\n")
    (folder / "__init__.py").write_text(CODE.replace("fog", "mist"))
    (world.home / "tools").mkdir()
    register = "registry.register('tool', 'tools', {'description': 'A tool.'}, lambda args, **context: '{}')"
    (world.home / "tools" / "one.py").write_text(f"from mibyan import registry\n{register}\n")


#: The same for plugins whose code decides what they offer, once it has been learned.
CODE_CHANGES: dict[str, Callable[[World], object]] = {
    "a wheel's code is edited in place": lambda w: rewrite(w.site / "mibyan_plugin_fog" / "__init__.py", "Makes fog.", "Maker fog."),
    "a file comes deep in a wheel": lambda w: (w.site / "mibyan_plugin_fog" / "deep" / "new.py").write_text(""),
    "a module that it imports comes": lambda w: (w.site / "strange.py").write_text(""),
    "a folder's code is edited in place": lambda w: rewrite(w.home / "plugins" / "group" / "mine" / "__init__.py", "Makes mist.", "Maker mist."),
    "a folder's manifest is edited in place": lambda w: rewrite(w.home / "plugins" / "group" / "mine" / "plugin.yaml", "mine", "mind"),
    "a folder goes": lambda w: shutil.rmtree(w.home / "plugins" / "group" / "mine"),
    "a tool file is edited in place": lambda w: rewrite(w.home / "tools" / "one.py", "A tool.", "A fool."),
    "another tool file comes": lambda w: shutil.copy(w.home / "tools" / "one.py", w.home / "tools" / "two.py"),
    "what was learned is forgotten": lambda w: (w.home / "cache" / "learned.bin").unlink(),
}  # fmt: skip


@pytest.mark.thorough
@pytest.mark.parametrize("change", CODE_CHANGES)
def test_what_changes_in_code_is_seen_at_once(world: World, change: str) -> None:
    """plugins.M4: what was learned holds for the content, and so does the answer."""
    with_code(world)
    world.settle(*LIST)
    CODE_CHANGES[change](world)
    code, text, worked_out = world.ask(*LIST)
    assert worked_out
    shutil.rmtree(world.home / "cache")
    assert (code, text) == world.ask(*LIST)[:2]


def test_a_variable_that_code_reads_counts(world: World) -> None:
    with_code(world)
    before = world.settle(*LIST)
    more = world.ask(*LIST, MORE_FOG="1")
    assert ("more_fog" in before, "more_fog" in more[1], more[2]) == (False, True, True)
    assert world.settle(*LIST) == before


def test_what_a_plugins_code_decides_is_asked_each_time(world: World) -> None:
    """A check, and a plugin that has to be imported: no path tells what they say."""
    world.dist("hail", check="mibyan_plugin_hail:run")
    for _ in range(3):
        assert world.ask(*LIST)[2]
    assert not (world.home / "cache" / "answers.bin").exists()


def test_complaints_are_said_each_time(world: World) -> None:
    """What goes to standard error is part of the answer: such a run isn't kept."""
    for _ in range(3):
        code, text, worked_out = world.ask("tools", "list", "--enable", "rian")
        assert (code, worked_out) == (0, True)
    assert "rian" in text


def test_mistakes_are_not_kept(world: World) -> None:
    for _ in range(3):
        code, _, worked_out = world.ask("toolsets", "show", "rian")
        assert (code, worked_out) == (2, True)


@pytest.mark.parametrize("damage", ["cut", "empty", "another's", "open to all"])
def test_a_cache_that_cant_be_trusted_is_made_anew(world: World, damage: str) -> None:
    before = world.settle(*LIST)
    kept = world.home / "cache" / "answers.bin"
    if damage == "another's" and os.geteuid() != 0:
        pytest.skip("only root may give files away")
    {"cut": lambda: kept.write_bytes(kept.read_bytes()[:-9]), "empty": lambda: kept.write_bytes(b""),
     "another's": lambda: os.chown(kept, 12345, -1), "open to all": lambda: kept.chmod(0o666)}[damage]()  # fmt: skip
    assert world.ask(*LIST) == (0, before, True)
    assert world.settle(*LIST) == before
    assert (kept.stat().st_uid, kept.stat().st_mode & 0o777) == (os.geteuid(), 0o600)


def test_no_variable_is_written_down(world: World) -> None:
    """What the environment holds is known by a digest only."""
    world.environment["SNOW_KEY"] = "very-secret-value"
    world.settle(*LIST)
    for path in (world.home / "cache").iterdir():
        assert b"very-secret-value" not in path.read_bytes()


@pytest.mark.parametrize(
    "words",
    [
        ("call", "rain"), ("plugins", "list"), ("tools", "list", "--strict"), ("tools", "list", "--home", "/x"), ("--debug", "tools", "list"),
        ("tools", "list", "--plugin=x"), ("--version",), (),
    ],
    ids=" ".join,
)  # fmt: skip
def test_other_commands_have_no_kept_answer(monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]) -> None:
    monkeypatch.setattr("mibyan.cli.answers._is_pipe", lambda: True)
    assert answers_to(["tools", "list"]) is not None
    assert answers_to(list(words)) is None


def test_a_terminal_gets_no_kept_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert answers_to(["tools", "list"]) is None


# What is imported ---------------------------------------------------------------------------------------------------

#: What no start may need when nothing has changed.
HEAVY = {"click", "pydantic", "pydantic_core", "yaml", "pluggy", "rich", "asyncio", "importlib.metadata", "importlib_metadata",
         "packaging", "dataclasses", "filelock", "docstring_parser", "uuid", "secrets", "subprocess", "tempfile"}  # fmt: skip
#: What a listing doesn't need either.
LISTING = HEAVY | {"inspect", "jsonschema_rs", "mibyan.calling", "mibyan.dispatch.pipeline", "hashlib"}
#: Nor what only says again what still holds.
AGAIN = LISTING | {
    "typing",
    "re",
    "json",
    "logging",
    "threading",
    "pathlib",
    "contextlib",
    "enum",
    "mibyan.cli.output",
    "mibyan.runtime",
}


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (("--version",), AGAIN), (("--version", "--json"), AGAIN), (LIST, AGAIN), (("tools", "schema"), AGAIN),
        (("tools", "list", "--plugin=rain"), LISTING), (("toolsets", "list", "--plugin=rain"), LISTING),
        (("plugins", "list"), LISTING - {"hashlib"}), (("call", "rain"), HEAVY),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else "",
)  # fmt: skip
def test_what_a_start_imports(world: World, words: tuple[str, ...], unwanted: set[str]) -> None:
    """With an unchanged config.yaml and unchanged manifests; standard output is no terminal."""
    (world.home / "config.yaml").write_text("dispatch: {timeout: 60}\nplugins: {disabled: [snow]}\n")
    script = "import sys\nfrom mibyan.cli.main import main\nmain()\nprint(*sys.modules, file=sys.stderr)\n"
    world.script.write_text(script)
    world.here.joinpath("x").touch()
    loaded: set[str] = set()
    for _ in range(5):
        done = subprocess.run([sys.executable, str(world.script), *words], cwd=world.here, env=world.environment,
                              capture_output=True, text=True, check=True)  # fmt: skip
        loaded = set(done.stderr.splitlines()[-1].split())
        if not loaded & unwanted:
            break
    bare = subprocess.run([sys.executable, "-c", "import sys; print(*sys.modules)"], env=world.environment,
                          capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    assert (loaded - set(bare)) & unwanted == set()
