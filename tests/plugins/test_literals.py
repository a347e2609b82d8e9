"""What a plugin's sources name (plugins.M4), and which files make it up."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from mibyan.filecache import StampedCache
from mibyan.plugins.candidate import Candidate, Target
from mibyan.plugins.contents import Contents
from mibyan.plugins.learning import UnlearnableError, conditions
from mibyan.plugins.literals import named_in
from mibyan.plugins.places import places_of

from .world import write


@pytest.mark.parametrize(
    ("source", "variables"),
    [
        ("os.environ['A_KEY']", {"A_KEY"}),
        ("get('lower_case')", {"lower_case"}),
        ("x = 'A' 'B'", {"AB"}),
        ("x = r'RAW', b'BYTES', u'TEXT'", {"RAW", "BYTES", "TEXT"}),
        ("x = '_', '__', '7UP', 'a b', 'é', '', 'A-B', 'A=B'", set()),
        ("def f():\n    'DOCSTRING'\n    return {'IN_A_DICT': ['IN_A_LIST']}", {"DOCSTRING", "IN_A_DICT", "IN_A_LIST"}),
        ("x = f'PART{y}' + '" + "A" * 101 + "'", {"PART"}),
        ("# coding: latin-1\nx = 'CODED', '\xe9'", {"CODED"}),
        ("# 'COMMENT'\nNAME = 1", set()),
    ],
)
def test_string_literals_that_could_be_variables(source: str, variables: set[str]) -> None:
    """M4: every text that could be a variable's name, in whatever literal, and nothing else."""
    assert named_in(source.encode("latin-1" if "latin" in source else "utf-8")).variables == variables


def test_beginnings_of_names() -> None:
    """`os.environ[f"WEATHER_{key}"]`, `env_prefix="WEATHER_"`: what begins so counts."""
    named = named_in(b"a = f'WEATHER_{key}'; b = 'SKY_', 'lower_', '_', 'X_', 'A_B'")
    assert named.prefixes == {"WEATHER_", "SKY_"}


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("import numpy.linalg, os, json as j\nfrom yaml import load\nfrom . import near\nfrom .near import x", {"numpy", "yaml"}),
        ("def f():\n    try:\n        import optional\n    except ImportError: pass", {"optional"}),
        ("importlib.import_module('named.deep'); find_spec('asked'); __import__('called'); import_module(name)",
         {"named", "asked", "called"}),
        ("import mibyan, mibyan_builtin", set()),
    ],
)  # fmt: skip
def test_modules_of_others(source: str, modules: set[str]) -> None:
    """Those that a source imports, wherever in it, and those that it asks for by name; not Python's own."""
    assert named_in(source.encode()).modules == modules


@pytest.mark.parametrize(
    ("source", "looks"),
    [
        ("from . import a", False), ("from .a.b import c", False), ("open('data.json')", False), ("from .. import a", True),
        ("HERE = __file__", True), ("x.__file__", True), ("import importlib.resources", True), ("from pkgutil import x", True),
        ("exec(code)", True), ("__path__", True),
    ],
)  # fmt: skip
def test_who_may_look_at_the_files_beside_it(source: str, looks: bool) -> None:
    assert named_in(source.encode()).looks_around is looks


@pytest.mark.parametrize("source", [b"def", b"x = '\0'", b"(" * 5000, b"\xff\xfe"])
def test_what_isn_t_python_is_said(source: bytes) -> None:
    with pytest.raises((SyntaxError, ValueError, RecursionError, MemoryError)):
        named_in(source)


# Places ---------------------------------------------------------------------------------------------------------------


def wheel(site: Path, record: str | None, *, root: str | None = "pkg") -> Candidate:
    info = site / "pkg-1.0.dist-info"
    write(info / "METADATA", "")
    if record is not None:
        write(info / "RECORD", record)
    return Candidate("pkg", "pip", str(info), "1.0", site / root if root else None, Target("entry_point", "pkg"))


def placed(candidate: Candidate, site: Path) -> list[str]:
    found = places_of(candidate, StampedCache())
    assert found is not None
    return [os.path.relpath(place, site) for place in found if "dist-info" not in place]


@pytest.mark.parametrize(
    ("record", "places"),
    [
        ("pkg/__init__.py,,\npkg/deep/__init__.py,,\npkg/deep/a.py,,\npkg/data.txt,,\n", ["pkg"]),
        (
            "pkg/__init__.py,,\nbeside.py,,\n../../bin/x,,\n/etc/x,,\npkg-1.0.dist-info/METADATA,,\n",
            ["pkg", "beside.py"],
        ),
        ("shared/pkg/__init__.py,,\nshared/pkg/a.py,,\nshared/note.txt,,\n", ["shared/pkg", "shared/note.txt", "pkg"]),
        ('"with,comma.py",,\npkg/__init__.py,,\npkg/__pycache__/x.pyc,,\n', ["with,comma.py", "pkg"]),
        ("", ["pkg"]),
        (None, ["pkg"]),
    ],
)
def test_the_places_of_a_wheel(tmp_path: Path, record: str | None, places: list[str]) -> None:
    """A RECORD's packages as folders, its other files one by one; the plugin's own package in any case."""
    assert placed(wheel(tmp_path, record), tmp_path) == places


def test_a_record_that_isn_t_one(tmp_path: Path) -> None:
    """A RECORD that can't be read: nothing is known of the plugin's content, and nothing raises."""
    candidate = wheel(tmp_path, "x")
    (tmp_path / "pkg-1.0.dist-info" / "RECORD").write_bytes(b'"' + b"a" * 200_000)
    assert Contents().digest(candidate) is None


def test_sources_in_an_archive(tmp_path: Path) -> None:
    """F3: of a plugin in a zip the archive is the content, and the sources in it are looked through."""
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("pkg/__init__.py", "import os\nos.environ.get('IN_A_ZIP')\n")
        archive.writestr("pkg/data.txt", "'NOT_CODE'")
    candidate = Candidate("pkg", "pip", f"{path}/pkg-1.0.dist-info", "1.0", None, Target("entry_point", "pkg"))
    contents = Contents()
    files = contents.files(candidate)
    assert files is not None
    found = conditions(contents.digest(candidate) or "", {}, files, {"IN_A_ZIP": "1"})
    assert found.variables == ("IN_A_ZIP",)
    path.write_bytes(b"broken")
    with pytest.raises(UnlearnableError, match="can't be read"):
        conditions("", {}, files, {})


def test_what_can_t_be_looked_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No sources at all, too many, not Python: a sentence each."""

    def of(**files: str) -> None:
        for path in tmp_path.iterdir():
            path.unlink()
        for name, text in files.items():
            write(tmp_path / name.replace("_py", ".py").replace("_so", ".so"), text)
        conditions("", {}, [(str(path), path.stat()) for path in tmp_path.iterdir()], {})

    with pytest.raises(UnlearnableError, match="aren't there to be looked through"):
        of(a_so="x")
    with pytest.raises(UnlearnableError, match=r"a\.py can't be read"):
        of(a_py="def")
    monkeypatch.setattr("mibyan.plugins.learning.NAMES_LIMIT", 1)
    with pytest.raises(UnlearnableError, match="more than 1 words"):
        of(a_py="x = 'A', 'B'")
    monkeypatch.setattr("mibyan.plugins.learning.SOURCES_LIMIT", 5)
    with pytest.raises(UnlearnableError, match="more than 5 bytes"):
        of(a_py="x = 1\n")
