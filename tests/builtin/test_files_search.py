"""search_files: two engines that find the same, globs, bounds, and patterns that can't hold up anything."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mibyan import ToolError
from mibyan_builtin import files
from mibyan_builtin.files import engines, search_files, searching
from mibyan_builtin.files.dialect import for_ripgrep
from mibyan_builtin.files.globs import matching

NEEDS_RG = pytest.mark.skipif(not shutil.which("rg"), reason="ripgrep isn't installed")


@pytest.fixture(params=[pytest.param("rg", marks=NEEDS_RG), "own"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs with ripgrep and without it."""
    if request.param == "own":
        monkeypatch.setattr(searching.shutil, "which", lambda name: None)
    else:
        monkeypatch.setattr(engines, "own", lambda *args: pytest.fail("ripgrep should have answered"))
    return request.param


@pytest.fixture
def tree(workspace: Path) -> Path:
    """Files of every kind that a search meets."""
    contents = {
        "a.py": b"import os\nprint('needle')\n",
        "b/c.py": b"needle = 1\r\nno\r\nneedle\r\n",
        "b/c.txt": b"a needle\n",
        "b.txt": b"needle",
        "b-1/x.txt": b"needle\n",
        ".hidden/h.txt": b"needle\n",
        ".gitignore": b"ignored/\n",
        "ignored/i.txt": b"needle\n",
        "node_modules/m.js": b"needle\n",
        ".git/config": b"needle\n",
        "sub/.hg/store": b"needle\n",
        "sub/.svn/entries": b"needle\n",
        "sub/.git": b"gitdir: needle\n",
        "binary.bin": b"needle\n\0\n",
        "late.bin": b"needle\n" + b"x\n" * 100_000 + b"\0",
        "latin.txt": b"caf\xe9 needle\n",
        "utf16.txt": "\ufeffein needle\n".encode("utf-16-le"),
        "bom.txt": b"\xef\xbb\xbfneedle at the beginning\n",
        "hebrew.txt": "שלום needle\n".encode(),
        "empty": b"",
        "name with blank/ü.txt": b"needle\n",
    }
    for name, data in contents.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(data)
    (workspace / "link.txt").symlink_to("a.py")
    (workspace / "out.txt").symlink_to("../outside.txt")
    (workspace / "linked").symlink_to("b")
    os.mkfifo(workspace / "fifo")
    return workspace


FOUND = [
    (".hidden/h.txt", 1), ("a.py", 2), ("b/c.py", 1), ("b/c.py", 3), ("b/c.txt", 1), ("b-1/x.txt", 1), ("b.txt", 1),
    ("bom.txt", 1), ("hebrew.txt", 1), ("ignored/i.txt", 1), ("latin.txt", 1), ("name with blank/ü.txt", 1),
    ("node_modules/m.js", 1), ("utf16.txt", 1),
]  # fmt: skip


def places(answer: dict) -> list[tuple[str, int]]:
    return [(match["path"], match["line"]) for match in answer["matches"]]


def test_every_text_file_is_searched(context, tree: Path, engine: str) -> None:
    """Hidden and ignored files too; no binary ones, no links, nothing of version control; in the order of paths."""
    answer = search_files(context, "needle", limit=1000)
    assert places(answer) == FOUND
    assert (answer["count"], answer["truncated"]) == (len(FOUND), False)
    texts = {match["path"]: match["text"] for match in answer["matches"]}
    assert texts["latin.txt"] == "caf\ufffd needle"
    assert texts["hebrew.txt"] == "שלום needle"
    assert texts["bom.txt"] == "needle at the beginning"


@pytest.mark.parametrize(
    ("pattern", "glob", "path", "found"),
    [
        ("needle$", "*.py", ".", [("b/c.py", 3)]),
        ("^needle", "*.{py,txt}", ".", [(".hidden/h.txt", 1), ("b/c.py", 1), ("b/c.py", 3), ("b-1/x.txt", 1),
                                      ("b.txt", 1), ("bom.txt", 1), ("ignored/i.txt", 1), ("name with blank/ü.txt", 1)]),
        ("needle", "b/**", ".", [("b/c.py", 1), ("b/c.py", 3), ("b/c.txt", 1)]),
        ("needle", "*.py", "b", [("b/c.py", 1), ("b/c.py", 3)]),
        ("needle", "!*.txt", "b", [("b/c.py", 1), ("b/c.py", 3)]),
        ("(?i)NEEDLE at", None, ".", [("bom.txt", 1)]),
        (r"\w+ needle", "{hebrew,latin}.txt", ".", [("hebrew.txt", 1)]),
        (r"[שa]\w*\sn", None, ".", [("b/c.txt", 1), ("hebrew.txt", 1)]),
        ("^$", None, ".", []),
        ("nothing", None, ".", []),
    ],
)  # fmt: skip
def test_patterns_and_globs(context, tree: Path, engine: str, pattern, glob, path, found) -> None:
    """Anchors mean lines whatever ends them, letters are letters of any script, globs choose files."""
    assert places(search_files(context, pattern, path, glob=glob)) == found


@pytest.mark.filterwarnings("ignore:Possible nested set")
@pytest.mark.parametrize(
    "pattern",
    [r"(?<=import )os", r"(n)(e)\2", r"ne{2}dle(?!.)", r"[[:alpha:]]", r"need\x6ce", r"a||b", r"(?P<n>os)", r"o$^s"],
)
def test_what_ripgrep_reads_otherwise_goes_to_our_own(context, tree: Path, pattern: str) -> None:
    """Patterns that the two read differently get Python's meaning, whether ripgrep is there or not."""
    assert for_ripgrep(pattern) is None or pattern == "a||b"
    expected = [
        (path, number)
        for path in ("a.py",)
        for number, line in enumerate((tree / path).read_text().splitlines(), 1)
        if re.search(pattern, line)
    ]
    assert places(search_files(context, pattern, "a.py")) == expected


@NEEDS_RG
def test_word_borders_are_pythons(context, tree: Path) -> None:
    """Beside a combining mark the two draw a word's border differently; the answer is Python's."""
    (tree / "marks.txt").write_text("e\u0301needle\nneedle\u0301\nneedle\nneedles\n")
    answer = search_files(context, r"\bneedle\b", glob="marks.txt")
    assert places(answer) == [("marks.txt", 1), ("marks.txt", 2), ("marks.txt", 3)]
    assert places(search_files(context, r"\bneedle\b", limit=3)) == FOUND[:3]


def test_one_file_can_be_searched(context, tree: Path) -> None:
    """The path may be a file; the answer names it as a path that can be read."""
    assert places(search_files(context, "needle", "b/c.py")) == [("b/c.py", 1), ("b/c.py", 3)]
    assert places(search_files(context, "needle", str(tree / "b/c.py"))) == [("b/c.py", 1), ("b/c.py", 3)]


def test_other_roots_are_named_in_full(make_context, tree: Path, tmp_path: Path) -> None:
    """A path outside the working directory is told as an absolute one."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more/f.txt").write_text("needle\n")
    context = make_context(roots=[tmp_path / "more"])
    assert places(search_files(context, "needle", str(tmp_path / "more"))) == [(f"{tmp_path.resolve()}/more/f.txt", 1)]


def test_results_are_bounded(context, tree: Path, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit results, in the order of paths; a long line is cut around its match."""
    answer = search_files(context, "needle", limit=3)
    assert (places(answer), answer["truncated"]) == (FOUND[:3], True)
    assert search_files(context, "needle", limit=len(FOUND))["truncated"] is False
    (tree / "long.txt").write_text("x" * 50_000 + "haystack" + "y" * 50_000 + "\n")
    [match] = search_files(context, "haystack")["matches"]
    assert "haystack" in match["text"]
    assert len(match["text"]) <= searching.SHOWN_TEXT + 2
    monkeypatch.setattr(files, "MAX_CHARACTERS", 50)
    assert search_files(context, "needle")["truncated"]


def test_many_matches_of_one_file_are_bounded(context, workspace: Path, engine: str) -> None:
    """A file that matches everywhere takes no more memory than its matches that are told."""
    (workspace / "f.txt").write_text("x\n" * 20_000)
    (workspace / "g.txt").write_text("x\n")
    answer = search_files(context, "x", limit=1000)
    assert (answer["count"], answer["truncated"], answer["matches"][-1]["line"]) == (1000, True, 1000)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"pattern": ""}, "0 characters"),
        ({"pattern": "x" * 5001}, "5001 characters"),
        ({"pattern": "a\nb"}, "line break"),
        ({"pattern": "(a"}, "isn't a regular expression: missing \\)"),
        ({"pattern": "*"}, "nothing to repeat"),
        ({"pattern": "a{99999999999}"}, "isn't a regular expression"),
        ({"pattern": "(" * 3000 + ")" * 3000}, "characters"),
        ({"pattern": "(" * 2000 + ")" * 2000}, "isn't a regular expression"),
        ({"pattern": "a", "limit": 0}, "got 0"),
        ({"pattern": "a", "limit": 1001}, "got 1001"),
        ({"pattern": "a", "glob": "/"}, "isn't a glob"),
        ({"pattern": "a", "glob": "{a,b}" * 10}, "fewer braces"),
        ({"pattern": "a", "path": "missing"}, "File not found"),
        ({"pattern": "a", "path": ".."}, "outside"),
        ({"pattern": "a", "path": "out.txt"}, "outside"),
        ({"pattern": "a", "path": "fifo"}, "named pipe"),
        ({"pattern": "", "target": "files"}, "empty"),
    ],
)
def test_bad_arguments_get_a_sentence(context, tree: Path, arguments: dict, message: str) -> None:
    """What is wrong, and how to search for the very text."""
    with pytest.raises(ToolError, match=message):
        search_files(context, **arguments)


def test_an_endless_pattern_ends_with_the_time(make_context, workspace: Path) -> None:
    """A pattern that would take for ever takes no longer than the call has, and blocks nobody."""
    (workspace / "f").write_text("a" * 200 + "!\n")
    started = time.monotonic()
    answer = search_files(make_context(seconds=1.0), r"(?=a)(a+)+$")
    assert time.monotonic() - started < 10
    assert answer["matches"] == []
    assert (answer["truncated"], "too long" in answer["note"]) == (True, True)


def test_a_cancelled_search_stops(make_context, tree: Path, engine: str) -> None:
    """Nobody waits for the answer: the search ends with its processes."""
    with pytest.raises(ToolError, match="cancelled"):
        search_files(make_context(cancelled=lambda: True), "needle")


@pytest.mark.parametrize(
    ("pattern", "glob", "found"),
    [
        ("*.py", None, ["a.py", "b/c.py"]),
        ("c.", None, ["b/c.py", "b/c.txt"]),
        ("C.PY", None, ["b/c.py"]),
        ("b/*", None, ["b/c.py", "b/c.txt"]),
        ("**/c.*", "*.txt", ["b/c.txt"]),
        ("link", None, ["link.txt", "linked"]),
        ("config", None, []),
        ("fifo", None, []),
    ],
)
def test_files_are_found_by_name(context, tree: Path, pattern, glob, found) -> None:
    """A glob about the name or the whole path, or a part of the name in any case; links are named, not followed."""
    answer = search_files(context, pattern, target="files", glob=glob)
    assert (answer["files"], answer["count"], answer["truncated"]) == (found, len(found), False)
    if len(found) > 1:
        assert search_files(context, pattern, target="files", glob=glob, limit=1) == {
            "files": found[:1], "count": 1, "truncated": True,
        }  # fmt: skip


@pytest.mark.parametrize(
    ("glob", "fits", "fits_not"),
    [
        ("*.py", ["a.py", "x/y/a.py", ".py"], ["a.pyc", "a.py/b"]),
        ("a?c", ["abc", "x/abc"], ["ac", "a/c"]),
        ("[ab].txt", ["a.txt"], ["c.txt", "ab.txt"]),
        ("[!a].txt", ["b.txt"], ["a.txt"]),
        ("src/*.py", ["src/a.py"], ["src/x/a.py", "x/src/a.py"]),
        ("src/**/*.py", ["src/a.py", "src/x/y/a.py"], ["a.py"]),
        ("**/a.py", ["a.py", "x/y/a.py"], ["b.py"]),
        ("/a.py", ["a.py"], ["x/a.py"]),
        ("./a/b", ["a/b"], ["b"]),
        ("src/", ["src/a", "src/x/y"], ["src", "x/src/a"]),
        ("src/**", ["src/a", "src/x/y"], ["src", "b"]),
        ("*.{js,ts}", ["a.js", "a.ts"], ["a.css"]),
        ("{a,b/{c,d}}/*", ["a/x", "b/c/x", "b/d/x"], ["b/x"]),
        ("!*.js", ["a.ts"], ["a.js"]),
        ("a.b+c", ["a.b+c"], ["aXb+c", "a.bbc"]),
    ],
)
def test_globs(glob: str, fits: list[str], fits_not: list[str]) -> None:
    """Globs mean what ripgrep and git mean by them."""
    fit = matching(glob)
    assert [path for path in fits if not fit(path)] == []
    assert [path for path in fits_not if fit(path)] == []


def test_a_hostile_glob_takes_no_time() -> None:
    """Stars don't multiply."""
    fit = matching("/".join(["**"] * 100) + "/" + "*a" * 50)
    started = time.monotonic()
    assert not fit("/".join(["a" * 50 + "b"] * 50))
    assert time.monotonic() - started < 5


ALPHABET = [
    "a",
    "B",
    "é",
    "1",
    "_",
    "-",
    " ",
    ".",
    "*",
    "+",
    "?",
    "(",
    ")",
    "|",
    "[",
    "]",
    "^",
    "$",
    r"\w",
    r"\d",
    r"\b",
    r"\W",
    r"\.",
    "{2}",
    "(?:",
    "(?i)",
    "[a-c]",
    r"[\w-]",
    "[^a]",
    r"\/",
]


@NEEDS_RG
@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")
@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(ALPHABET), min_size=1, max_size=6).map("".join))
def test_ripgrep_finds_what_python_finds(tmp_path_factory: pytest.TempPathFactory, pattern: str) -> None:
    """Whatever pattern is given to ripgrep: it matches the same lines as Python's own, or more when it says so."""
    written = for_ripgrep(pattern)
    try:
        compiled = re.compile(pattern)
    except re.error:
        return
    if written is None:
        return
    directory = tmp_path_factory.mktemp("lines")
    lines = [
        "",
        "a",
        "B",
        "é",
        "aa",
        "1",
        "_",
        "-a",
        "a b",
        "a.b",
        "a*",
        "(a)",
        "[a]",
        "a|b",
        "ba1",
        "É",
        "/",
        "b\u0301 x",
        "٣",
    ]
    (directory / "f").write_text("\n".join(lines) + "\n")
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        found = {match.line for match in engines.ripgrep("rg", written.text, descriptor, lambda: None)}
    except engines.Unanswered:
        return
    finally:
        os.close(descriptor)
    expected = {number for number, line in enumerate(lines, 1) if compiled.search(line)}
    assert found == expected if written.exact else found >= expected
