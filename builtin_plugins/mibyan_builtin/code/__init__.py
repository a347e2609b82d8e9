"""The `code` plugin: Python scripts that may call the session's other tools."""

# ruff: noqa: D417 - arguments are the model's, and `ctx` isn't one of them

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mibyan import ToolContext, ToolError, tool

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from mibyan import Session
    from mibyan.approvals import Verdict
    from mibyan_builtin.code.running import Outcome

#: Seconds that a script has at most, and has if nothing else is said.
TIMEOUT = 300.0
#: Seconds that the pipeline waits beyond the script's own time, for ending its processes (dispatch.B2).
SLACK = 5.0
#: The share of the result limit that output may take: as JSON it grows.
SHARE = 0.45
#: Characters of output that are kept at most.
MAX_OUTPUT = 50_000
#: Bytes of a script.
MAX_CODE = 1024 * 1024


def _timeout(args: dict[str, Any]) -> float:
    """Seconds for the whole call."""
    timeout = args.get("timeout")
    return (min(timeout, TIMEOUT) if isinstance(timeout, int | float) and timeout > 0 else TIMEOUT) + SLACK


def _approval(args: dict[str, Any], ctx: ToolContext) -> Verdict | None:
    """What the script's code says that it does (terminal.X2)."""
    from mibyan.approvals import CommandContext, evaluate_code

    code = str(args.get("code", ""))
    if _is_no_python(code):
        return None  # It can't run either: the tool says where it is wrong.
    return evaluate_code(code, CommandContext(cwd=_folder(ctx), rules=ctx.command_rules))


def _is_no_python(code: str) -> bool:
    try:
        compile(code, "execute_code.py", "exec", dont_inherit=True, flags=0x400)  # ast.PyCF_ONLY_AST
    except (SyntaxError, ValueError):
        return True
    except (MemoryError, RecursionError):
        return False
    return False


def _folder(ctx: ToolContext) -> str | None:
    session: Session | None = ctx.session
    try:
        return None if session is None else str(session.cwd(ctx.task_id))
    except OSError:
        return None


@tool(toolset="code", emoji="🐍", destructive=True, open_world=True, timeout=_timeout, approval=_approval)
def execute_code(ctx: ToolContext, code: str, timeout: float | None = None) -> dict[str, Any]:
    """Run a Python script that can call the other tools: `from mibyan_tools import ...` has a function for each.

    Use it for several steps with logic between them: loops over many calls, filtering what they give, calls at the same
    time (`concurrent.futures.ThreadPoolExecutor`). Only what the script prints comes back. A tool's function takes its
    arguments as in its own definition and gives the result as a dict, a list or text; one that fails raises
    `mibyan_tools.ToolError` (`error_type`, `fields`). At most 50 tool calls and 300 seconds; variables aren't kept.

    Args:
        code: The script; it starts in the working directory, which isn't on `sys.path`.
        timeout: Seconds after which it is ended with every process that it has started, 300 at most.
    """
    if os.name != "posix":
        raise ToolError("execute_code needs Linux or macOS")
    from mibyan_builtin.code import reach, running, stubs

    where, note = _directory(ctx)
    source, seconds = _checked(code), _seconds(ctx, timeout)
    settings = ctx.settings
    with ctx.nested_calls() as calls:
        tools = reach.functions(calls.definitions())
        script = running.Script(
            source, where, _environment(ctx), seconds,
            min(MAX_OUTPUT, int(settings.dispatch.max_result_chars * SHARE)) if settings else MAX_OUTPUT,
            stubs.module(tools), frozenset(tools), settings.dispatch.max_workers if settings else 8,
            calls.execute, reach.refusal, lambda: ctx.cancelled, lambda: calls.held, calls.close,
        )  # fmt: skip
        return _answer(running.run(script), note)


def _checked(code: str) -> str:
    try:
        size = len(code.encode())
    except UnicodeEncodeError as error:
        raise ToolError(f"code has half of a surrogate pair at character {error.start + 1}") from None
    if not code.strip():
        raise ToolError("code is empty")
    if size > MAX_CODE:
        raise ToolError(f"code has {size:,} bytes; the limit is {MAX_CODE:,}", hint="Read data from a file.")
    return code


def _directory(ctx: ToolContext) -> tuple[Path, str | None]:
    from pathlib import Path

    from mibyan_builtin.terminal.directories import working_directory

    try:
        cwd = Path(ctx.session.cwd(ctx.task_id)) if ctx.session is not None else Path.cwd()
    except FileNotFoundError:
        raise ToolError("The working directory doesn't exist any more") from None
    where, note = working_directory(None, str(cwd))
    return Path(where), note


def _environment(ctx: ToolContext) -> dict[str, str]:
    from mibyan_builtin.terminal.environment import command_environment

    passthrough = frozenset(ctx.settings.terminal.env_passthrough) if ctx.settings else frozenset()
    return command_environment(os.environ, secrets=ctx.secret_names, passthrough=passthrough)


def _seconds(ctx: ToolContext, timeout: float | None) -> float:
    """The script's time: as much less than the call's as ending it and answering take."""
    from mibyan_builtin.terminal.arguments import checked_timeout

    seconds = min(checked_timeout(timeout, TIMEOUT), TIMEOUT)
    left = ctx.remaining
    return seconds if left is None else min(seconds, max(left - min(SLACK / 2, left / 4), 0.0))


def _answer(outcome: Outcome, note: str | None) -> dict[str, Any]:
    answer: dict[str, Any] = {"output": outcome.output.text(), "exit_code": outcome.exit_code, "calls": outcome.calls}
    answer |= {"duration": round(outcome.duration, 3), "truncated": outcome.output.truncated}
    if outcome.refused:
        answer["calls_refused"] = outcome.refused
    if outcome.ended_by == "timeout":
        after = f"{round(outcome.duration, 1):g} s"
        answer |= {"error": f"The script timed out and was ended after {after}", "error_type": "timeout"}
    elif outcome.ended_by == "cancelled":
        answer |= {"error": "The call was cancelled and the script ended", "error_type": "cancelled"}
    if note:
        answer["note"] = note
    return answer


def _name_what_survived(
    definitions: Mapping[str, Mapping[str, Any]], names: frozenset[str]
) -> dict[str, dict[str, Any]]:
    """`execute_code` names the tools that a script can call, of those that the model sees (registry.D2)."""
    from mibyan_builtin.code.reach import OWN, reachable

    if OWN not in names:
        return {}
    found = reachable(names)
    told = f"Scripts can call: {', '.join(found)}." if found else "There are no tools that scripts can call now."
    return {OWN: {"description": f"{definitions[OWN]['description']}\n\n{told}"}}


def register(ctx: Any) -> None:
    """Add the hook; marked by `hookimpl` it would need pluggy before anything calls it."""
    ctx.register_hook("mibyan_patch_definitions", _name_what_survived)
