"""`ToolCaller`: calls tools in a test, and says what happened when a call didn't end as the test expects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mibyan.runtime import Runtime
    from mibyan.tools.results import ToolCall, ToolResult

__tracebackhide__ = True  # a failing test shows its own lines

#: Characters of a text that a failure shows.
_SHOWN = 2000


class CallFailed(AssertionError):  # noqa: N818 - it is an assertion that failed
    """A call that didn't end as the test expects.

    Args:
        message: What was called, how it ended, and what the runtime says about it.
        result: The call's result.
    """

    def __init__(self, message: str, result: ToolResult) -> None:
        super().__init__(message)
        #: The call's result.
        self.result = result


class ToolCaller:
    """Calls tools of one runtime, through the whole pipeline: arguments, hooks, approvals, limits.

    Args:
        runtime: The runtime.
        **options: Keywords of `Runtime.execute` for each call: `session`, `task_id`, `user_task`, `timeout`.

    Examples:
        `words` is the plugin of `Workbench`'s example.

        >>> call_tool = ToolCaller(words.runtime)
        >>> call_tool("shout", text="aden").text
        'ADEN'
        >>> call_tool.failing("shout", test="aden").error
        "Invalid arguments for shout: test: unknown key; did you mean 'text'?; text: is required (text)"
        >>> call_tool("shout", test="aden")
        Traceback (most recent call last):
        ...
        mibyan.testing.calling.CallFailed: shout({'test': 'aden'}) ended with the status 'error' (invalid_arguments):
          Invalid arguments for shout: test: unknown key; did you mean 'text'?; text: is required (text)
    """

    def __init__(self, runtime: Runtime, **options: Any) -> None:
        self._runtime = runtime
        self._options = options

    def using(self, **options: Any) -> ToolCaller:
        """A caller with further options: `session`, `task_id`, `user_task`, `timeout` (seconds)."""
        return type(self)(self._runtime, **{**self._options, **options})

    def __call__(self, name: str, arguments: Mapping[str, Any] | str | None = None, /, **more: Any) -> ToolResult:
        """Call a tool; the test fails if the call's status isn't `ok`.

        Args:
            name: The tool's name or alias.
            arguments: A mapping, or JSON text as a model would send it.
            **more: Arguments, instead of or beside those of a mapping.

        Returns:
            The result: its `text` is what a model reads, its `data` the same as a dict or list where it is one in JSON.

        Raises:
            CallFailed: The call ended otherwise.
            TypeError: Both JSON text and keywords were given.
        """
        return self._succeeded(self._run(name, arguments, more), arguments, more)

    def failing(self, name: str, arguments: Mapping[str, Any] | str | None = None, /, **more: Any) -> ToolResult:
        """Call a tool; the test fails if the call's status *is* `ok`.

        Returns:
            The result, with `status` (`error`, `blocked`, `denied`, `timeout`, `cancelled`), `error_type` and `error`.

        Raises:
            CallFailed: The call succeeded.
        """
        return self._failed(self._run(name, arguments, more), arguments, more)

    def _run(self, name: str, arguments: Any, more: Mapping[str, Any]) -> ToolResult:
        return self._runtime.execute(_call(name, arguments, more), **self._options)

    def _succeeded(self, result: ToolResult, arguments: Any, more: Mapping[str, Any]) -> ToolResult:
        if not result.ok:
            raise CallFailed(_failure(result, _shown(result.name, arguments, more), self._runtime), result)
        return result

    def _failed(self, result: ToolResult, arguments: Any, more: Mapping[str, Any]) -> ToolResult:
        if result.ok:
            what = _shown(result.name, arguments, more)
            raise CallFailed(f"{what} succeeded, and was expected to fail; it gave: {_cut(result.text)}", result)
        return result


class AsyncToolCaller(ToolCaller):
    """The same, awaited: `await acall_tool("forecast", city="Aden")`."""

    async def __call__(  # type: ignore[override]
        self, name: str, arguments: Mapping[str, Any] | str | None = None, /, **more: Any
    ) -> ToolResult:
        """See `ToolCaller.__call__`."""
        return self._succeeded(await self._arun(name, arguments, more), arguments, more)

    async def failing(  # type: ignore[override]
        self, name: str, arguments: Mapping[str, Any] | str | None = None, /, **more: Any
    ) -> ToolResult:
        """See `ToolCaller.failing`."""
        return self._failed(await self._arun(name, arguments, more), arguments, more)

    async def _arun(self, name: str, arguments: Any, more: Mapping[str, Any]) -> ToolResult:
        return await self._runtime.aexecute(_call(name, arguments, more), **self._options)


def _call(name: str, arguments: Any, more: Mapping[str, Any]) -> ToolCall:
    from mibyan.tools.results import ToolCall

    if not more:
        return ToolCall(name, arguments)
    if isinstance(arguments, str):
        raise TypeError("a call takes JSON text or keywords, not both")
    return ToolCall(name, {**(arguments or {}), **more})


def _shown(name: str, arguments: Any, more: Mapping[str, Any]) -> str:
    told = arguments if not more else {**(arguments or {}), **more}
    return f"{name}({_cut('' if told is None else told if isinstance(told, str) else repr(dict(told)))})"


def _failure(result: ToolResult, what: str, runtime: Runtime) -> str:
    kind = f" ({result.error_type})" if result.error_type else ""
    lines = [f"{what} ended with the status {result.status!r}{kind}:", f"  {_cut(result.error or result.text)}"]
    problems = [f"  - {one.subject}: {one.reason}" for one in runtime.report().problems]
    return "\n".join([*lines, *(["what the runtime reports:", *problems] if problems else [])])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"
