"""Unified diffs: read as models write them, applied where they fit, all files or none."""

from __future__ import annotations

import difflib
import errno
import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mibyan import ToolError
from mibyan_builtin.files import patch, transaction
from mibyan_builtin.files.hunks import applied, created
from mibyan_builtin.files.unified import parse

TEN = "".join(f"line {i}\n" for i in range(1, 11))


def apply(text: str, diff: str) -> str:
    [file] = parse(diff)
    return applied(text, file, "f")


def diff_of(body: str, header: str = "@@ -4,3 +4,3 @@") -> str:
    return f"--- a/f\n+++ b/f\n{header}\n{body}"


FIVE = " line 4\n-line 5\n+FIVE\n line 6\n"
CHANGED = TEN.replace("line 5", "FIVE")


@pytest.mark.parametrize(
    "diff",
    [
        diff_of(FIVE),
        diff_of(FIVE, "@@ -4,3 +4,3 @@ def section():"),
        diff_of(FIVE, "@@ -1,3 +1,3 @@"),
        diff_of(FIVE, "@@ -900,3 +900,3 @@"),
        diff_of(FIVE, "@@ -4,9 +4,2 @@"),
        diff_of(FIVE, "@@ -4 +4 @@"),
        diff_of(FIVE, "@@"),
        diff_of(FIVE, "@@ @@"),
        diff_of(FIVE, "@@ ... @@"),
        diff_of(FIVE) + "\n\n",
        diff_of(FIVE, "@@ -4,9 +4,9 @@") + "\n\n",
        diff_of(FIVE).removesuffix("\n"),
        diff_of(FIVE) + "-- \n2.39.0\n",
        diff_of(FIVE) + "```\n",
        "Subject: [PATCH]\n\n- a list in the message\n---\n f | 2 +-\n\n" + diff_of(FIVE),
        "diff --git a/f b/f\nindex 123..456 100644\n" + diff_of(FIVE),
        "Index: f\n=====\n" + diff_of(FIVE),
        diff_of(FIVE).replace("a/f", "f").replace("b/f", "f"),
        diff_of(FIVE).replace("a/f", "f\t2024-01-01 10:00:00").replace("b/f", "f\t2024-01-01"),
        diff_of(FIVE).replace("a/f", "i/f").replace("b/f", "w/f"),
        diff_of(FIVE).replace("\n", "\r\n"),
    ],
)
def test_a_diff_is_read_whatever_its_dress(diff: str) -> None:
    """Headers of every tool, wrong or missing numbers, prose around it: the hunk counts."""
    [file] = parse(diff)
    assert file.paths == ["f"]
    assert apply(TEN, diff) == CHANGED


def test_an_empty_context_line_may_have_lost_its_blank() -> None:
    """Editors strip blanks at line ends, and so do models."""
    assert apply("a\n\nb\n\nc\n", diff_of(" a\n\n-b\n+B\n\n c\n", "@@ -1,5 +1,5 @@")) == "a\n\nB\n\nc\n"
    assert apply("a\n\nb\n\nc\n", diff_of(" a\n\n-b\n+B\n\n c\n", "@@ -1,2 +1,2 @@")) == "a\n\nB\n\nc\n"
    assert apply("a\n\nb\n\nc\n", diff_of(" a\n\n-b\n+B\n\n", "@@")) == "a\n\nB\n\nc\n"


def test_lines_that_look_like_headers_are_lines() -> None:
    """`--- x` within a hunk is the removed line `-- x`, if the numbers say so."""
    text = "-- x\nkeep\n"
    diff = diff_of("--- x\n+++ y\n keep\n", "@@ -1,2 +1,2 @@")
    assert apply(text, diff) == "++ y\nkeep\n"
    two = diff_of("--- x\n+++ y\n", "@@ -1,1 +1,1 @@") + "@@ -2,1 +2,1 @@\n-keep\n+kept\n"
    assert apply(text, two) == "++ y\nkept\n"


def test_a_hunk_goes_where_its_lines_stand() -> None:
    """The header's line counts if the old lines stand there, else the one place where they do."""
    text = "x\ny\n" * 3
    assert apply(text, diff_of(" x\n-y\n+Y\n", "@@ -3,2 +3,2 @@")) == "x\ny\nx\nY\nx\ny\n"
    with pytest.raises(ToolError, match="fits f in 3 places: lines 1, 3, 5"):
        apply(text, diff_of(" x\n-y\n+Y\n", "@@"))
    with pytest.raises(ToolError, match="doesn't fit f") as refusal:
        apply(TEN, diff_of(" line 4\n-line five\n+FIVE\n", "@@ -4,2 +4,2 @@"))
    assert "line 5" in (refusal.value.hint or "")


def test_later_hunks_follow_the_earlier_ones() -> None:
    """What an earlier hunk has moved, or has been moved by, counts for the next; none goes back."""
    moved = "new\n" * 5 + TEN
    diff = diff_of(" line 1\n-line 2\n+2\n", "@@ -1,2 +1,2 @@") + "@@ -9,2 +9,2 @@\n line 9\n-line 10\n+10\n"
    assert apply(moved, diff) == moved.replace("line 2\n", "2\n").replace("line 10\n", "10\n")
    backwards = diff_of("-line 9\n+9\n", "@@ -9 +9 @@") + "@@ -2 +2 @@\n-line 2\n+2\n"
    with pytest.raises(ToolError, match="doesn't fit"):
        apply(TEN, backwards)


def test_blanks_at_line_ends_may_differ() -> None:
    """Context that differs in blanks at line ends only still fits, and the file's own lines stay."""
    assert apply("a  \nb\nc\t\n", diff_of(" a\n-b\n+B\n c\n", "@@ -1,3 +1,3 @@")) == "a  \nB\nc\t\n"


@pytest.mark.parametrize(
    ("text", "body", "header", "after"),
    [
        ("", "+a\n", "@@ -0,0 +1 @@", "a\n"),
        ("a\nb\n", "+x\n", "@@ -1,0 +2 @@", "a\nx\nb\n"),
        ("a\nb\n", "+x\n", "@@ -0,0 +1 @@", "x\na\nb\n"),
        ("a\nb\n", "+x\n", "@@ -2,0 +3 @@", "a\nb\nx\n"),
        ("a\nb\n", "-a\n-b\n", "@@ -1,2 +0,0 @@", ""),
        ("a\nb", "-b\n\\ No newline at end of file\n+b\n", "@@ -2 +2 @@", "a\nb\n"),
        ("a\nb\n", "-b\n+b\n\\ No newline at end of file\n", "@@ -2 +2 @@", "a\nb"),
        ("a\nb", " a\n-b\n+c\n", "@@ -1,2 +1,2 @@", "a\nc"),
        ("a\nb", " a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n", "@@ -1,2 +1,2 @@", "a\nc"),
        ("a\r\nb\r\n", "-b\n+c\n+d\n", "@@ -2 +2,2 @@", "a\r\nc\r\nd\r\n"),
        ("a\r\nb\r\n", "-b\r\n+c\r\n", "@@ -2 +2 @@", "a\r\nc\r\n"),
        ("a\r\nb\r\n", "-a\r\n+a\n b\r\n", "@@ -1,2 +1,2 @@", "a\nb\r\n"),
        ("a\r\nb", " b\n+c\n", "@@ -2 +2,2 @@", "a\r\nb\r\nc"),
    ],
)  # fmt: skip
def test_ends_of_lines_and_files(text: str, body: str, header: str, after: str) -> None:
    """Insertions without context, the end of the file, and the file's own line endings."""
    assert apply(text, diff_of(body, header)) == after


def test_an_insertion_without_a_place_is_refused() -> None:
    """Lines without context need numbers that can be right."""
    for header in ("@@", "@@ -99,0 +100 @@", "@@ -5,3 +5,4 @@"):
        with pytest.raises(ToolError, match="doesn't say where"):
            apply(TEN, diff_of("+x\n", header))


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("", "no file header"),
        ("hello\n", "no file header"),
        ("*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n*** End Patch\n", "before any file header"),
        ("@@ -1 +1 @@\n-a\n+b\n", "line 1: a hunk stands before any file header"),
        ("--- a/f\n+++ b/f\n", "no hunk"),
        ("--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n", "names no file"),
        ("--- \n+++ \n@@ -1 +1 @@\n-a\n+b\n", "names no file"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n a\n", "line 3 changes nothing"),
        ("--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\nb\n-c\n+d\n", "line 5: a line in a hunk begins"),
        ("diff --git a/f b/f\nGIT binary patch\nliteral 3\n", "binary file"),
        ("diff --git a/f b/f\nBinary files a/f and b/f differ\n", "binary file"),
        ("diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+x\n", "mode 120000"),
        ("diff --git a/f b/g\ncopy from f\ncopy to g\n", "copies"),
        ("x" * 10_000_001, "the limit is"),
    ],
)
def test_what_is_no_diff_gets_a_sentence(diff: str, message: str) -> None:
    """The line of the diff and what is wrong with it."""
    with pytest.raises(ToolError, match=message):
        parse(diff)


@pytest.mark.parametrize(
    ("header", "paths"),
    [
        ('diff --git "a/\\303\\251 x.txt" "b/\\303\\251 x.txt"\nold mode 100644\nnew mode 100755\n', ["é x.txt"]),
        ("diff --git a/with blank b/with blank\nold mode 100644\nnew mode 100755\n", ["with blank"]),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to y\n", ["x", "y"]),
        ('--- "a/tab\\there"\n+++ "b/tab\\there"\n@@ -1 +1 @@\n-a\n+b\n', ["tab\there"]),
        ("--- /dev/null\n+++ b/c/new\n@@ -0,0 +1 @@\n+a\n", ["c/new"]),
        ("--- /dev/null\n+++ c/new\n@@ -0,0 +1 @@\n+a\n", ["c/new"]),
        ("--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", ["gone"]),
        ("--- a/x\n+++ a/x\n@@ -1 +1 @@\n-a\n+b\n", ["a/x"]),
        ("diff --git a/f b/f\n@@ -1 +1 @@\n-a\n+b\n", ["f"]),
    ],
)
def test_names_are_read(header: str, paths: list[str]) -> None:
    """Quoted, prefixed and renamed names."""
    [file] = parse(header)
    assert file.paths == paths


LINES = st.lists(
    st.sampled_from(["", "a", "b", "  c", "--- d", "+++ e", "@@ x @@", "\\ f", "diff --git a/x b/x"]), max_size=12
)


def text_of(lines: list[str], bare: bool) -> str:
    return "\n".join(lines) + ("" if bare or not lines else "\n")


@settings(max_examples=300)
@given(LINES, LINES, st.booleans(), st.booleans(), st.integers(0, 4))
def test_a_diff_turns_the_old_into_the_new(
    old_lines: list[str], new_lines: list[str], old_bare: bool, new_bare: bool, context: int
) -> None:
    """For any two texts: the diff between them, applied to the one, gives the other."""
    old, new = text_of(old_lines, old_bare), text_of(new_lines, new_bare)
    pieces = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), "a/f", "b/f", n=context)
    diff = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in pieces)
    assert (apply(old, diff) if diff else old) == new


@settings(max_examples=200)
@given(st.text("-+ @a\\\n\r", max_size=60))
def test_reading_a_diff_never_breaks(body: str) -> None:
    """Whatever follows a header: files, or a sentence."""
    try:
        for file in parse(f"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n{body}"):
            applied("a\n-a\n", file, "f")
            created(file)
    except ToolError as error:
        assert error.message  # noqa: PT017 - both ways are right


@pytest.mark.skipif(not shutil.which("git"), reason="git isn't installed")
def test_gits_own_diff_is_applied(context, workspace: Path, tmp_path: Path) -> None:
    """Changed, made, removed, renamed, executable, quoted: what git writes about two trees turns the one into the other."""
    old, new = tmp_path / "git/old", tmp_path / "git/new"
    old.mkdir(parents=True)
    (old / "src").mkdir()
    (old / "src/a.txt").write_text(TEN)
    (old / "gone.txt").write_text("bye\n")
    (old / "empty-gone").touch()
    (old / "moved.txt").write_text(TEN * 3)
    (old / "é\tx.txt").write_text("quoted\n")
    (old / "run.sh").write_text("#!/bin/sh\n")
    (old / "crlf.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    shutil.copytree(old, workspace, dirs_exist_ok=True)
    shutil.copytree(old, new)
    (new / "src/a.txt").write_text(CHANGED.replace("line 1\n", "") + "no end")
    (new / "gone.txt").unlink()
    (new / "empty-gone").unlink()
    (new / "moved.txt").rename(new / "src/moved here.txt")
    (new / "src/moved here.txt").write_text(TEN * 3 + "more\n")
    (new / "é\tx.txt").write_text("QUOTED\n")
    (new / "run.sh").chmod(0o755)
    (new / "crlf.txt").write_bytes(b"a\r\nB\r\nc\r\n")
    (new / "made/deep").mkdir(parents=True)
    (new / "made/deep/new.txt").write_text("new\n")
    (new / "made/tool").write_text("#!/bin/sh\n")
    (new / "made/tool").chmod(0o755)
    (new / "made/empty").touch()
    diff = git_diff(tmp_path / "git", old, new)
    answer = patch(context, diff=diff)
    assert tree(workspace) == tree(new)
    changes = {Path(file["path"]).name: file["change"] for file in answer["files"]}
    assert changes["moved here.txt"] == "renamed"
    assert changes["gone.txt"] == "deleted"
    assert changes["new.txt"] == "created"


def git_diff(top: Path, old: Path, new: Path) -> str:
    """Git's diff between two trees, as commits of one repository have it."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(top)}

    def git(*arguments: str, work_tree: Path) -> str:
        told = subprocess.run(
            ["git", f"--git-dir={top}/repo", f"--work-tree={work_tree}", "-c", "core.autocrlf=false", *arguments],
            capture_output=True, check=True, env=environment, cwd=work_tree,
        )  # fmt: skip
        return told.stdout.decode()

    git("init", "-q", work_tree=old)
    git("add", "-A", work_tree=old)
    before = git("write-tree", work_tree=old).strip()
    git("add", "-A", work_tree=new)
    after = git("write-tree", work_tree=new).strip()
    return git("diff", "-M", before, after, work_tree=new)


def tree(top: Path) -> dict[str, tuple[bytes, bool]]:
    files = [path for path in top.rglob("*") if path.is_file()]
    return {str(p.relative_to(top)): (p.read_bytes(), bool(stat.S_IMODE(p.stat().st_mode) & 0o100)) for p in files}


def test_nothing_is_written_unless_everything_fits(context, workspace: Path) -> None:
    """Every problem of the diff is told, and no file is touched."""
    (workspace / "a").write_text("1\n")
    (workspace / "b").write_text("2\n")
    good = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+one\n--- /dev/null\n+++ b/new/c\n@@ -0,0 +1 @@\n+3\n"
    bad = "--- a/b\n+++ b/b\n@@ -1 +1 @@\n-two\n+TWO\n--- a/missing\n+++ b/missing\n@@ -1 +1 @@\n-x\n+y\n"
    with pytest.raises(ToolError) as refusal:
        patch(context, diff=good + bad)
    assert "2 parts of the diff can't be applied; nothing was written" in refusal.value.message
    assert "doesn't fit b" in refusal.value.message
    assert "File not found: missing" in refusal.value.message
    assert sorted(path.name for path in workspace.iterdir()) == ["a", "b"]
    assert (workspace / "a").read_text() == "1\n"


@pytest.mark.parametrize(
    ("diff", "message"),
    [
        ("--- a/../outside.txt\n+++ b/../outside.txt\n@@ -1 +1 @@\n-not yours\n+mine\n", "outside the workspace"),
        ("--- a/out\n+++ b/out\n@@ -1 +1 @@\n-not yours\n+mine\n", "outside the workspace"),
        ("--- /dev/null\n+++ /etc/mibyan\n@@ -0,0 +1 @@\n+x\n", "outside the workspace"),
        ("--- /dev/null\n+++ b/there\n@@ -0,0 +1 @@\n+x\n", "exists already"),
        ("--- /dev/null\n+++ b/new\n@@ -1 +1,2 @@\n old\n+x\n", "is a new file"),
        ("--- a/there\n+++ /dev/null\n@@ -1 +0,0 @@\n-1\n", "1 are left"),
        ("diff --git a/there b/other\nrename from there\nrename to other\n", "exists already"),
        ("--- a/d\n+++ b/d\n@@ -1 +1 @@\n-1\n+2\n", "directory"),
    ],
)  # fmt: skip
def test_a_diff_reaches_only_what_it_may(context, workspace: Path, diff: str, message: str) -> None:
    """Files outside, files in the way and files that aren't what the diff says are refused."""
    (workspace / "there").write_text("1\n2\n")
    (workspace / "other").write_text("3\n")
    (workspace / "d").mkdir()
    (workspace / "out").symlink_to("../outside.txt")
    before = tree(workspace.parent)
    with pytest.raises(ToolError, match=message):
        patch(context, diff=diff)
    assert tree(workspace.parent) == before


def test_one_file_may_occur_twice(context, workspace: Path) -> None:
    """Later parts see what the earlier ones did, under whatever name they reach the file."""
    (workspace / "f").write_text("1\n2\n")
    (workspace / "link").symlink_to("f")
    diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-1\n+one\n--- a/link\n+++ b/link\n@@ -1,2 +1,2 @@\n one\n-2\n+two\n"
    patch(context, diff=diff)
    assert (workspace / "f").read_text() == "one\ntwo\n"
    patch(
        context,
        diff="--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+new\n",
    )
    assert (workspace / "f").read_text() == "new\n"


@pytest.mark.parametrize("fails_at", [1, 2, 3])
@pytest.mark.parametrize("links", [True, False])
def test_a_failure_in_the_middle_is_undone(
    context, workspace: Path, monkeypatch: pytest.MonkeyPatch, fails_at: int, links: bool
) -> None:
    """When one of several files can't be put in its place, the others go back to what they were."""
    for name in "abc":
        (workspace / name).write_text(f"{name}\n")
        (workspace / name).chmod(0o640)
    diff = "".join(f"--- a/{n}\n+++ b/{n}\n@@ -1 +1 @@\n-{n}\n+{n * 2}\n" for n in "abc")
    diff += "--- /dev/null\n+++ b/new/d\n@@ -0,0 +1 @@\n+d\n"
    before, real, calls = tree(workspace), os.replace, []

    def replace(*args, **kwargs):
        calls.append(args)
        if len(calls) == fails_at:
            raise OSError(errno.EIO, "Input/output error")
        real(*args, **kwargs)

    def link(*args, **kwargs):
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(transaction.os, "replace", replace)
    if not links:
        monkeypatch.setattr(transaction.os, "link", link)
    with pytest.raises(ToolError, match="Input/output error"):
        patch(context, diff=diff)
    monkeypatch.undo()
    assert tree(workspace) == before
    assert sorted(path.name for path in workspace.iterdir()) == ["a", "b", "c"]
    assert all(stat.S_IMODE((workspace / n).stat().st_mode) == 0o640 for n in "abc")
    patch(context, diff=diff)
    assert (workspace / "new/d").read_text() == "d\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["a", "b", "c", "new"]
