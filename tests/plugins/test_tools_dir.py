"""`mibyan.plugins.sources.tools_dir` and `toolscan`: which files register tools (plugins.F6, seed 000)."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan import filecache
from mibyan.plugins.candidate import Discovery
from mibyan.plugins.sources import toolscan
from mibyan.plugins.sources.cache import ContentCache
from mibyan.plugins.sources.tools_dir import find_tools
from mibyan.plugins.sources.toolscan import Verdict, verdict

if TYPE_CHECKING:
    from pathlib import Path

REGISTERS = "registry.register('x')\n"


def find(root: Path) -> Discovery:
    return find_tools(root, ContentCache())


def write(root: Path, **files: str | bytes) -> None:
    for name, source in files.items():
        path = root / f"{name.replace('__in__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(source if isinstance(source, bytes) else source.encode())


@pytest.mark.parametrize(
    "source",
    [
        "registry.register('x')",
        "mibyan.registry.register('x')",
        "import a; registry.register(\n  name='x',\n)",
        "from tools.registry import registry\nregistry.register(name='x', handler=lambda a: a)",
        "for name in NAMES:\n    registry.register(name)",
        "for a in A:\n    for b in B:\n        mibyan.registry.register(a)",
        "for a in A:\n    pass\nelse:\n    registry.register(a)",
        "@tool\ndef f(): ...",
        "@tool(toolset='x')\nasync def f(): ...",
        "@mibyan.tool\ndef f(): ...",
        "@other\n@mibyan.tool(name='y')\n@third\ndef f(): ...",
        "for n in N:\n    @tool\n    def f(): ...",
        "if True:\n    registry.register('x')\nregistry.register('y')",
    ],
)
def test_top_level_registrations_count(source: str) -> None:
    """plugins.F6: a top-level statement, or a decorated top-level function, also inside a top-level `for`."""
    assert verdict(source.encode()) == Verdict(registers=True)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def f():\n    registry.register('x')", "line 2: registry.register(...) is inside the function 'f'"),
        ("class A:\n    registry.register('x')", "line 2: registry.register(...) is inside the class 'A'"),
        ("class A:\n    @tool\n    def f(self): ...", "line 2: @tool is inside the class 'A'"),
        ("if X:\n    registry.register('x')", "line 2: registry.register(...) is inside a `if`"),
        (
            "try:\n    mibyan.registry.register('x')\nexcept E: ...",
            "line 2: mibyan.registry.register(...) is inside a `try`",
        ),
        ("with x:\n    registry.register('x')", "is inside a `with`"),
        ("while x:\n    @mibyan.tool\n    def f(): ...", "@mibyan.tool is inside a `while`"),
        ("for x in y:\n    if x:\n        registry.register(x)", "line 3: registry.register(...) is inside a `if`"),
        ("register = lambda: registry.register('x')", "is inside a lambda"),
        ("entry = registry.register('x')", "line 1: registry.register(...) isn't a statement of its own"),
        ("print(registry.register('x'))", "isn't a statement of its own"),
        ("import mibyan as m\nm.registry.register('x')", "line 2: m.registry.register(...) goes by another name"),
        ("from mibyan import registry as r\nr.register('x')", "line 2: r.register(...) goes by another name"),
        ("from mibyan import tool as t\n@t\ndef f(): ...", "line 2: @t goes by another name: write `@tool`"),
    ],
)
def test_a_near_miss_is_told_apart(source: str, said: str) -> None:
    """plugins.F6: what looks like a registration and doesn't count is reported with its line and the reason."""
    found = verdict(source.encode())
    assert (found.registers, found.near_miss) == (False, True)
    assert said in (found.reason or "")


@pytest.mark.parametrize(
    "source",
    [
        "",
        "'registry.register(1)'",
        "# registry.register('x')",
        "import registry\nregistry.registered('x')",
        "atexit.register(f)",
        "other.registry.register('x')",
        "registry.register",
        "@toolbox\ndef f(): ...",
        "@registry.tool\ndef f(): ...",
        "tool(f)",
        "def register(): return 1",
    ],
)
def test_other_files_are_left_alone_without_a_word(source: str) -> None:
    """plugins.F6: helper modules in a tools directory aren't imported and aren't reported."""
    assert verdict(source.encode()) == Verdict(registers=False)


@pytest.mark.parametrize(
    "source",
    [
        "# -*- coding: latin-1 -*-\nname = 'Müller'\nregistry.register(name)\n".encode("latin-1"),
        "# coding: cp1252\nname = '€'\nregistry.register(name)\n".encode("cp1252"),
        "#!/usr/bin/python\n# vim: set fileencoding=shift_jis :\nn = '天気'\nregistry.register(n)\n".encode(
            "shift_jis"
        ),
        b"\xef\xbb\xbfregistry.register('x')\n",
        "# coding: utf-7\nregistry.register('ü')\n".encode("utf-7"),
        b"registry.register('x')\r\n",
        b"registry.register('x')\r",
        "registry.register('天気')".encode(),
    ],
)
def test_any_encoding_that_python_accepts_is_read(source: bytes) -> None:
    """plugins.F6: PEP 263 cookies, byte order marks and all line ends."""
    compile(source, "x", "exec")
    assert verdict(source).registers


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (b"registry.register(\n", "line 1: not Python: '(' was never closed"),
        (b"registry.register('\xff')", "not Python"),
        (b"# coding: nonsense\nregistry.register('x')", "not Python: unknown encoding"),
        (b"registry.register('x')\x00", "not Python: source code string cannot contain null bytes"),
        (b"print 'a tool'", "line 1: not Python"),
        (b"registry.register(" + b"(" * 5000, "not Python"),
    ],
)
def test_a_source_that_cant_be_read_is_said(source: bytes, said: str) -> None:
    """plugins.F6: SyntaxError, null bytes and unknown encodings are a record of that file."""
    found = verdict(source)
    assert (found.registers, found.near_miss) == (False, False)
    assert said in (found.reason or "")


@pytest.mark.parametrize(
    "tail",
    ["-" * 100_000 + "1", "+".join(["1"] * 50_000), "a" + ".b" * 50_000, "f" + "()" * 20_000, "not " * 50_000 + "1",
     "lambda: " * 20_000 + "1", "x = " * 20_000 + "1", "[" * 150 + "]" * 150],
)  # fmt: skip
def test_a_monster_ends_nothing(tmp_path: Path, tail: str) -> None:
    """plugins.F6: however deep a source is nested, the answer is a verdict, and the process lives."""
    path = tmp_path / "monster.py"
    path.write_text(f"x = registry.register\n{tail}\n")
    code = (
        "import sys; from mibyan.plugins.sources.toolscan import verdict;"
        "print(verdict(open(sys.argv[1], 'rb').read()).registers)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("False\n", 0), done.stderr[-500:]


@given(st.binary(max_size=200) | st.text(alphabet="registy.()tol@def\n \"'#:x", max_size=200).map(str.encode))
def test_the_verdict_is_total(source: bytes) -> None:
    """plugins.F6: any bytes have a verdict."""
    assert isinstance(verdict(b"registry " + source), Verdict)


def test_a_strangers_warnings_stay_unsaid() -> None:
    """plugins.F6: reading a source with an invalid escape neither warns nor fails, even where warnings are errors."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert verdict(b"x = '\\d'\nregistry.register(x)").registers


def test_files_and_packages_are_found_sorted(tmp_path: Path) -> None:
    """plugins.F6, F2: `<stem>.py` and `<pkg>/tool.py`, in sorted order, each with its id."""
    write(
        tmp_path, b=REGISTERS, a=REGISTERS, helper="x = 1", pkg__in__tool=REGISTERS, pkg__in__helper=REGISTERS,
        bare__in__tool=REGISTERS,
    )  # fmt: skip
    (tmp_path / "pkg" / "__init__.py").touch()
    found = find(tmp_path)
    assert [candidate.id for candidate in found] == ["tools.a", "tools.b", "tools.pkg"]
    assert {candidate.root for candidate in found} == {tmp_path}
    assert [candidate.target.path for candidate in found if candidate.target] == [
        tmp_path / "a.py",
        tmp_path / "b.py",
        tmp_path / "pkg" / "tool.py",
    ]
    assert not found.notes


def test_the_seeds_files_are_skipped(tmp_path: Path) -> None:
    """plugins.F6: `__init__.py`, `registry.py`, `mcp_tool.py` are skipped (seed 000), hidden files too."""
    write(tmp_path, __init__=REGISTERS, registry=REGISTERS, mcp_tool=REGISTERS, **{".hidden": REGISTERS})
    assert find(tmp_path) == Discovery()


def test_a_file_beside_a_package_of_its_name_is_shadowed(tmp_path: Path) -> None:
    """plugins.F2: one id for one plugin: as on import, the package wins."""
    write(tmp_path, pkg=REGISTERS, pkg__in__tool=REGISTERS)
    (tmp_path / "pkg" / "__init__.py").touch()
    package, file = find(tmp_path)
    assert (package.origin, package.shadowed_by) == (str(tmp_path / "pkg" / "tool.py"), None)
    assert (file.origin, file.shadowed_by) == (str(tmp_path / "pkg.py"), package.origin)


def test_one_broken_file_is_one_record(tmp_path: Path) -> None:
    """plugins.F6: a broken file is a plugin with a problem; near misses are notes; the others are found."""
    write(tmp_path, bad="registry.register(", good=REGISTERS, near="if x:\n    registry.register('x')")
    found = find(tmp_path)
    bad, good = found
    assert bad.problem == "line 1: not Python: '(' was never closed"
    assert bad.hint == f"mend {tmp_path / 'bad.py'}, or take it away"
    assert good.usable
    assert [(note.kind, note.origin) for note in found.notes] == [("near_miss", str(tmp_path / "near.py"))]


def test_what_isnt_a_file_is_never_waited_for(tmp_path: Path) -> None:
    """plugins.F6: pipes, loops of links, links to nowhere and directories called `x.py` hold nothing up."""
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "nowhere.py").symlink_to(tmp_path / "missing")
    (tmp_path / "folder.py").mkdir()
    write(tmp_path, good=REGISTERS)
    found = find(tmp_path)
    assert [candidate.id for candidate in found if candidate.usable] == ["tools.good"]
    assert {candidate.id: candidate.problem for candidate in found if candidate.problem}["tools.pipe"] == (
        "can't be read: not a regular file"
    )


def test_a_very_large_file_is_a_record(tmp_path: Path) -> None:
    """plugins.F6: no file is read without end."""
    with (tmp_path / "large.py").open("wb") as file:
        file.truncate(1 << 40)
    (candidate,) = find(tmp_path)
    assert candidate.problem == "can't be read: larger than 4,194,304 bytes"


@pytest.mark.parametrize("kind", ["missing", "file"])
def test_a_root_that_isnt_a_directory_has_no_tools(tmp_path: Path, kind: str) -> None:
    """plugins.F6: no tools directory is the normal case; a file in its place is a note."""
    root = tmp_path / "tools"
    if kind == "file":
        root.touch()
    found = find(root)
    assert len(found) == 0
    assert [note.kind for note in found.notes] == ([] if kind == "missing" else ["unreadable"])
    assert all(note.hint for note in found.notes)


def test_verdicts_are_kept_while_a_file_doesnt_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F6: verdicts are kept by (path, mtime_ns, size), also on disk."""
    monkeypatch.setattr(filecache, "_TICK", 0)  # the test's files have only just been written
    read: list[bytes] = []
    real = toolscan.verdict
    monkeypatch.setattr(toolscan, "verdict", lambda source: read.append(source) or real(source))
    root, kept = tmp_path / "tools", tmp_path / "cache" / "discovery.bin"
    write(root, a=REGISTERS, bad="registry.register(", near="x = registry.register(1)")
    first = ContentCache(kept)
    once = find_tools(root, first)
    first.save()
    assert len(read) == 3
    assert find_tools(root, ContentCache(kept)) == once
    assert len(read) == 3
    write(root, a="x = 'tool'")
    assert [candidate.id for candidate in find_tools(root, ContentCache(kept))] == ["tools.bad"]
    assert len(read) == 4


def test_a_mended_permission_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """plugins.F6: that a file couldn't be read isn't its content, so it isn't kept."""
    from mibyan.plugins.sources import tools_dir

    write(tmp_path, a=REGISTERS)
    cache = ContentCache()

    def refuse(_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as locked:
        locked.setattr(tools_dir, "read_bytes", refuse)
        (candidate,) = find_tools(tmp_path, cache)
        assert candidate.problem == "can't be read: permission denied"
    (candidate,) = find_tools(tmp_path, cache)
    assert candidate.usable


def test_the_prefix_makes_the_ids(tmp_path: Path) -> None:
    """plugins.F2: files of a project's directory are `project-tools.<stem>`."""
    write(tmp_path, a=REGISTERS)
    assert [candidate.id for candidate in find_tools(tmp_path, ContentCache(), prefix="project-tools.")] == [
        "project-tools.a"
    ]


def test_scanning_imports_nothing(tmp_path: Path) -> None:
    """plugins.F6: a file that ends the process is scanned without running."""
    write(tmp_path, a=textwrap.dedent("import os\nos._exit(3)\nregistry.register('x')\n"))
    assert len(find(tmp_path)) == 1
