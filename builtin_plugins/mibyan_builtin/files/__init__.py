"""The `files` plugin: read, write, patch and search text files in the workspace.

The workspace is the session's working directory and the operator's `files.roots`; nothing outside is touched, or told
about.
"""

# ruff: noqa: D417, FBT001, FBT002 - arguments are the model's, and `ctx` isn't one of them

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mibyan import ToolContext, ToolError, tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan_builtin.files.workspace import Workspace

#: Characters of an answer's texts at most; a model reads on with `offset`.
MAX_CHARACTERS = 80_000
#: The share of the result limit that texts may take.
SHARE = 0.8


def _path(args: dict[str, Any]) -> list[str]:
    """The file or directory that a call names, for the planner (which knows what `~` may mean)."""
    return [str(args.get("path") or ".")]


def _patched(args: dict[str, Any]) -> list[str]:
    """Every file that a `patch` may write: those in the diff's body too."""
    paths = [args["path"]] if args.get("path") else []
    if args.get("diff"):
        from mibyan_builtin.files import unified

        try:
            paths += [path for file in unified.parse(args["diff"]) for path in file.paths]
        except ToolError:
            paths.append(".")
    return [str(path) for path in paths]


@tool(toolset="files", emoji="📖", read_only=True, idempotent=True, open_world=False, reads=_path)
def read_file(ctx: ToolContext, path: str, offset: int = 1, limit: int = 1000) -> dict[str, Any]:
    r"""Read a text file, or a part of it.

    The answer has `content`, the numbers of its first and last line, the file's number of lines where it is known, and
    `truncated` with `next_offset` when there is more. Lines over 2000 characters are cut.

    Args:
        path: The file: relative to the working directory, or absolute; ~ is the user's home.
        offset: The first line to read, from 1.
        limit: How many lines to read, 1 to 2000.
    """
    from mibyan_builtin.files import reading

    with _workspace(ctx).locate(path) as location:
        return reading.read(location, offset, limit, _budget(ctx), _stop(ctx))


@tool(toolset="files", emoji="✍️", destructive=True, idempotent=True, open_world=False, writes=_path)
def write_file(ctx: ToolContext, path: str, content: str) -> dict[str, Any]:
    """Write a text file as a whole; missing directories are made, and a file that is there is replaced.

    It is written in one instant or not at all. A file that is there keeps its mode, encoding and line endings.

    Args:
        path: The file: relative to the working directory, or absolute; ~ is the user's home.
        content: The whole new text.
    """
    from mibyan_builtin.files import writing

    with _workspace(ctx).locate(path) as location:
        return writing.write(location, content)


@tool(toolset="files", emoji="🩹", destructive=True, open_world=False, writes=_patched)
def patch(
    ctx: ToolContext,
    path: str | None = None,
    old_string: str | None = None,
    new_string: str | None = None,
    replace_all: bool = False,
    diff: str | None = None,
) -> dict[str, Any]:
    """Change text files: either replace a piece of one file, or apply a unified diff to several.

    Give path, old_string and new_string; or diff alone. Either way nothing is written unless everything fits.

    Args:
        path: The file to change: relative to the working directory, or absolute; ~ is the user's home.
        old_string: The text to replace, exactly as it stands in the file, with enough of the surrounding lines to
            stand there only once.
        new_string: The text to put in its place; empty removes it.
        replace_all: Replace every occurrence of old_string.
        diff: A unified diff over one or more files, with '--- a/PATH' and '+++ b/PATH' headers (/dev/null for a file
            that is made or deleted) and hunks with lines of context.
    """
    from mibyan_builtin.files import patching

    if diff is not None and path is old_string is new_string is None:
        return patching.apply_diff(_workspace(ctx), diff)
    if diff is not None or path is None or old_string is None or new_string is None:
        raise ToolError("Give either path, old_string and new_string, or diff alone")
    return patching.replace_text(_workspace(ctx), path, old_string, new_string, every=replace_all)


@tool(toolset="files", emoji="🔎", read_only=True, idempotent=True, open_world=False, reads=_path)
def search_files(
    ctx: ToolContext,
    pattern: str,
    path: str = ".",
    target: Literal["content", "files"] = "content",
    glob: str | None = None,
    limit: int = 100,
) -> dict[str, Any]:
    """Search files by content or by name, hidden and ignored ones included, those of version control not.

    Content: the lines that match, as path, line number and text; binary files and files over 64 MiB are passed over.
    Files: the paths of the files whose name matches. Both in the order of their paths.

    Args:
        pattern: For content a regular expression as Python has them, matched within single lines ((?i) at its
            beginning ignores case). For files a glob such as *.py or src/**/*.ts, or a part of the name.
        path: The directory or file to search: relative to the working directory, or absolute; ~ is the user's home.
        target: What to search.
        glob: Only files that this glob fits: *.py is about the name, src/**/*.py about the path, !*.min.js excludes.
        limit: How many results at most, 1 to 1000.
    """
    from mibyan_builtin.files import searching

    until = time.monotonic() + searching.MAX_SECONDS
    if ctx.deadline is not None:
        until = min(until, ctx.deadline - 0.1 * (ctx.deadline - time.monotonic()))
    search = searching.Search(pattern, path, glob, limit, _budget(ctx), _stop(ctx), until)
    run = searching.in_content if target == "content" else searching.by_name
    return run(_workspace(ctx), search)


def _workspace(ctx: ToolContext) -> Workspace:
    """The workspace of the call."""
    if os.name != "posix":
        raise ToolError("The file tools need Linux or macOS")
    from mibyan_builtin.files.workspace import Workspace

    try:
        cwd = ctx.session.cwd(ctx.task_id) if ctx.session is not None else Path.cwd()
    except FileNotFoundError:
        raise ToolError("The working directory doesn't exist any more") from None
    return Workspace(cwd, ctx.settings.files.roots if ctx.settings is not None else ())


def _budget(ctx: ToolContext) -> int:
    """How many characters the texts of an answer may have, so that the answer isn't cut after it was made."""
    return min(MAX_CHARACTERS, int(ctx.settings.dispatch.max_result_chars * SHARE)) if ctx.settings else MAX_CHARACTERS


def _stop(ctx: ToolContext) -> Callable[[], None]:
    """What a long piece of work calls now and then."""

    def stop() -> None:
        if ctx.cancelled:
            raise ToolError("The call was cancelled")

    return stop
