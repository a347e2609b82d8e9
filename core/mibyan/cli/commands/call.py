"""`mibyan call`: one tool call through the pipeline."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mibyan.cli import exits
from mibyan.cli.arguments import read_arguments, read_seconds
from mibyan.cli.asking import approvals_answered
from mibyan.cli.declaring import argument, command, option
from mibyan.cli.loaded import enforce_strictness, loaded
from mibyan.cli.output import say
from mibyan.plugins.state import standing
from mibyan.text import one_line
from mibyan.tools.results import ToolCall

if TYPE_CHECKING:
    from mibyan.cli.invocation import Invocation
    from mibyan.runtime import Runtime
    from mibyan.tools.results import ToolResult


@command("call")
@argument("name", choices="tools")
@argument("arguments", rest=True, choices="arguments", metavar="[JSON | key=text key:=JSON … | -]")
@option("--yes", help="Grant, for this call, what would otherwise be asked.")
@option(
    "--timeout", metavar="SECONDS", convert=read_seconds, help="Answer after that many seconds, even without the tool."
)
def call(invocation: Invocation, name: str, arguments: tuple[str, ...], yes: bool, timeout: float | None) -> int:  # noqa: FBT001 - it comes by name
    """Run one tool call and print the result's text.

    The arguments are JSON, pairs (key=text is text, key:=JSON is a JSON value), or - for JSON on standard input. What
    needs approval is asked on a terminal, to be answered with once, session, always or deny; without a terminal it is
    denied, unless --yes grants it. What can't be undone, and what approvals.deny refuses, is blocked with --yes too. Ends
    with 1 if the status is error, timeout or cancelled, with 3 if it is blocked or denied; a shell command's own exit code
    is data.
    """
    made = ToolCall(name, read_arguments(arguments), f"call_{os.urandom(8).hex()}")
    trace = invocation.trace()
    with invocation.runtime() as runtime:
        loaded(invocation, runtime)
        enforce_strictness(invocation, runtime, [runtime.toolsets.select()])
        with approvals_answered(runtime.approvals, yes=yes):
            result = runtime.execute_guarded(made, timeout=timeout)
        if trace is not None:
            trace.add(made, result)
        _show(invocation, result)
        return _code(runtime, result)


def _show(invocation: Invocation, result: ToolResult) -> None:
    out = invocation.out
    if invocation.options.as_json:
        out.document(result.to_dict())
    elif result.data is not None:
        out.json_text(result.text)
    else:
        out.line(result.text)


def _code(runtime: Runtime, result: ToolResult) -> int:
    """The exit code; for a tool that a plugin would offer if it were loaded, say so."""
    if result.error_type == "unknown_tool":
        for record in runtime.plugins.all_records():
            manifest = record.candidate.manifest
            if not record.is_usable and manifest and any(tool.name == result.name for tool in manifest.tools):
                hint = f" {record.hint}" if record.hint else ""
                say(
                    f"mibyan: {result.name} is a tool of plugin {record.id}, which {standing(record.state, record.reason)}.{hint}"
                )
                if record.state == "untrusted":
                    return exits.REFUSED
    if result.error_type in {"unknown_tool", "tool_unavailable", "tool_not_in_session"}:
        say(f"mibyan: `mibyan tools why {one_line(result.name, 64)}` tells all of it.")
    return exits.OF_STATUS[result.status]
