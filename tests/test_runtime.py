"""`Runtime`: what a host asks, and what it is told when it asks wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from mibyan import MibyanError, Runtime, ToolCall
from mibyan.errors import ConfigError

SCHEMA = {"description": "d"}


@pytest.fixture
def rt(tmp_path: Path):
    runtime = Runtime(home=tmp_path / "home", safe_mode=True)
    yield runtime
    runtime.close()


def test_making_a_runtime_has_no_effect(tmp_path):
    """Architecture, never 4: a runtime that is made and closed has written nothing."""
    home = tmp_path / "home"
    with Runtime(home=home, safe_mode=True):
        pass
    assert not home.exists()


def test_definitions_are_a_fresh_list_of_read_only_dicts(rt):
    """registry.D1, R3: OpenAI's form, sorted by name; changing the list changes nothing, the dicts can't be changed."""
    for name in ("b", "a"):
        rt.registry.register(name, "mine", SCHEMA, print)
    first = rt.definitions(["mine"])
    assert [each["function"]["name"] for each in first] == ["a", "b"]
    first.clear()
    second = rt.definitions(["mine"])
    assert len(second) == 2
    with pytest.raises(TypeError):
        second[0]["function"]["name"] = "z"


def test_definitions_of_a_session_are_its_own(rt):
    """A session's toolsets count where a call names none."""
    rt.registry.register("a", "one", SCHEMA, print)
    rt.registry.register("b", "two", SCHEMA, print)
    session = rt.session(enabled_toolsets=["one"])
    assert [each["function"]["name"] for each in rt.definitions(session=session)] == ["a"]
    assert [each["function"]["name"] for each in rt.definitions(["two"], session=session)] == ["b"]
    assert [each["function"]["name"] for each in rt.definitions(session=session.id)] == ["a"]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"enabled_toolsets": "web"}, TypeError, "web"),
        ({"disabled_toolsets": "web"}, TypeError, "web"),
        ({"enabled_toolsets": [5]}, TypeError, "list of toolset names"),
        ({"format": "opemai"}, ValueError, "openai"),
        ({"session": "nope"}, MibyanError, "nope"),
        ({"session": 5}, TypeError, "session must be"),
    ],
)
def test_definitions_asked_wrongly(rt, arguments, error, words):
    """Wrong types and unknown names are a sentence."""
    with pytest.raises(error, match=words):
        rt.definitions(**arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"session_id": ""}, TypeError, "session_id"),
        ({"session_id": 5}, TypeError, "session_id"),
        ({"platform": 5}, TypeError, "platform"),
        ({"continues": 5}, TypeError, "continues"),
        ({"enabled_toolsets": "web"}, TypeError, "enabled_toolsets"),
        ({"enabled_toolsets": 5}, TypeError, "enabled_toolsets"),
        ({"handlers": 5}, TypeError, "handlers"),
        ({"handlers": {"memory": 5}}, TypeError, "memory"),
        ({"handlers": {5: print}}, TypeError, "handlers"),
        ({"cwd": "/no/such/folder"}, MibyanError, "isn't a directory"),
    ],
)
def test_a_session_begun_wrongly(rt, arguments, error, words):
    """A session that can't be is a sentence, and none is left open."""
    with pytest.raises(error, match=words):
        rt.session(**arguments)
    assert rt.session("s1").id == "s1"


def test_sessions_by_id(rt):
    """An id is one open session's; after it is closed the id is free again."""
    rt.registry.register("x", "t", SCHEMA, lambda args, session_id: session_id)
    session = rt.session("s1")
    with pytest.raises(MibyanError, match="is open"):
        rt.session("s1")
    assert rt.call("x", session="s1") == "s1"
    session.close()
    with pytest.raises(MibyanError, match="No open session"):
        rt.call("x", session="s1")
    assert rt.session("s1") is not session
    assert rt.session().id != rt.session().id


def test_a_sessions_working_directory(rt, tmp_path):
    """`set_cwd` is the session's or one task's, relative paths start from it; a missing directory is a sentence."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    session = rt.session(cwd=tmp_path)
    session.set_cwd("a")
    session.set_cwd("b", task_id="t1")
    assert (session.cwd(), session.cwd("t1"), session.cwd("t2")) == (
        tmp_path / "a",
        tmp_path / "a" / "b",
        tmp_path / "a",
    )
    with pytest.raises(MibyanError, match="isn't a directory"):
        session.set_cwd("nope")


@pytest.mark.parametrize(
    ("name", "words"),
    [("pre_tool_cal", "did you mean 'pre_tool_call'"), ("nonsense", "There is no hook"), ("", "no hook")],
)
def test_a_hook_that_there_is_not(rt, name, words):
    """`add_hook` knows the hooks."""
    with pytest.raises(MibyanError, match=words):
        rt.add_hook(name, lambda: None)


@pytest.mark.parametrize("function", [5, None, "x"])
def test_a_hook_is_a_function(rt, function):
    """`add_hook` takes a function."""
    with pytest.raises(TypeError, match="add_hook takes a function"):
        rt.add_hook("pre_tool_call", function)


def test_what_nobody_provides(rt):
    """`rt.provided` of what no plugin offers is one sentence with what to do."""
    with pytest.raises(MibyanError, match="No plugin provides 'nope'"):
        rt.provided("nope")


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("[]", "config.yaml"),
        ("dispatch: {timeot: 5}", "timeout"),
        ("dispatch: {timeout: fast}", "dispatch.timeout"),
        ("a: [", "config.yaml"),
    ],
)
def test_a_configuration_that_cant_be_used(tmp_path, written, words):
    """A broken config.yaml is a ConfigError that says where, before anything is loaded."""
    (tmp_path / "config.yaml").write_text(written)
    with pytest.raises(ConfigError, match=words):
        Runtime(home=tmp_path)


def test_a_project_that_there_is_not(tmp_path):
    """A project is a directory."""
    with pytest.raises(MibyanError, match="isn't a directory"):
        Runtime(home=tmp_path, project=tmp_path / "nope")


def test_call_and_execute_are_the_same_pipeline(rt):
    """`call` gives the text, `execute` the record, with data."""
    rt.registry.register("x", "t", SCHEMA, lambda args: {"a": args})
    assert rt.call("x", '{"b": 1}') == rt.execute(ToolCall("x", {"b": 1})).text == '{"a": {"b": 1}}'
    assert rt.execute(ToolCall("x", {"b": 1})).data == {"a": {"b": 1}}
