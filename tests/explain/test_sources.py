"""`mibyan.explain.sources` and `places`: registrations and functions found in sources that are never run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mibyan.explain.places import code_of, place_of_tool
from mibyan.explain.sources import places_of, python_files, registrations_in
from mibyan.plugins.candidate import Candidate, Target
from mibyan.plugins.manifest import FrozenTool


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("registry.register('word', 't', {}, f)", 1),
        ("\nmibyan.registry.register(name='word', toolset='t', schema={}, handler=f)", 2),
        ("ctx.register_tool('word', 't', {}, f)", 1),
        ("def register(ctx):\n    ctx.register_tool(\n        name='word')", 2),
        ("import mibyan\n@mibyan.tool\ndef word(): ...", 2),
        ("@tool(toolset='t')\nasync def word(): ...", 1),
        ("@other\n@tool(name='word')\ndef anything(): ...", 2),
        ("NAME = 'word'\nregistry.register(NAME, 't', {}, f)", 2),
        ("registry.register('other', 't', {}, f, aliases=['say', 'word'])", 1),
        ("if 0:\n  class A:\n    def f(self):\n      self.ctx.register_tool('word', 't', {}, f)", 4),
        ("# -*- coding: latin-1 -*-\nregistry.register('word', 't', {'description': '\xe9'}, f)", 2),
    ],
)
def test_a_registration_is_found(tmp_path: Path, source: str, line: int) -> None:
    """However it is written: its line; the plugin isn't run."""
    file = tmp_path / "a.py"
    file.write_bytes(source.encode("latin-1"))
    assert [one.place for one in places_of("word", [str(file)])] == [f"{file}:{line}"]


@pytest.mark.parametrize(
    ("source", "more"),
    [
        ("atexit.register('word')", False),
        ("register(word)", False),
        ("'word'", False),
        ("registry.register(name(), 't', {}, f)", True),
        ("N = 'a'\nN = 'word'\nregistry.register(N, 't', {}, f)", True),
        ("def tool(", True),
        ("tool\0", True),
        ("def (", False),
    ],
)
def test_what_is_no_registration_or_cannot_be_read(tmp_path: Path, source: str, more: bool) -> None:
    """Somebody else's `register` is none; what the text doesn't tell is said to be more."""
    file = tmp_path / "a.py"
    file.write_text(source)
    told = registrations_in([str(file)])
    assert (told.named("word"), told.more) == ([], more)


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("import x\n\nregistry.register('word', 't', {}, f", 3),
        ("def (\n@tool\ndef word(\n", 3),
        ("def (\nwords = 1\n", None),
        ("word\0", None),
    ],
)
def test_a_source_that_is_not_python_still_names_the_tool(tmp_path: Path, source: str, line: int | None) -> None:
    """A file with a mistake somewhere is why the tool isn't there: the line that names it is told."""
    file = tmp_path / "a.py"
    file.write_text(source)
    assert [one.line for one in places_of("word", [str(file)])] == ([] if line is None else [line])


@given(st.binary(max_size=200))
def test_any_bytes_are_read(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever a file holds, reading it raises nothing, and finds nothing that isn't there."""
    file = tmp_path_factory.mktemp("any") / "a.py"
    file.write_bytes(b"# a tool\n" + data)  # Without that word nothing would be parsed.
    assert registrations_in([str(file)]).found == []


def test_files_are_bounded_and_hidden_ones_passed_over(tmp_path: Path) -> None:
    """Hidden folders, byte code and what isn't Python don't count; a thousand files are a few hundred."""
    for name in (".git/a.py", "__pycache__/b.py", "c.txt", "d.py", "e/f.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [Path(file).relative_to(tmp_path).as_posix() for file in python_files(tmp_path)] == ["d.py", "e/f.py"]
    for number in range(1000):
        (tmp_path / f"g{number}.py").touch()
    assert len(python_files(tmp_path)) == 400


def test_what_is_read_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin of any size is answered for in little time: beyond a few megabytes there is more than is told."""
    monkeypatch.setattr("mibyan.explain.sources._PARSED_LIMIT", 100)
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(f"registry.register('{name}', 't', {{}}, f)  # {'x' * 30}\n")
    (tmp_path / "c.py").write_text("nothing = 1\n" * 100)
    told = registrations_in(python_files(tmp_path))
    assert ([one.name for one in told.found], told.more) == (["a"], True)


def frozen(target: str | None) -> FrozenTool:
    return FrozenTool("word", "t", {}, target)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("thing:word", "__init__.py:4"),
        ("thing.inner:talk", "inner.py:1"),
        ("thing:talk", "inner.py:1"),
        ("thing:renamed", "inner.py:1"),
        ("thing:Speaker.word", "__init__.py:8"),
        ("thing:SAY", "__init__.py:9"),
        ("thing:far", "deep/__init__.py:2"),
        (None, "inner.py:3"),
        ("thing:nothing", "origin"),
        ("nowhere:word", "origin"),
        ("thing:circle", "origin"),
        ("broken:word", "origin"),
    ],
)
def test_the_place_of_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str | None, expected: str
) -> None:
    """Through imports of neighbours, classes, assignments; where it can't be told, the manifest's own place."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "thing"
    (package / "deep").mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from .inner import talk, talk as renamed\nfrom .deep import far, circle\nraise SystemExit\n"
        "@decorated\ndef word(): ...\n\nclass Speaker:\n    def word(self): ...\nSAY = word\n"
    )
    (package / "inner.py").write_text("def talk(): ...\n\nregistry.register('word', 't', {}, talk)\n")
    (package / "deep" / "__init__.py").write_text("from .. import circle\ndef far(): ...\n")
    (tmp_path / "broken.py").write_text("def (")
    candidate = Candidate("thing", "pip", "origin", root=package, target=Target("entry_point", "thing"))
    before = set(sys.modules)
    place = place_of_tool(candidate, frozen(target))
    assert place == ("origin" if expected == "origin" else f"{package}/{expected}")
    assert not {name for name in set(sys.modules) - before if name.startswith(("thing", "broken"))}


def test_the_code_of_a_module_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that is one file has that file; one that can't be found has none."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "lonely_one.py").write_text("registry.register('word', 't', {}, f)\n")
    found: Callable = lambda value: code_of(Candidate("x", "pip", "origin", target=Target("entry_point", value)))
    assert found("lonely_one:plugin") == [str(tmp_path / "lonely_one.py")]
    assert found("not_there_at_all") == []
    assert code_of(Candidate("x", "pip", "origin")) == []
