"""The tool `git_log`: commits as data, read by git itself while the event loop goes on."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path
from typing import Annotated, Any, Literal

import mibyan
from mibyan import ToolContext
from pydantic import BaseModel, Field

#: How many commits a call gets if neither it nor the configuration says a number.
COUNT = 20
#: What separates the fields and ends a commit: no commit's message can have these.
_FIELD, _END = "\x1f", "\x1e"
_FORMAT = _FIELD.join(["%H", "%an", "%aI", "%s"]) + _END


class Filter(BaseModel):
    """Which commits are wanted; what isn't said doesn't matter."""

    author: str | None = Field(default=None, description="Part of the author's name or address.")
    text: str | None = Field(default=None, description="Part of the commit's message.")
    since: str | None = Field(default=None, description="A date such as 2026-01-31, or `2 weeks ago`.")
    path: str | None = Field(default=None, description="Only commits that changed this file or folder.")

    def options(self) -> list[str]:
        """What git calls this; each value is part of an option, so that none can become one."""
        named = {"--author": self.author, "--grep": self.text, "--since": self.since}
        options = [f"{name}={value}" for name, value in named.items() if value is not None]
        return [*options, "--", *([] if self.path is None else [self.path])]


def _has_git() -> bool | str:
    return shutil.which("git") is not None or "git isn't installed"


@mibyan.tool(
    toolset="git",
    emoji="🌿",
    read_only=True,
    idempotent=True,
    open_world=False,
    timeout=30,
    check_fn=_has_git,
)
async def git_log(
    ctx: ToolContext,
    folder: str = ".",
    only: Filter | None = None,
    order: Literal["newest", "oldest"] = "newest",
    count: Annotated[int, Field(ge=1, le=500)] | None = None,
) -> dict[str, Any]:
    """Read the commits of a git repository.

    Args:
        ctx: The call.
        folder: A folder of the repository, relative to the working directory.
        only: Which commits are wanted.
        order: Which come first; of all that are wanted the newest are taken in either case.
        count: How many commits at most.
    """
    here = Path(os.getcwd() if ctx.session is None else ctx.session.cwd(ctx.task_id))
    number = count if count is not None else ctx.config.get("commits", COUNT)
    text = await _git(here / folder, number, only or Filter())
    commits = [_commit(line) for line in text.split(_END) if line.strip()]
    return {"commits": commits if order == "newest" else commits[::-1]}


def _commit(line: str) -> dict[str, str]:
    commit, author, date, subject = line.strip().split(_FIELD)
    return {"commit": commit, "author": author, "date": date, "subject": subject}


async def _git(folder: Path, count: int, only: Filter) -> str:
    """What `git log` prints; git ends with the call, however that ends."""
    words = ["git", "--no-pager", "log", f"--max-count={count}", f"--format={_FORMAT}", *only.options()]
    try:
        process = await asyncio.create_subprocess_exec(
            *words,
            cwd=folder,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
    except (FileNotFoundError, NotADirectoryError):
        raise mibyan.ToolError(f"{folder} isn't a folder.") from None
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise mibyan.ToolError(err.decode(errors="replace").strip(), hint="Name a folder in a git repository.")
    return out.decode(errors="replace")
