"""The `terminal` plugin: shell commands on this machine, in the foreground."""

# ruff: noqa: D417, FBT001, FBT002 - arguments are the model's, and `ctx` isn't one of them

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mibyan import ToolContext, ToolError, tool

if TYPE_CHECKING:
    from mibyan.approvals import Verdict
    from mibyan_builtin.terminal.command import Command, Outcome

#: Seconds that the pipeline waits beyond the command's own time, for ending its processes (dispatch.B2).
SLACK = 5.0
#: The share of the result limit that output may take: as JSON it grows.
SHARE = 0.45
#: Characters of output that are kept at most.
MAX_OUTPUT = 50_000
#: Seconds, where there is no configuration.
TIMEOUT = 180.0


def _timeout(args: dict[str, Any]) -> float | None:
    """Seconds for the whole call; `None` (the command has its default) leaves it to `dispatch.timeout`."""
    timeout = args.get("timeout")
    # What isn't a time gets its own error from the tool.
    return timeout + SLACK if isinstance(timeout, int | float) and 0 < timeout < float("inf") else None


def _approval(args: dict[str, Any], ctx: ToolContext) -> Verdict | None:
    """What the command would do; of one that is refused anyway, nothing."""
    from mibyan_builtin.terminal.judging import judged

    command, workdir, stdin = args.get("command"), args.get("workdir"), args.get("stdin")
    if not isinstance(command, str) or not command.strip():
        return None
    try:
        cwd = _cwd(ctx)
    except ToolError:
        cwd = None
    return judged(command, cwd, workdir, stdin, ctx.command_rules)


@tool(toolset="terminal", emoji="💻", destructive=True, open_world=True, timeout=_timeout, approval=_approval)
def terminal(
    ctx: ToolContext,
    command: str,
    background: bool = False,
    timeout: float | None = None,
    workdir: str | None = None,
    pty: bool = False,
    stdin: str | None = None,
    notify_on_complete: bool = False,
    watch_patterns: list[str] | None = None,
) -> dict[str, Any]:
    """Run a shell command on this machine and wait for its end.

    The answer has `output` (standard output and error in order, cleaned of colours, the middle of a long one left out),
    `exit_code`, `cwd` and `duration` in seconds. A non-zero exit code is no error of the tool; `exit_code_meaning`
    says what it means where it isn't a plain failure. A command that runs past its timeout is ended with every process
    that it has started; what it wrote until then is kept.

    Args:
        command: The command, for bash.
        background: Run it in the background. Not available yet.
        timeout: Seconds after which it is ended; by default as the operator has set it, usually 180.
        workdir: The directory to run it in, for this command only.
        pty: Give it a terminal. Not available yet.
        stdin: Text for its standard input; without it there is none.
        notify_on_complete: Tell when it has ended. Only for the background.
        watch_patterns: Tell when its output matches. Only for the background.
    """
    from mibyan_builtin.terminal import arguments
    from mibyan_builtin.terminal import command as commands

    later = {"background": background, "pty": pty, "notify_on_complete": notify_on_complete}
    arguments.refuse_later({**later, "watch_patterns": watch_patterns})
    if os.name != "posix":
        raise ToolError("The terminal needs Linux or macOS")
    absolute = workdir is not None and workdir.startswith("/")
    where, note = arguments.directory(workdir, Path("/") if absolute else _cwd(ctx))
    given = arguments.checked_command(command), where, arguments.checked_stdin(stdin)
    outcome = commands.run(_command(ctx, *given, timeout))
    return _answer(outcome, command, str(where), note)


def _command(ctx: ToolContext, text: str, where: Path, stdin: bytes | None, timeout: float | None) -> Command:
    """The command with what the operator has set."""
    from mibyan_builtin.terminal.arguments import checked_timeout
    from mibyan_builtin.terminal.command import Command

    settings = ctx.settings
    seconds = checked_timeout(timeout, settings.terminal.timeout if settings else TIMEOUT)
    limit = min(MAX_OUTPUT, int(settings.dispatch.max_result_chars * SHARE)) if settings else MAX_OUTPUT
    environment = _environment(ctx)
    return Command(text, where, environment, stdin, _seconds(ctx, seconds), limit, lambda: ctx.cancelled)


def _cwd(ctx: ToolContext) -> Path:
    """The session's working directory; where none was set, `terminal.cwd`, relative to the process's."""
    configured = ctx.settings.terminal.cwd if ctx.settings else None
    try:
        default = Path(os.path.abspath(os.path.expanduser(configured))) if configured else None  # noqa: PTH100, PTH111 - links stay
        return Path(ctx.session.cwd(ctx.task_id, default)) if ctx.session is not None else default or Path.cwd()
    except FileNotFoundError:
        raise ToolError("The working directory doesn't exist any more", hint="Give one with workdir.") from None


def _environment(ctx: ToolContext) -> dict[str, str]:
    from mibyan_builtin.terminal.environment import command_environment

    passthrough = frozenset(ctx.settings.terminal.env_passthrough) if ctx.settings else frozenset()
    return command_environment(os.environ, secrets=ctx.secret_names, passthrough=passthrough)


def _seconds(ctx: ToolContext, timeout: float) -> float:
    """`timeout`, or as much less as the call's own deadline leaves for ending the command and answering."""
    import time

    if ctx.deadline is None:
        return timeout
    left = max(ctx.deadline - time.monotonic(), 0.0)
    return min(timeout, max(left - min(SLACK / 2, left / 4), 0.0))


def _answer(outcome: Outcome, command: str, where: str, note: str | None) -> dict[str, Any]:
    output = outcome.output
    answer: dict[str, Any] = {"output": output.text(), "exit_code": outcome.exit_code, "cwd": where}
    answer |= {"duration": round(outcome.duration, 3), "truncated": output.truncated}
    if outcome.ended_by == "timeout":
        after = f"{round(outcome.duration, 1):g} s"
        answer |= {"error": f"The command timed out and was ended after {after}", "error_type": "timeout"}
    elif outcome.ended_by == "cancelled":
        answer |= {"error": "The call was cancelled and the command ended", "error_type": "cancelled"}
    elif outcome.exit_code and (told := _meaning(command, outcome.exit_code)) is not None:
        answer["exit_code_meaning"] = told
    if note:
        answer["note"] = note
    return answer


def _meaning(command: str, exit_code: int) -> str | None:
    from mibyan_builtin.terminal.meaning import meaning

    return meaning(command, exit_code)
