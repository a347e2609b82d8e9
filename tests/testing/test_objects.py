"""The objects behind the fixtures: plugins under test, callers, recorders, and what is said about definitions (plugins.W2)."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

import mibyan
from mibyan.testing import (
    ApprovalRecorder,
    AsyncToolCaller,
    CallFailed,
    DefinitionsSnapshot,
    HookRecorder,
    LoadedPlugin,
    ToolCaller,
    Workbench,
    assert_portable,
)

WORDS = """
    import mibyan

    @mibyan.tool(toolset="words")
    def shout(text: str, timeout: int = 0, name: str = "") -> dict:
        '''Shout.'''
        return {"text": text.upper(), "timeout": timeout, "name": name}

    @mibyan.hookimpl
    def pre_tool_call(args):
        return mibyan.Ask("fire!") if args.get("text") == "fire" else None
"""

PARAMETERS = {"type": "object", "properties": {}}


@pytest.fixture
def words(bench: Workbench) -> LoadedPlugin:
    """A plugin with a tool and a hook."""
    return bench.load(bench.runtime(), bench.write_plugin(WORDS, "words").name)


def test_plugin_W2_tells_how_things_are(words: LoadedPlugin) -> None:
    """State, tools, hooks, definitions, module; after a reload, an unload and a failure too."""
    assert (words.state, words.is_usable, words.tools, words.hooks) == ("active", True, ("shout",), ("pre_tool_call",))
    assert [one["name"] for one in words.definitions("anthropic")] == ["shout"]
    assert words.module.shout("a")["text"] == "A"
    assert words.problems == []
    words.reload(WORDS.replace("shout", "whisper").replace("upper", "lower"))
    assert words.tools == ("whisper",)
    with pytest.raises(mibyan.MibyanError, match=r"words.*failed.*ZeroDivisionError"):
        words.reload("1/0")
    assert (words.state, words.is_usable, words.tools) == ("failed", False, ())
    assert any("ZeroDivisionError" in one.reason for one in words.problems)
    words.reload(WORDS)
    words.unload()
    assert (words.state, words.tools) == ("found", ())


def test_plugin_W2_a_frozen_one_is_imported_at_once(bench: Workbench) -> None:
    """What fails only when it is used fails here, unless somebody asks otherwise."""
    manifest = {"tools": [{"name": "late", "toolset": "x", "schema": {"description": "d"}, "target": "late:run"}]}
    folder = bench.write_plugin("raise RuntimeError('no way')", "frozen", manifest=manifest)
    runtime = bench.runtime()
    assert bench.load(runtime, folder.name, check=False).state == "ready"
    with pytest.raises(mibyan.MibyanError, match="no way"):
        bench.load(runtime, folder.name)


def test_call_W2_every_keyword_is_the_tools(words: LoadedPlugin) -> None:
    """Names that options have elsewhere too; a mapping and keywords add up; JSON text is as a model sends it."""
    call_tool = ToolCaller(words.runtime)
    assert call_tool("shout", text="a", timeout=3, name="x").data == {"text": "A", "timeout": 3, "name": "x"}
    assert call_tool("shout", {"text": "a"}, timeout=3).data == {"text": "A", "timeout": 3, "name": ""}
    assert call_tool("shout", '{"text": "a"}').data["text"] == "A"
    with pytest.raises(TypeError, match="not both"):
        call_tool("shout", '{"text": "a"}', timeout=3)


def test_call_W2_a_call_that_succeeds_unexpectedly_fails(words: LoadedPlugin) -> None:
    """`failing` wants a failure; what came instead is told, and kept."""
    with pytest.raises(CallFailed, match=r"shout\({'text': 'a'}\) succeeded.*\"text\": ?\"A\"") as caught:
        ToolCaller(words.runtime).failing("shout", text="a")
    assert caught.value.result.ok


def test_call_W2_a_session_and_a_deadline_are_options(words: LoadedPlugin) -> None:
    """They hold for each call of that caller, and are added up."""
    hooks = HookRecorder(words.runtime)
    caller = ToolCaller(words.runtime).using(session=words.runtime.session("s1")).using(task_id="t1", timeout=60)
    caller("shout", text="a")
    assert hooks.assert_called("post_tool_call", session_id="s1", task_id="t1")["status"] == "ok"


def test_call_W2_awaited(words: LoadedPlugin) -> None:
    """The same answers and the same failures."""

    async def calls() -> str:
        call_tool = AsyncToolCaller(words.runtime)
        assert (await call_tool.failing("shout")).error_type == "invalid_arguments"
        with pytest.raises(CallFailed, match="invalid_arguments"):
            await call_tool("shout")
        return (await call_tool.using(timeout=60)("shout", text="a")).data["text"]

    assert asyncio.run(calls()) == "A"


def test_hooks_W2_every_hook_that_a_runtime_calls_is_recorded(words: LoadedPlugin) -> None:
    """In order, with their arguments; approvals and the session's end too; misspelt names are errors."""
    hooks = HookRecorder(words.runtime)
    approvals = ApprovalRecorder(words.runtime, "once")
    with words.runtime.session("s1") as session:
        ToolCaller(words.runtime).using(session=session)("shout", text="fire")
        assert len(approvals) == 1
    words.runtime.definitions()
    hooks.assert_order("on_session_start", "pre_tool_call", "post_tool_call", "on_session_end")
    assert hooks.of("pre_tool_call", tool_name="shout")[0]["args"]["text"] == "fire"
    assert len(hooks) == len(list(hooks)) == len(hooks.calls)
    with pytest.raises(AssertionError, match="on_session_end, on_session_start: on_session_start wasn't called"):
        hooks.assert_order("on_session_end", "on_session_start")
    with pytest.raises(AssertionError, match="expected never"):
        hooks.assert_not_called("post_tool_call", status="ok")
    with pytest.raises(AssertionError, match="expected 2 times"):
        hooks.assert_called("post_tool_call", times=2)
    with pytest.raises(ValueError, match="did you mean 'pre_tool_call'"):
        hooks.assert_called("pre_tool_cal")
    with pytest.raises(ValueError, match="has no argument 'tool'; it has tool_name"):
        hooks.assert_called("pre_tool_call", tool="shout")
    hooks.clear()
    assert hooks.calls == []
    hooks.assert_called("post_tool_call", times=0)


def test_approvals_W2_the_answer_can_change(words: LoadedPlugin) -> None:
    """No, then yes; nothing asked is an assertion that fails."""
    approvals = ApprovalRecorder(words.runtime, "deny")
    with pytest.raises(AssertionError, match="nothing has asked"):
        _ = approvals.last
    assert ToolCaller(words.runtime).failing("shout", text="fire").status == "denied"
    approvals.answer = "once"
    assert ToolCaller(words.runtime)("shout", text="fire").ok
    assert [request.reason for request in approvals.requests] == ["fire!", "fire!"]


@pytest.mark.parametrize(
    ("definition", "problem"),
    [
        ({"name": "f", "parameters": PARAMETERS}, "f: it has no description"),
        ({"name": "f", "description": " "}, "f: it has no description"),
        ({"name": "f", "description": "d", "parameters": {"type": "object", "properties": 3}}, "f: .*properties"),
        ({"name": "f g", "description": "d"}, "f g: "),
        ({"name": "f", "description": "d", "strict": True, "parameters": {"type": "object", "properties": {"a": {}}}},
         "f: it isn't strict in the format 'openai'"),
    ],
)  # fmt: skip
def test_portable_W2_each_fault_is_named(definition: dict, problem: str) -> None:
    """No description, a schema that isn't one, a name that providers refuse, a strict function that can't be strict."""
    with pytest.raises(AssertionError, match=problem):
        assert_portable([{"name": "fine", "description": "d"}, definition])


def test_portable_W2_takes_what_holds_definitions(words: LoadedPlugin) -> None:
    """A plugin, a runtime, a decorated function, definitions in every format; nothing else."""
    assert_portable(words)
    assert_portable(words.module.shout)
    for format_ in ("openai", "openai-responses", "anthropic", "gemini", "mcp"):
        assert_portable(words.definitions(format_))
    assert_portable(words.runtime)
    for wrong in (3, "text", {"parameters": {}}):
        with pytest.raises(TypeError):
            assert_portable(wrong)


def test_snapshot_W2_a_change_is_a_difference(tmp_path: Path) -> None:
    """The difference is shown line by line, with the command that takes it over."""
    before, now = ([{"name": "f", "description": text}] for text in ("one", "two"))
    DefinitionsSnapshot(tmp_path, update=True)(before, "kept/f.json")
    DefinitionsSnapshot(tmp_path)(before, "kept/f.json")
    with pytest.raises(
        AssertionError, match=r'(?s)-    "description": "one".*\+    "description": "two".*--mibyan-update'
    ):
        DefinitionsSnapshot(tmp_path)(now, "kept/f.json")


def test_testing_W2_only_the_fixtures_import_pytest() -> None:
    """Mibyan itself works without it: one module of the test kit names it, and no other module at all."""
    root = Path(mibyan.__file__).parent
    naming = {
        str(path.relative_to(root)) for path in root.rglob("*.py") for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(one.name.partition(".")[0] in {"pytest", "_pytest"} for one in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in {"pytest", "_pytest"})
    }  # fmt: skip
    assert naming == {"testing/pytest_plugin.py"}
