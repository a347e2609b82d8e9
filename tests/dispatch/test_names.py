"""Which tool is meant, and whether it may be called (dispatch.C1 to C3)."""

from __future__ import annotations

import asyncio
import json

import pytest

from mibyan.dispatch.names import spelling
from mibyan.tools.results import ToolCall

from .hostile import EvilText, NoText, check_well_formed


@pytest.mark.parametrize(
    "written",
    [
        "web_search",
        "WebSearch",
        "webSearch",
        "web-search",
        "Web-Search",
        "web.search",
        "WEB_SEARCH",
        " web_search ",
        "web search",
    ],
)
def test_dispatch_C1_spelling_is_repaired(face, add, written):
    """dispatch.C1: another spelling of the same words leads to the tool."""
    add(lambda args: "found", "web_search")
    result = face(written)
    assert (result.text, result.name) == ("found", "web_search")


@pytest.mark.parametrize("written", ["web_searches", "websearch", "search_web", "web", "", "x" * 5000, "wéb_search"])
def test_dispatch_C1_never_a_guess(face, add, seen, written):
    """dispatch.C1: another word is unknown, however similar; the observers see it without toolset or arguments."""
    add(lambda args: pytest.fail("it ran"), "web_search")
    result = face(written, {"q": 1})
    check_well_formed(result)
    assert result.error_type == "unknown_tool"
    assert result.error == f"Unknown tool: {written}"[:2047] + ("…" if len(written) > 2034 else "")
    (told,) = seen
    assert (told["tool_name"], told["toolset"], told["args"], told["executed_args"]) == (written, None, {}, None)


def test_dispatch_C1_two_tools_of_one_spelling_are_not_chosen_from(rt, add):
    """dispatch.C1: where a spelling leads to two tools it leads to none; each exact name still works."""
    add(lambda args: "snake", "get_url")
    add(lambda args: "camel", "getURL")
    assert rt.execute(ToolCall("get-url")).error_type == "unknown_tool"
    assert (rt.call("get_url"), rt.call("getURL")) == ("snake", "camel")


def test_dispatch_C1_an_alias_leads_to_the_tool(face, add):
    """registry.R8: an alias is a name of the tool, in any spelling; the result has the tool's own name."""
    add(lambda args: "found", "todo_write", aliases=["planner"])
    assert [(face(name).text, face(name).name) for name in ("planner", "Planner")] == [("found", "todo_write")] * 2


NOT_NAMES = {
    "null": (None, "null"),
    "a number": (5, "5"),
    "a list": (["x"], '["x"]'),
    "evil text": (EvilText("nope"), "nope"),
    "a surrogate": ("\ud800", "\ufffd"),
    "an object": (NoText(), "<NoText object>"),
}


@pytest.mark.parametrize("case", NOT_NAMES)
def test_dispatch_C1_a_name_that_isnt_one(face, add, seen, case):
    """A name that isn't text is an unknown tool, with the text that stands for it."""
    name, shown = NOT_NAMES[case]
    add(lambda args: "ok")
    result = face(name)
    check_well_formed(result)
    assert result.error_type == "unknown_tool"
    assert shown in result.error
    assert shown in result.name
    assert [type(told["tool_name"]) for told in seen] == [str]


def test_dispatch_C1_suggestions_only_from_what_the_session_may_see(face, add):
    """dispatch.C1: similar names are suggested, but none that the session's toolsets hide."""
    rt = face.rt
    for name, toolset in (("web_search", "web"), ("web_serch", "hidden")):
        rt.registry.register(name, toolset, {"description": ""}, lambda args: "ok")
    session = rt.session(enabled_toolsets=["web"])
    assert json.loads(face("web_searhc", session=session).text)["suggestions"] == ["web_search"]
    assert set(json.loads(face("web_searhc").text)["suggestions"]) == {"web_search", "web_serch"}
    assert face("WebSerch", session=session).error_type == "unknown_tool"


def test_dispatch_C2_out_of_the_sessions_toolsets(face, seen):
    """dispatch.C2: a tool outside of the session's toolsets is `tool_not_in_session`, by name, alias or spelling."""
    rt = face.rt
    rt.registry.register("web_search", "web", {"description": ""}, lambda args: "ok", aliases=["look_up"])
    rt.registry.register("read_file", "files", {"description": ""}, lambda args: "ok")
    session = rt.session(enabled_toolsets=["files"])
    for name in ("web_search", "look_up"):
        result = face(name, {"a": 1}, session=session)
        check_well_formed(result)
        assert (result.error_type, result.name) == ("tool_not_in_session", "web_search")
    assert face("read_file", session=session).ok
    assert [(told["toolset"], told["args"]) for told in seen[:2]] == [("web", {}), ("web", {})]


def test_dispatch_C2_an_empty_list_of_toolsets_is_no_tools(face, add):
    """registry.T4: `[]` is nothing; `None` is everything."""
    add(lambda args: "ok")
    assert face(session=face.rt.session(enabled_toolsets=[])).error_type == "tool_not_in_session"
    assert face(session=face.rt.session()).ok


CHECKS = {
    "false": (lambda: False, "its check says no"),
    "a text": (lambda: "no API key", "no API key"),
    "an exception": (lambda: 1 / 0, "ZeroDivisionError"),
    "SystemExit": (lambda: exit(3), "SystemExit"),
}


@pytest.mark.parametrize("check", CHECKS)
def test_dispatch_C2_unavailable_says_what_is_missing(face, add, seen, check):
    """dispatch.C2: a tool whose check fails is `tool_unavailable`, with what is missing; before the arguments."""
    function, words = CHECKS[check]
    add(lambda args: pytest.fail("it ran"), check_fn=function)
    result = face(args="junk")
    check_well_formed(result)
    assert (result.error_type, words in result.error) == ("tool_unavailable", True)
    assert len(seen) == 1


def test_dispatch_C2_an_async_check_is_awaited(face, add):
    """registry.V4: `async def` checks are awaited, on every face."""

    async def check():
        await asyncio.sleep(0)
        return "not today"

    add(lambda args: "ok", check_fn=check)
    assert "not today" in face().error


AGENT = {
    "description": "",
    "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
}


@pytest.fixture
def agent_tool(rt):
    rt.registry.register(
        "memory", "memory", AGENT, lambda args: pytest.fail("it ran"), handled_by="agent", aliases=["notes"]
    )


@pytest.mark.parametrize("raw", [{"n": 1}, "junk", '{"n": ', None])
def test_dispatch_C3_without_a_handler_of_the_session(face, agent_tool, seen, raw):
    """dispatch.C3: nobody's to answer: the stub's words, decided before the arguments are looked at."""
    face.rt.add_hook("pre_tool_call", lambda: pytest.fail("hooked"))
    result = face("memory", raw)
    assert json.loads(result.text) == {
        "error": "memory must be handled by the agent loop",
        "error_type": "tool_unavailable",
    }
    assert [(told["toolset"], told["args"], told["status"]) for told in seen] == [("memory", {}, "error")]


@pytest.mark.parametrize("name", ["memory", "notes", "Memory"])
@pytest.mark.parametrize("key", ["memory", "notes"])
def test_dispatch_C3_the_sessions_own_handler_answers(face, kind, agent_tool, seen, name, key):
    """dispatch.C3: the session's handler answers before the registry, under the tool's name or its alias; hooks wrap it."""
    hooked = []
    face.rt.add_hook("pre_tool_call", lambda tool_name, args: hooked.append((tool_name, args)))
    session = face.rt.session(
        handlers={key: kind(lambda args, **context: {"n": args["n"], "by": context["session_id"]})}
    )
    assert face(name, {"n": "7"}, session=session).data == {"n": 7, "by": session.id}
    assert hooked == [("memory", {"n": 7})]
    assert [told["status"] for told in seen] == ["ok"]


def test_dispatch_C3_a_handler_gets_only_the_context_it_accepts(face, agent_tool):
    """A session's handler need not take the context; one without `**kwargs` gets what it names."""
    plain = face.rt.session(handlers={"memory": lambda args: args["n"]})
    named = face.rt.session(handlers={"memory": lambda args, task_id: task_id})
    assert face("memory", {"n": 3}, session=plain).text == "3"
    assert face("memory", {"n": 3}, session=named, task_id="t1").text == "t1"


def test_dispatch_C3_the_arguments_are_validated(face, agent_tool):
    """An agent-level call with a handler is like any other: invalid arguments are refused."""
    session = face.rt.session(handlers={"memory": lambda args: pytest.fail("it ran")})
    assert face("memory", {"n": "x"}, session=session).error_type == "invalid_arguments"


def test_dispatch_C3_a_session_without_the_toolset_has_it_not(face, agent_tool):
    """The session's scope counts for agent-level tools too."""
    session = face.rt.session(enabled_toolsets=[], handlers={"memory": lambda args: "ok"})
    assert face("memory", {"n": 1}, session=session).error_type == "tool_not_in_session"


def test_dispatch_C3_acall_runs_an_async_handler_on_the_callers_loop(rt, agent_tool):
    """dispatch.B1: the agent loop's own async handler runs on the agent's loop."""
    loops = []

    async def handler(args):
        loops.append(asyncio.get_running_loop())

    async def main():
        loops.append(asyncio.get_running_loop())
        await rt.acall("memory", {"n": 1}, session=rt.session(handlers={"memory": handler}))

    asyncio.run(main())
    assert loops[0] is loops[1]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("WebSearch", "web_search"),
        ("HTTPGet", "http_get"),
        ("get2Files", "get2_files"),
        ("a b-c.d", "a_b_c_d"),
        ("ABC", "abc"),
    ],
)
def test_spelling_is_one_way_of_writing(name, words):
    """`spelling` gives snake case, and leaves what is in it alone."""
    assert spelling(name) == words
    assert spelling(words) == words
