"""`HookRecorder`: which hooks were called, in which order, with what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mibyan.records import record
from mibyan.text import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from mibyan.runtime import Runtime

__tracebackhide__ = True  # a failing test shows its own lines

#: The loader calls these on a plugin itself, a command line on the plugins that its manifests name.
_NOT_RECORDED = frozenset({"mibyan_register", "mibyan_cli"})

_MISSING: Any = object()


@record
class HookCall:
    """One call of a hook."""

    #: The hook's name.
    name: str
    #: Its arguments by name, as they were at that moment.
    arguments: Mapping[str, Any]

    def __getitem__(self, argument: str) -> Any:
        return self.arguments[argument]


class HookRecorder:
    """Records the hooks that a runtime calls, as an implementation of the host's that comes after those of plugins.

    `mibyan_register` and `mibyan_cli` aren't among them: those are called on one plugin, not on all.

    Args:
        runtime: The runtime.

    Examples:
        `words` is the plugin of `Workbench`'s example.

        >>> hooks = HookRecorder(words.runtime)
        >>> _ = words.runtime.call("shout", {"text": "aden"})
        >>> hooks.names
        ['on_session_start', 'pre_tool_call', 'transform_tool_result', 'post_tool_call']
        >>> hooks.assert_called("post_tool_call", tool_name="shout", status="ok")["result"]
        'ADEN'
        >>> hooks.assert_order("pre_tool_call", "post_tool_call")
        >>> hooks.assert_called("post_tool_call", status="blocked")
        Traceback (most recent call last):
        ...
        AssertionError: post_tool_call(status='blocked') was called 0 times, and was expected at least once; these were called:
        ...
    """

    def __init__(self, runtime: Runtime) -> None:
        #: The calls, oldest first.
        self.calls: list[HookCall] = []
        from mibyan.hooks.names import HOOK_ARGUMENTS

        self._arguments = {name: names for name, names in HOOK_ARGUMENTS.items() if name not in _NOT_RECORDED}
        for name, arguments in self._arguments.items():
            runtime.add_hook(name, _recording(self.calls, name, arguments))

    @property
    def names(self) -> list[str]:
        """The names of the hooks that were called, in order."""
        return [call.name for call in self.calls]

    def of(self, hook: str, **arguments: Any) -> list[HookCall]:
        """The calls of a hook, those only whose arguments have these values.

        Raises:
            ValueError: There is no such hook, or it has no such argument.
        """
        self._check(hook, arguments)
        return [call for call in self.calls if call.name == hook and _fits(call, arguments)]

    def clear(self) -> None:
        """Forget the calls so far."""
        self.calls.clear()

    def assert_called(self, hook: str, *, times: int | None = None, **arguments: Any) -> HookCall:
        """See that a hook was called with arguments that have these values; the last such call.

        Args:
            hook: The hook's name.
            times: How often exactly; `None`: at least once.
            **arguments: Some of its arguments.

        Raises:
            AssertionError: It wasn't; the message lists the calls that there were.
            ValueError: There is no such hook, or it has no such argument.
        """
        found = self.of(hook, **arguments)
        if not found if times is None else len(found) != times:
            often = "at least once" if times is None else f"{times} times"
            told = f"{_told(hook, arguments)} was called {len(found)} times, and was expected {often}"
            raise AssertionError(self._with_calls(told))
        return found[-1] if found else HookCall(hook, {})

    def assert_not_called(self, hook: str, **arguments: Any) -> None:
        """See that a hook wasn't called with arguments that have these values.

        Raises:
            AssertionError: It was.
            ValueError: There is no such hook, or it has no such argument.
        """
        found = self.of(hook, **arguments)
        if found:
            told = f"{_told(hook, arguments)} was called {len(found)} times, and was expected never"
            raise AssertionError(self._with_calls(told))

    def assert_order(self, *hooks: str) -> None:
        """See that these hooks were called in this order; others may have been called between them.

        Raises:
            AssertionError: They weren't.
            ValueError: There is no such hook.
        """
        for hook in hooks:
            self._check(hook, {})
        names = iter(self.names)
        missing = next((hook for hook in hooks if hook not in names), None)
        if missing is not None:
            told = f"the hooks weren't called in the order {', '.join(hooks)}: {missing} wasn't called when it should"
            raise AssertionError(self._with_calls(told))

    def __iter__(self) -> Iterator[HookCall]:
        return iter(self.calls)

    def __len__(self) -> int:
        return len(self.calls)

    def _check(self, hook: str, arguments: Mapping[str, Any]) -> None:
        if hook not in self._arguments:
            meant = suggest(hook, self._arguments)
            hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(sorted(self._arguments))}."
            raise ValueError(f"No hook {hook!r} is recorded; {hint}")
        for name in arguments:
            if name not in self._arguments[hook]:
                known = ", ".join(self._arguments[hook]) or "none"
                raise ValueError(f"The hook {hook!r} has no argument {name!r}; it has {known}.")

    def _with_calls(self, told: str) -> str:
        lines = [f"  {index}. {_told(call.name, call.arguments)}" for index, call in enumerate(self.calls, 1)]
        return "\n".join([f"{told}; these were called:", *(lines or ["  none"])])


def _recording(calls: list[HookCall], name: str, arguments: tuple[str, ...]) -> Callable[..., None]:
    """An implementation of a hook, with the hook's own signature."""
    names = ", ".join(arguments)
    given = ", ".join(f"{argument!r}: {argument}" for argument in arguments)
    scope: dict[str, Any] = {"note": lambda seen: calls.append(HookCall(name, seen))}
    exec(f"def {name}({names}):\n    note({{{given}}})\n", scope)  # noqa: S102 - names of HOOK_ARGUMENTS
    made: Callable[..., None] = scope[name]
    return made


def _fits(call: HookCall, arguments: Mapping[str, Any]) -> bool:
    return all(call.arguments.get(name, _MISSING) == value for name, value in arguments.items())


def _told(hook: str, arguments: Mapping[str, Any]) -> str:
    shown = [f"{name}={value!r:.80}" for name, value in arguments.items()]
    return f"{hook}({', '.join(shown)})"
