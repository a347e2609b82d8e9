"""The `terminal` plugin: shell commands on this machine, in the foreground."""

# ruff: noqa: D417, FBT001, FBT002 - arguments are the model's, and `ctx` isn't one of them

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from mibyan import ToolContext, ToolError, tool

if TYPE_CHECKING:
    from pathlib import Path

    from mibyan.approvals import Verdict
    from mibyan.environments import CommandResult
    from mibyan_builtin.terminal.collecting import Told

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
    return judged(command, _cwd(ctx), workdir, stdin, ctx.command_rules)


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
    """Run a shell command and wait for its end.

    The directory, exported variables and functions stay for the next command, unless their names look like secrets.
    The answer has `output` (standard output and error in order, cleaned of colours, the middle of a long one left out:
    the whole is in the file `full_output`), `exit_code`, `cwd` (where it ended) and `duration` in seconds. A non-zero exit code is no error of the tool; `exit_code_meaning`
    says what it means where it isn't a plain failure. A command that runs past its timeout is ended with every process
    that it has started; what it wrote until then is kept.

    Args:
        command: The command, for bash.
        background: Run it in the background. Not available yet.
        timeout: Seconds after which it is ended; by default as the operator has set it, usually 180.
        workdir: The directory to run it in, for this command only.
        pty: Give it a terminal of 80 columns, for programs that want one.
        stdin: Text for its standard input; without it there is none.
        notify_on_complete: Tell when it has ended. Only for the background.
        watch_patterns: Tell when its output matches. Only for the background.
    """
    from mibyan_builtin.terminal import arguments
    from mibyan_builtin.terminal.endless import refuse_endless

    later = {"background": background, "notify_on_complete": notify_on_complete, "watch_patterns": watch_patterns}
    arguments.refuse_later(later)
    if os.name != "posix":
        raise ToolError("The terminal needs Linux or macOS")
    text, data, where = (
        arguments.checked_command(command),
        arguments.checked_stdin(stdin),
        arguments.checked_workdir(workdir),
    )
    seconds = arguments.checked_timeout(timeout, ctx.settings.terminal.timeout if ctx.settings else TIMEOUT)
    refuse_endless(text)
    return _run(ctx, text, where, _seconds(ctx, seconds), data, pty=pty)


def _run(
    ctx: ToolContext, command: str, workdir: str | None, seconds: float, stdin: bytes | None, *, pty: bool
) -> dict[str, Any]:
    """Run a checked command in the task's environment; the answer."""
    from mibyan.environments import BackendError
    from mibyan_builtin.terminal.collecting import Collected

    limit = min(MAX_OUTPUT, int(ctx.settings.dispatch.max_result_chars * SHARE)) if ctx.settings else MAX_OUTPUT
    collected = Collected(limit, ctx.outputs)
    try:
        environment = ctx.session.environment(ctx.task_id)
        result = environment.run(
            command, workdir, seconds, stdin, pty=pty, cancelled=lambda: ctx.cancelled, on_output=collected.write
        )
    except BackendError as error:
        raise ToolError(error.message, hint=error.hint) from None
    finally:
        collected.close()
    return _answer(result, collected.told(command, result.exit_code, ctx.task_id, environment.name), command)


def _cwd(ctx: ToolContext) -> Path | None:
    """Where the command would run; `None` where that can't be told, which is an error when it is to run."""
    from pathlib import Path

    from mibyan.environments import BackendError

    try:
        return Path(ctx.session.environment(ctx.task_id).cwd)
    except BackendError:
        return None


def _seconds(ctx: ToolContext, timeout: float) -> float:
    """`timeout`, or as much less as the call's own deadline leaves for ending the command and answering."""
    import time

    if ctx.deadline is None:
        return timeout
    left = max(ctx.deadline - time.monotonic(), 0.0)
    return min(timeout, max(left - min(SLACK / 2, left / 4), 0.0))


def _answer(result: CommandResult, output: Told, command: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"output": output.text, "exit_code": result.exit_code, "cwd": result.cwd}
    answer |= {"duration": round(result.duration, 3), "truncated": output.truncated}
    if output.file is not None:
        answer["full_output"] = output.file
    if result.ended_by == "timeout":
        after = f"{round(result.duration, 1):g} s"
        answer |= {"error": f"The command timed out and was ended after {after}", "error_type": "timeout"}
    elif result.ended_by == "cancelled":
        answer |= {"error": "The call was cancelled and the command ended", "error_type": "cancelled"}
    elif result.exit_code and (told := _meaning(command, result.exit_code)) is not None:
        answer["exit_code_meaning"] = told
    if result.note:
        answer["note"] = result.note
    return answer


def _meaning(command: str, exit_code: int) -> str | None:
    from mibyan_builtin.terminal.meaning import meaning

    return meaning(command, exit_code)
