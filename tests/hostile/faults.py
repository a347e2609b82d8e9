"""Fifty plugins with one fault each, and what the report has to say about them."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, Final

#: What a faulty plugin has registered before it fails: none of it may stay.
DONE: Final = """
ctx.register_tool("left_§", "left", {"description": "d"}, lambda args: "left", aliases=("alias_left_§",))
ctx.registry.register_toolset_alias("toolset_alias_left_§", "left")
ctx.register_toolset("toolset_left_§", ["left_§"])
ctx.register_hook("post_tool_call", lambda tool_name: None)
ctx.register_command("command_left_§", len)
ctx.provide("service_left_§", object)
"""


@dataclass
class Installation:
    """One home, two folders of installed distributions, and a zip."""

    root: Path
    #: What operators say, by plugin.
    entries: dict[str, Any] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        """`$MIBYAN_HOME`."""
        return self.root / "home"

    @property
    def path(self) -> list[Path]:
        """What is on `sys.path`, in order."""
        return [self.root / "first", self.root / "second", self.root / "zipped.zip"]

    def folder(self, name: str, source: str | bytes, manifest: str | bytes = "{}") -> Path:
        """A folder plugin."""
        base = self.home / "plugins" / name
        write(base / "plugin.yaml", manifest)
        write(base / "__init__.py", source)
        return base

    def wheel(
        self, module: str, source: str | bytes | None, *, name: str = "", entry: str | bytes | None = None,
        group: str = "mibyan.plugins", where: str = "first", metadata: bool = True, manifest: str = "", **files: str,
    ) -> Path:  # fmt: skip
        """An installed distribution whose plugin is the module; its dist-info."""
        name = name or module.replace("_", "-")
        info = self.root / where / f"{name.replace('-', '_')}-1.0.dist-info"
        if metadata:
            write(info / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        plugin_id = name.removeprefix("mibyan-plugin-")
        write(info / "entry_points.txt", entry if entry is not None else f"[{group}]\n{plugin_id} = {module}\n")
        if manifest:
            write(info / "extra_metadata" / "mibyan.json", manifest)
        for file, text in files.items():
            write(info / f"{file}.json", text)
        if source is not None:
            write(self.root / where / module / "__init__.py", source)
        return info

    def zipped(self, module: str, source: str) -> None:
        """A distribution in the zip."""
        name, info = module.replace("_", "-"), f"{module}-1.0.dist-info"
        with zipfile.ZipFile(self.root / "zipped.zip", "w") as archive:
            archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
            archive.writestr(f"{info}/entry_points.txt", f"[mibyan.plugins]\n{name} = {module}\n")
            archive.writestr(f"{module}/__init__.py", source)


def write(path: Path, text: str | bytes) -> None:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else dedent(text).encode())


@dataclass(frozen=True)
class Fault:
    """A plugin with a fault."""

    #: The plugin's id.
    name: str
    put: Callable[[Installation, str], object]
    #: What the record's kind is.
    kind: str
    #: What its reason says, in this order; `§`: the plugin's id.
    says: tuple[str, ...]
    #: What the next step says.
    fix: str
    #: What the record is about; empty: the plugin.
    subject: str = ""
    #: Whether its tool `left_<id>` is there all the same: what is wrong with it isn't fatal.
    works: bool = False


FAULTS: Final[list[Fault]] = []
_OFF: Final = "mibyan plugins disable §"


def fault(
    name: str, source: str | bytes, *says: str, kind: str = "failed", fix: str = _OFF, manifest: str | bytes = "{}",
    works: bool = False, subject: str = "",
) -> None:  # fmt: skip
    """A folder plugin with that source."""
    placed = source.replace("§", name.replace("-", "_")) if isinstance(source, str) else source

    def put(there: Installation, plugin: str) -> None:
        there.folder(plugin, placed, manifest)

    FAULTS.append(Fault(name, put, kind, says, fix, subject, works))


def late(*lines: str) -> str:
    """A plugin that registers everything, does something more, and raises."""
    return "def register(ctx):\n" + indent(DONE + dedent("\n".join(lines)), "    ") + "\n    raise ValueError('late')\n"


def installed(
    name: str, put: Callable[[Installation, str], object], kind: str, *says: str, fix: str, subject: str = "", works: bool = False
) -> None:  # fmt: skip
    """A plugin that comes otherwise."""
    FAULTS.append(Fault(name, put, kind, says, fix, subject, works))


# The code ------------------------------------------------------------------------------------------------------------

fault(
    "import-error",
    "from json import nothing_there\n",
    "it raised ImportError: cannot import name 'nothing_there'",
    ":1)",
)
fault("missing-dependency", "import a_module_that_nobody_has\n", "it imports 'a_module_that_nobody_has', which isn't there",
      fix="Install what has the module 'a_module_that_nobody_has'")  # fmt: skip
fault("neighbour", "import beside\n", "it imports 'beside', which isn't there", fix="the module 'beside'")
fault("syntax-error", "def register(:\n", "its code isn't Python: invalid syntax", ":1)", fix="Mend the file.")
fault("system-exit", "raise SystemExit(3)\n", "it ended the program (SystemExit: 3)")
fault("base-exception", "class Odd(BaseException): ...\nraise Odd('odd')\n", "it raised Odd: odd", ":2)")
fault("generator-exit", "def register(ctx):\n    raise GeneratorExit('gone')\n", "it raised GeneratorExit: gone", ":2)")
fault(
    "recursion", "def register(ctx):\n    register(ctx)\n", "it raised RecursionError: maximum recursion depth", ":2)"
)
fault("no-memory", "raise MemoryError\n", "it raised MemoryError", ":1)")
fault("mute", "class Odd(Exception):\n    def __str__(self):\n        raise SystemExit\nraise Odd\n",
      "it raised Odd: (its message can't be read)")  # fmt: skip
fault("long-winded", "raise ValueError('x' * 10**6)\n", "it raised ValueError: xxx", "…")
fault("late-failure", late(), "it raised ValueError: late")
fault("late-exit", late("import sys; sys.exit()"), "it ended the program (SystemExit)")
fault("wrong-signature", "import mibyan\n@mibyan.hookimpl\ndef pre_tool_call(tool, nonsense): ...\n",
      "pre_tool_call(tool_name, args,", "pre_tool_call(tool, nonsense)", fix="any subset of the hook's arguments")  # fmt: skip
fault("unknown-hook", "import mibyan\n@mibyan.hookimpl\ndef pre_tool_cal(args): ...\n",
      "it offers nothing: there is no hook 'pre_tool_cal' (did you mean 'pre_tool_call'?)", fix="The hooks are: ")  # fmt: skip
fault("hanging-hook", "import mibyan, threading\n@mibyan.hookimpl\ndef post_tool_call(tool_name):\n    threading.Event().wait(20)\n",
      "post_tool_call of plugin 'hanging-hook'", kind="warning", subject="hook:post_tool_call")  # fmt: skip
fault(
    "offers-nothing",
    "ANSWER = 42\n",
    "it offers nothing: its import registered no tool",
    fix="Write `def register(ctx): ...`",
)
fault("not-callable", "register = 'later'\n", "it offers nothing: its `register` is str, not a function",
      fix="Write `def register(ctx): ...`")  # fmt: skip
fault(
    "async-raises",
    "async def register(ctx):\n    raise ValueError('awaited')\n",
    "it raised ValueError: awaited",
    ":2)",
)
fault(
    "many-arguments",
    "def register(ctx, registry):\n    pass\n",
    "it raised TypeError: register() missing 1 required positional argument",
)
fault("not-utf8", b"ANSWER = 'caf\xe9'\n", "its code isn't Python: ", "utf-8", fix="Mend the file.")
fault("null-bytes", b"ANSWER = 42\0\n", "its code isn't Python: ", "null bytes", fix="Mend the file.")
fault("bad-schema", "def register(ctx):\n    ctx.register_tool('left_§', 'left', {'description': 'd', 'parameters': {'type': 'odd'}}, len)\n",
      "tool 'left_bad_schema'", "type")  # fmt: skip
fault(
    "bad-handler",
    "def register(ctx):\n    ctx.register_tool('left_§', 'left', {'description': 'd'}, 'later')\n",
    "tool 'left_bad_handler'",
    "handler",
)

# What it does to the process -----------------------------------------------------------------------------------------

fault(
    "prints",
    "print('a greeting')\ndef register(ctx):\n" + indent(DONE, "    "),
    "imported in ",
    kind="loaded",
    works=True,
)
fault("threads", late("import threading", "threading.Thread(target=threading.Event().wait, args=(20,), name='left §', daemon=True).start()"),
      "threads that it started still run: left threads", kind="warning", fix="restart the program")  # fmt: skip
fault(
    "edits-path",
    late("import sys", "sys.path.insert(0, '/left/§')", "sys.path = [*sys.path, '/left/§/2']"),
    "it raised ValueError: late",
)
fault("edits-logging", late("import logging", "logging.root.addHandler(logging.StreamHandler())", "logging.root.setLevel(1)",
                            "logging.disable(50)"), "it raised ValueError: late")  # fmt: skip
fault(
    "edits-environment",
    late("import os", "os.environ['LEFT_§'] = '1'", "del os.environ['PATH']"),
    "it raised ValueError: late",
)
fault(
    "replaces-modules",
    late("import sys", "sys.modules['json'] = sys.modules['left_§'] = sys", "del sys.modules['os']"),
    "it raised ValueError: late",
)
fault(
    "replaces-builtins",
    late("import builtins, sys", "builtins.len = lambda left: 0", "sys.setrecursionlimit(10_000)"),
    "it raised ValueError: late",
)
fault(
    "changes-directory",
    late("import os, sys", "os.chdir('/')", "sys.stdout = sys.stderr = None", "sys.excepthook = len"),
    "it raised ValueError: late",
)

# The manifest, in ten ways -------------------------------------------------------------------------------------------

_MEND: Final = "§/plugin.yaml, or take the folder away"
_GOOD: Final = "def register(ctx):\n" + indent(DONE, "    ")
fault("not-yaml", _GOOD, "plugin.yaml:3: it isn't YAML", fix=_MEND, manifest="id: not-yaml\nhooks: [\n")
fault("not-mapping", _GOOD, "plugin.yaml", "mapping", fix=_MEND, manifest="- id: not-mapping\n")
fault("wrong-types", _GOOD, "plugin.yaml:1: ", "hooks", fix=_MEND, manifest="hooks: 3\n")
fault("unknown-key", _GOOD, "plugin.yaml:2: ", "'hoks'", "'hooks'", fix=_MEND, manifest="id: unknown-key\nhoks: []\n")
fault("latin-1", _GOOD, "plugin.yaml", "UTF-8", fix=_MEND, manifest="description: café\n".encode("latin-1"))
fault("other-id", _GOOD, "the manifest says 'another'", "'other-id'", fix=_MEND, manifest="id: another\n")
fault("unknown-role", _GOOD, "plugin.yaml:1: ", "role", fix=_MEND, manifest="role: boss\n")
fault(
    "bad-tool-name",
    _GOOD,
    "plugin.yaml:1: ",
    "name",
    fix=_MEND,
    manifest="tools: [{name: 'two words', toolset: t, schema: {}}]\n",
)
fault(
    "bad-target",
    _GOOD,
    "plugin.yaml:1: ",
    "target",
    fix=_MEND,
    manifest="tools: [{name: x, toolset: t, schema: {}, target: nowhere}]\n",
)
_BOMB: Final = "config_schema:\n  x0: &x0 [x, x]\n" + "".join(
    f"  x{i}: &x{i} [*x{i - 1}, *x{i - 1}]\n" for i in range(1, 30)
)
fault("alias-bomb", _GOOD, "plugin.yaml:", "more than 200,000 values", fix=_MEND, manifest=_BOMB)

# What it asks for ----------------------------------------------------------------------------------------------------

fault("wrong-version", _GOOD, "it works with Mibyan >=99, this is ", kind="incompatible", fix="pip install 'mibyan>=99'",
      manifest="requires_mibyan: '>=99'\n")  # fmt: skip
fault("needs-plugin", _GOOD, "it needs the plugin 'nobody', which isn't installed", kind="needs", fix="mibyan plugins install nobody",
      manifest="requires_plugins: [nobody]\n")  # fmt: skip
fault("needs-failed", _GOOD, "it needs the plugin 'system-exit', which has failed: it ended the program", kind="needs",
      fix="mibyan plugins disable system-exit", manifest="requires_plugins: [system-exit]\n")  # fmt: skip
fault("needs-program", _GOOD, "a-program-that-nobody-has", kind="needs", fix="a-program-that-nobody-has",
      manifest="requires: {bins: [a-program-that-nobody-has]}\n")  # fmt: skip
fault("cycle-one", "def register(ctx):\n" + indent(DONE.replace("§", "cycle_one"), "    "), "cycle-one", "cycle-two", kind="warning", fix="after",
      manifest="after: [cycle-two]\n", works=True, subject="path:")  # fmt: skip
fault("overrides", "def register(ctx):\n    ctx.register_tool('good_folder', 'left', {'description': 'd'}, len, override=True)\n",
      "'good_folder'", "override", fix="overrides:\n      allow_tool_override: true")  # fmt: skip
fault("takes-a-name", "def register(ctx):\n    ctx.register_tool('read_file', 'files', {'description': 'd'}, len)\n",
      "'read_file'", kind="rejected", subject="tool:read_file", fix="§")  # fmt: skip
fault("lies", "def register(ctx):\n    ctx.register_command('x', len)\n", "its manifest announces the tool 'left_lies', which its code doesn't register",
      fix="mibyan plugins manifest PATH --check", manifest="tools: [{name: left_lies, toolset: left, schema: {description: d}}]\n")  # fmt: skip
fault(
    "files",
    _GOOD.replace("§", "files"),
    "has the same id and comes first",
    kind="shadowed",
    fix="rename one of the two",
)
fault("bad-settings", _GOOD, "config.yaml:", "plugins.entries.bad-settings.config.unit", fix="mend plugins.entries.bad-settings.config",
      manifest="config_schema: {type: object, properties: {unit: {enum: [m, ft]}}}\n")  # fmt: skip

# How it is installed -------------------------------------------------------------------------------------------------

_RAISES: Final = "raise ValueError('installed')\n"


def _put_twice(there: Installation, name: str) -> None:
    module = name.replace("-", "_")
    there.wheel(module, _GOOD.replace("§", module), name=name)
    there.wheel(f"mibyan_plugin_{module}", _GOOD.replace("§", module), name=f"mibyan-plugin-{name}")


def _put_editable(there: Installation, name: str) -> None:
    module = name.replace("-", "_")
    editable = json.dumps({"url": "file:///left", "dir_info": {"editable": True}})
    there.wheel(module, _GOOD.replace("§", module), direct_url=editable)
    there.wheel(module, _RAISES, where="second")


def _put_entry(entry: str | bytes) -> Callable[[Installation, str], object]:
    return lambda there, name: there.wheel(name.replace("-", "_"), _GOOD, entry=entry)


installed("no-metadata", lambda there, name: there.wheel("no_metadata", _GOOD, metadata=False), "skipped", "what an interrupted uninstall has left",
          fix="mibyan plugins uninstall", subject="path:")  # fmt: skip
installed(
    "same-id",
    _put_twice,
    "failed",
    "several distributions have the plugin id 'same-id': ",
    "all are off",
    fix="mibyan plugins uninstall mibyan_plugin_same_id, or same_id",
)
installed(
    "editable-twin",
    _put_editable,
    "shadowed",
    "editable_twin-1.0.dist-info has the same id and comes first",
    fix="take ",
    works=True,
)
installed(
    "zipped-one",
    lambda there, name: there.zipped("zipped_one", _RAISES),
    "failed",
    "it raised ValueError: installed",
    fix=_OFF,
)
installed("wrong-group", lambda there, name: there.wheel("wrong_group", _GOOD, group="mibyan_plugins"), "skipped",
          "distribution 'wrong_group' has entry points in the group 'mibyan_plugins'", fix="'mibyan.plugins'", subject="path:")  # fmt: skip
installed(
    "no-module",
    _put_entry("[mibyan.plugins]\nno-module = left_nowhere\n"),
    "failed",
    "it imports 'left_nowhere', which isn't there",
    fix="left_nowhere",
)
installed(
    "no-attribute",
    _put_entry("[mibyan.plugins]\nno-attribute = no_attribute:gone\n"),
    "failed",
    "the module 'no_attribute' has no 'gone'",
    fix=_OFF,
)
installed(
    "two-entries",
    _put_entry("[mibyan.plugins]\ntwo-entries = a\nanother = b\n"),
    "failed",
    "this has 2: two-entries, another",
    fix=_OFF,
)
installed(
    "no-text",
    _put_entry(b"[mibyan.plugins]\nno-text = caf\xe9\n"),
    "failed",
    "entry_points.txt isn't UTF-8 text",
    fix="install the distribution again",
)
installed(
    "bad-json", lambda there, name: there.wheel("bad_json", _GOOD, manifest="{"), "failed", "mibyan.json", fix=_OFF
)
installed(
    "statistics",
    lambda there, name: there.wheel("statistics", _GOOD),
    "failed",
    "it offers nothing",
    "'statistics'",
    "standard library",
    fix="another name",
)
