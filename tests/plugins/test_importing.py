"""`mibyan.plugins.importing` and `private`: where plugins' modules live, and from which bytes they are made (plugins.L5, S1)."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import py_compile
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from mibyan.errors import PluginError
from mibyan.plugins.sources.ids import module_name

from .world import World, answer, decisions, tool, write

ADD = "registry.register(name={name!r}, toolset='words', schema={{'description': 'd'}}, handler=lambda args: {value})\n"


def tool_source(value: str, name: str = "word", imports: str = "") -> str:
    """A file of a tools directory whose tool answers with `value`."""
    return f"from mibyan import registry\n{imports}\n" + ADD.format(name=name, value=value)


def replying(value: str, imports: str = "") -> str:
    """A plugin whose tool answers with the value of an expression."""
    return f"{imports}\n\ndef register(ctx):\n    ctx.register_tool('word', 'words', {{'description': 'd'}}, lambda args: {value})\n"


# Folder plugins ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("imports", "value"),
    [
        ("from . import part", "part.WORD"),
        ("from .part import WORD", "WORD"),
        ("from .deep import inner", "inner.WORD"),
        ("from .deep.inner import WORD", "WORD"),
        ("from .deep.up import WORD", "WORD"),
        ("from .space import alone", "alone.WORD"),
        ("import importlib\nfound = importlib.import_module('.part', __package__)", "found.WORD"),
        ("from importlib.resources import files", "files(__package__).joinpath('data.txt').read_text().strip()"),
        (
            "from importlib.resources import files\nfrom . import deep",
            "files(deep).joinpath('data.txt').read_text().strip()",
        ),
        ("from pathlib import Path", "Path(__file__).with_name('data.txt').read_text().strip()"),
        ("import pkgutil", "pkgutil.get_data(__name__, 'data.txt').decode().strip()"),
        (
            "import pkgutil",
            "'word' if {m.name for m in pkgutil.iter_modules(__path__)} >= {'part', 'deep'} else 'none'",
        ),
        ("import inspect", "'word' if 'def register' in inspect.getsource(register) else 'none'"),
    ],
)
@pytest.mark.parametrize("project", [False, True], ids=["user", "project"])
def test_relative_imports_packages_and_data_work(world: World, imports: str, value: str, project: bool) -> None:
    """plugins.L5: relative imports, sub-packages, namespace packages and data files work, also from trusted bytes."""
    word = "WORD = 'word'\n"
    files = {
        "part": word,
        "deep/__init__": "",
        "deep/inner": word,
        "deep/up": "from ..part import WORD\n",
        "space/alone": word,
    }
    root = world.folder("weather", replying(value, imports), project=project, **files)
    write(root / "data.txt", "word\n")
    write(root / "deep" / "data.txt", "word\n")
    if project:
        world.trust("weather", root)
    loader = world.load()
    assert (loader.get("weather").state, loader.get("weather").reason[:8]) == ("active", "imported")
    assert answer(loader, "word") == "word"


def test_nothing_is_importable_from_outside(world: World) -> None:
    """plugins.L5: a plugin's folder is never on `sys.path`, and its modules have no name that others would use."""
    before = list(sys.path)
    world.folder("weather_of_test", tool("word"), part="")
    world.load()
    assert sys.path == before
    for name in ("weather_of_test", "weather_of_test.part", "part"):
        with pytest.raises(ImportError):
            importlib.import_module(name)


def test_plugins_don_t_see_one_another_s_modules(world: World) -> None:
    """plugins.L5: the package is the plugin's alone: a neighbouring folder isn't in it."""
    world.folder("a", tool("a"))
    world.folder("b", "from .. import a\n" + tool("b"))
    assert world.load().get("b").state == "failed"


def test_a_file_may_be_the_plugin(world: World) -> None:
    """plugins.F5: a single `.py` named in the manifest; its neighbours are importable relatively."""
    root = world.folder("weather", "raise ValueError\n", {"module": "main.py"}, part="WORD = 'word'\n")
    write(root / "main.py", replying("part.WORD", "from . import part"))
    assert answer(world.load(), "word") == "word"


@pytest.mark.parametrize("name", ["my-plugin", "my.plugin", "class", "2fast", "très", "os"])
def test_odd_names_work(world: World, name: str) -> None:
    """plugins.F2: a folder's name needn't be an identifier, and may be that of a module."""
    world.folder(name, replying("part.WORD", "from . import part"), part="WORD = 'word'\n")
    loader = world.load()
    assert (loader.get(name).id, answer(loader, "word")) == (name, "word")


def test_two_runtimes_have_their_own_modules(world: World, tmp_path: Path) -> None:
    """architecture: two runtimes in one process share nothing, with one home or with two."""
    other = World(tmp_path / "other")
    for one, value in ((world, "1"), (other, "2")):
        one.folder("weather", replying("part.COUNT.append(1) or len(part.COUNT) + part.VALUE", "from . import part"),
                   part=f"VALUE = {value}0\nCOUNT = []\n")  # fmt: skip
    loaders = [world.load(), world.load(), other.load()]
    assert [answer(loader, "word") for loader in loaders] == [11, 11, 21]
    assert answer(loaders[0], "word") == 12
    loaders[0].close()
    assert [answer(loader, "word") for loader in loaders[1:]] == [12, 22]
    other.close()


def test_lazy_imports_of_neighbours_work_later(world: World) -> None:
    """A handler that imports a neighbour when it runs finds it."""
    source = replying("late()", "def late():\n    from .part import WORD\n    return WORD\n")
    world.folder("weather", source, part="WORD = 'word'\n")
    assert answer(world.load(), "word") == "word"


def private_modules() -> set[str]:
    """The modules of folder plugins and tool files in this process: also those of a default runtime that is open."""
    return {name for name in sys.modules if name.startswith("mibyan_private_")}


def test_unloading_takes_the_modules_away(world: World) -> None:
    """plugins.L7: private modules go, and what the plugin imported from its folder under other names."""
    others = private_modules()
    root = world.folder("weather", "", part="", stray_of_test="")
    write(
        root / "__init__.py",
        f"import sys\nsys.path.insert(0, {str(root)!r})\nimport stray_of_test\nfrom . import part\n" + tool("word"),
    )
    loader = world.load()
    assert "stray_of_test" in sys.modules
    loader.unload("weather")
    assert "stray_of_test" not in sys.modules
    assert str(root) not in sys.path
    assert not private_modules() - others


def test_modules_of_a_failed_plugin_go(world: World) -> None:
    """plugins.L2: neither the half-imported modules nor the whole ones of a failed plugin stay."""
    others = private_modules()
    world.folder(
        "faulty", "from . import good\nfrom . import bad\n", good="", bad="from . import good\nraise ValueError\n"
    )
    world.load()
    assert not private_modules() - others


def test_a_quick_edit_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A source that is edited within a second, without changing its size, is compiled anew at a reload."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    root = world.folder("weather", tool("word", answer="1"))
    loader = world.load()
    for value in "234":
        write(root / "__init__.py", tool("word", answer=value))
        loader.reload("weather")
        assert answer(loader, "word") == value


def test_settled_sources_are_kept_as_bytecode(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytecode of a user's plugin is kept once the source is old enough to be told from its next version."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    root = world.folder("weather", "from . import part\n" + tool("word"), part="")
    old = time.time() - 60
    os.utime(root / "part.py", (old, old))
    world.load()
    assert [path.name.partition(".")[0] for path in (root / "__pycache__").iterdir()] == ["part"]


# Project code --------------------------------------------------------------------------------------------------------


def test_project_code_leaves_no_bytecode(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.S1: trusted project code is compiled from the bytes that were hashed; no bytecode is written."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    root = world.folder("weather", replying("part.WORD", "from . import part"), project=True, part="WORD = 'word'\n")
    for path in root.glob("*.py"):
        os.utime(path, (1, 1))
    world.trust("weather", root)
    assert answer(world.load(), "word") == "word"
    assert not (root / "__pycache__").exists()


def test_planted_bytecode_isn_t_read(world: World) -> None:
    """plugins.S1: bytecode isn't hashed, so it is never run, however well it fits its source."""
    root = world.folder("weather", replying("'planted'"), project=True)
    source = root / "__init__.py"
    os.utime(source, (1, 1))
    py_compile.compile(str(source), doraise=True)
    write(source, replying("'trusted'"))
    os.utime(source, (1, 1))
    assert (root / "__pycache__").exists()
    world.trust("weather", root)
    assert answer(world.load(), "word") == "trusted"


def test_code_that_changes_after_it_was_hashed_doesn_t_count(world: World) -> None:
    """plugins.S1: what runs later is what was hashed, not what lies there by then; nothing added is found."""
    root = world.folder("weather", project=True, part="WORD = 'trusted'\n")
    write(root / "__init__.py", f"""
        from pathlib import Path
        Path({str(root / "part.py")!r}).write_text("WORD = 'changed'")
        Path({str(root / "added.py")!r}).write_text("WORD = 'added'")
        from . import part
        try:
            from . import added
        except ImportError:
            added = part
        def register(ctx):
            ctx.register_tool("word", "words", {{"description": "d"}}, lambda args: part.WORD + added.WORD)
    """)  # fmt: skip
    world.trust("weather", root)
    loader = world.load()
    assert answer(loader, "word") == "trustedtrusted"
    assert loader.reload("weather").state == "untrusted"
    assert answer(loader, "word") == "no word"


@pytest.mark.parametrize("change", ["changed", "added", "removed"])
def test_untrusted_code_is_never_run(world: World, change: str) -> None:
    """plugins.S1: never trusted, or changed by a byte, a file more or a file less: inert, with what to do."""
    stop = "raise BaseException('project code ran')\n"
    root = world.folder("weather", stop, project=True, part="")
    assert world.load().get("weather").state == "untrusted"
    world.trust("weather", root)
    if change == "removed":
        (root / "part.py").unlink()
    else:
        write(root / ("part.py" if change == "changed" else "new.txt"), "#")
    loader = world.load()
    record = loader.get("weather")
    assert (record.state, change in record.reason) == ("untrusted", True)
    assert "mibyan plugins trust weather" in str(record.hint)
    assert [decision.kind for decision in decisions(loader, "weather")] == ["untrusted"]
    with pytest.raises(PluginError, match="is untrusted"):
        loader.activate("weather")


def test_compiled_modules_of_a_project_aren_t_loaded(world: World) -> None:
    """plugins.S1: what can't be compiled from hashed bytes isn't found."""
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    root = world.folder("weather", "from . import native\n" + tool("word"), project=True)
    (root / f"native{suffix}").write_bytes(b"\x7fELF")
    world.trust("weather", root)
    assert world.load().get("weather").state == "failed"


def test_project_tools_are_one_thing(world: World) -> None:
    """plugins.S1: `project-tools` stands for all files of the directory, helpers included."""
    path = world.tool_file("clock", tool_source("helper.WORD", imports="from . import helper"), project=True)
    write(path.with_name("helper.py"), "WORD = 'word'\n")
    assert world.load().get("project-tools.clock").state == "untrusted"
    world.trust("project-tools", path.parent)
    assert answer(world.load(), "word") == "word"
    write(path.with_name("helper.py"), "WORD = 'other'\n")
    assert world.load().get("project-tools.clock").state == "untrusted"


# Tools directories ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["clock", "my-clock", "a.b", "2nd", "class"])
def test_a_tool_file_finds_its_neighbours(world: World, name: str) -> None:
    """plugins.F6: `from . import helper` finds the file beside it, whatever the tool file is called."""
    path = world.tool_file(name, tool_source("helper.WORD", imports="from . import helper"))
    write(path.with_name("helper.py"), "WORD = 'word'\n")
    loader = world.load()
    assert (loader.get(f"tools.{name}").state, answer(loader, "word")) == ("active", "word")


def test_a_package_of_a_tools_directory(world: World) -> None:
    """plugins.F6: `<package>/tool.py` counts; its package's modules are importable."""
    folder = world.home / "tools" / "clock"
    write(folder / "__init__.py", "WORD = 'wo'\n")
    write(folder / "part.py", "WORD = 'rd'\n")
    write(folder / "tool.py", tool_source("WORD + part.WORD", imports="from . import WORD, part"))
    assert answer(world.load(), "word") == "word"


def test_an_absolute_import_of_a_neighbour_is_explained(world: World) -> None:
    """plugins.F6: a tools directory is never on `sys.path`; the reason says how to import the neighbour."""
    path = world.tool_file("clock", tool_source("1", imports="import helper_of_clock"))
    write(path.with_name("helper_of_clock.py"), "")
    record = world.load().get("tools.clock")
    assert record.state == "failed"
    assert record.hint == (
        "'helper_of_clock' lies beside it: write `from . import helper_of_clock` (or `from .helper_of_clock import ...`)."
    )


def test_tool_files_have_helpers_of_their_own(world: World) -> None:
    """Two tool files that import one helper each have their own: unloading one leaves the other's."""
    for name in ("a", "b"):
        world.tool_file(
            name, tool_source("helper.NAMES", name, "from . import helper\nhelper.NAMES.append(__name__[-1])")
        )
    write(world.home / "tools" / "helper.py", "NAMES = []\n")
    loader = world.load()
    assert (answer(loader, "a"), answer(loader, "b")) == (["a"], ["b"])
    loader.unload("tools.a")
    assert answer(loader, "b") == ["b"]


# Installed plugins ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entry", "source"),
    [
        ("{m}", tool("word")),
        ("{m}:register", tool("word")),
        ("{m}:setup", tool("word").replace("def register", "def setup")),
        ("{m}:plugin.register", ("class plugin:\n    @staticmethod\n    def register(ctx):\n"
         "        ctx.register_tool('word', 'words', {'description': 'd'}, lambda args: 'word')\n")),
        ("{m}:Plugin", ("class Plugin:\n    def register(self, ctx):\n"
         "        ctx.register_tool('word', 'words', {'description': 'd'}, lambda args: 'word')\n")),
        ("{m}:plugin", ("class Plugin:\n    def mibyan_register(self, ctx):\n"
         "        ctx.register_tool('word', 'words', {'description': 'd'}, lambda args: 'word')\nplugin = Plugin()\n")),
        ("{m}:Plugin", ("class Plugin:\n    def __init__(self, ctx):\n"
         "        ctx.register_tool('word', 'words', {'description': 'd'}, lambda args: 'word')\n")),
        ("{m}:part", "from . import part\n"),
        ("{m}.part", ""),
        ("{m}.part:register", ""),
    ],
)  # fmt: skip
def test_an_entry_point_names_a_module_or_a_callable(world: World, entry: str, source: str) -> None:
    """plugins.F3: the object may be a module or a callable, also an object with `register` or hooks."""
    module = "wheel_of_entries"
    plugin_id = world.wheel(module, source, entry=entry.format(m=module), part=tool("word"))
    loader = world.load()
    assert (loader.get(plugin_id).state, answer(loader, "word")) == ("active", "word")


def test_hooks_of_an_entry_point_s_module_count(world: World) -> None:
    """An entry point that names `register` means the module's marked hooks too: a policy mustn't vanish silently."""
    source = "import mibyan\n@mibyan.hookimpl\ndef pre_tool_call(tool_name): pass\n" + tool("word")
    plugin_id = world.wheel("wheel_with_hooks", source, entry="wheel_with_hooks:register")
    assert world.load().get(plugin_id).hooks == ("pre_tool_call",)


@pytest.mark.parametrize(
    ("entry", "told"),
    [("{m}:nothing", "the module 'wheel_of_faults' has no 'nothing'"), ("{m}.gone", "it imports 'wheel_of_faults.gone'"),
     ("{m}:VALUE", "the entry point names int 3, which is neither a module nor callable")],
)  # fmt: skip
def test_a_bad_entry_point_is_a_sentence(world: World, entry: str, told: str) -> None:
    """plugins.F3: an entry point that leads nowhere fails the plugin, in words."""
    plugin_id = world.wheel("wheel_of_faults", "VALUE = 3\n", entry=entry.format(m="wheel_of_faults"))
    record = world.load().get(plugin_id)
    assert record.state == "failed"
    assert told in record.reason
    assert "wheel_of_faults" not in sys.modules


def test_modules_named_in_the_configuration_are_plugins(world: World) -> None:
    """plugins.F3: `plugins.modules`: importable modules, of the pip tier."""
    write(world.site / "module_of_config.py", tool("word"))
    world.config("plugins: {modules: [module_of_config]}")
    loader = world.load()
    assert (loader.get("module_of_config").source, answer(loader, "word")) == ("pip", "word")


def test_names_are_stable_between_processes(world: World, tmp_path: Path) -> None:
    """The names of private modules depend on the plugin and the order of loaders alone, not on the hash seed."""
    world.folder("weather", "import json, sys\n" + tool("word"))
    script = """
        import sys
        from pathlib import Path
        from mibyan.config.load import load_config
        from mibyan.hooks.table import HookTable
        from mibyan.plugins.loader import LoaderServices, PluginLoader
        from mibyan.tools.store import RegistryStore
        home = Path(sys.argv[1])
        loader = PluginLoader(LoaderServices(RegistryStore(), HookTable(), load_config(home), home))
        loader.activate("weather")
        print([name for name in sys.modules if name.startswith("mibyan_private_")])
    """
    outputs = {
        subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(world.home)], capture_output=True, text=True,
                       check=True, cwd=tmp_path, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert module_name("weather") in outputs.pop()


def test_the_manifest_of_a_wheel_is_read_without_importing_it(world: World) -> None:
    """plugins.L1: a disabled wheel is never imported."""
    plugin_id = world.wheel("wheel_disabled", "raise BaseException('imported')", {"description": "d"})
    world.config(f"plugins: {{disabled: [{json.dumps(plugin_id)}]}}")
    assert world.load().get(plugin_id).state == "disabled"
    assert "wheel_disabled" not in sys.modules
