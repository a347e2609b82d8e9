"""The planner on real files, with the built-in file tools and others (issue 3, dispatch.P2)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mibyan import Runtime, ToolCall

from .conftest import SOON, adder
from .world import Operation, batches, build, inner, names, state


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Iterator[Runtime]:
    """A runtime with the built-in plugins, and the operations of `world` as tools."""
    runtime = Runtime(home=tmp_path_factory.mktemp("home"))
    add = adder(runtime)
    for kind in ("read", "list", "append", "write", "make", "remove", "link", "turn", "copy", "move"):
        add(
            kind,
            run_operation,
            reads=lambda args: operation_of(args).reads,
            writes=lambda args: operation_of(args).writes,
        )
    yield runtime
    runtime.close()


def operation_of(args: dict[str, Any]) -> Operation:
    return Operation(args["kind"], args["name"], args["other"])


def run_operation(args: dict[str, Any], session: Any) -> str:
    return operation_of(args).run(session.cwd())


def as_call(operation: Operation) -> ToolCall:
    return ToolCall(operation.kind, {"kind": operation.kind, "name": operation.name, "other": operation.other})


def diff(old: str, new: str, before: str, after: str) -> str:
    """A unified diff of a file of one line; `/dev/null` makes or deletes one."""
    lines = [f"--- {old}", f"+++ {new}", f"@@ -{1 if before else 0},{int(bool(before))} +{int(bool(after))} @@"]
    if before:
        lines += [f"-{before}", "\\ No newline at end of file"]
    if after:
        lines += [f"+{after}", "\\ No newline at end of file"]
    return "\n".join(lines) + "\n"


texts = st.sampled_from(["a", "b", "d/a", "x"])
built_in = st.one_of(
    st.builds(lambda path: ToolCall("read_file", {"path": path}), names),
    st.builds(lambda path: ToolCall("search_files", {"pattern": "a", "path": path}), names),
    st.builds(lambda path: ToolCall("search_files", {"pattern": "*", "path": path, "target": "files"}), names),
    st.builds(lambda path, text: ToolCall("write_file", {"path": path, "content": text}), inner, texts),
    st.builds(
        lambda path, old, new: ToolCall("patch", {"path": path, "old_string": old, "new_string": new}), inner, texts, texts
    ),
    st.builds(
        lambda old, new, before, after: ToolCall("patch", {"diff": diff(old, new, before, after)}),
        st.one_of(inner, st.just("/dev/null")), st.one_of(inner, st.just("/dev/null")), texts, texts,
    ),
)  # fmt: skip
calls = st.one_of(built_in, batches.map(lambda batch: as_call(batch[0])))


def answer(result: Any) -> Any:
    """What came of a call, without what a message tells beside it about other files."""
    data = result.data
    return {**data, "hint": None} if isinstance(data, dict) and "error" in data else result.text


@settings(max_examples=150)
@given(batch=st.lists(calls, min_size=2, max_size=6))
def test_dispatch_P2_the_state_after_the_plan_is_that_after_the_sequence(files, tmp_path_factory, batch):
    """dispatch.P2: any batch of the file tools leaves the files, and gives the results, of its calls one by one."""
    root = tmp_path_factory.getbasetemp() / "plan" / "tree"
    build(root)
    with files.session(cwd=root) as session:
        expected = [answer(files.execute(call, session=session)) for call in batch]
        expected_state = state(root)
        build(root)
        switching = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            results = files.call_many(batch, session=session, timeout=SOON)
        finally:
            sys.setswitchinterval(switching)
    assert state(root) == expected_state
    assert [answer(result) for result in results] == expected


@pytest.fixture
def workspace(tmp_path):
    build(tmp_path / "tree")
    return tmp_path / "tree"


def test_issue_3_reads_of_one_file_run_together(workspace, files):
    """Two reads of one file, under two names, are under way at the same time."""
    both = threading.Barrier(2, timeout=SOON)
    host = files._parts.host
    files.hooks.register(host, {"transform_tool_result": lambda tool_name: both.wait() and None})
    try:
        results = files.call_many(
            [ToolCall("read_file", {"path": "a"}), ToolCall("read_file", {"path": "m"})],
            session=files.session(cwd=workspace),
        )
    finally:
        files.hooks.remove_owner(host)
    assert [result.data["content"] for result in results] == ["a", "a"]
    assert not both.broken


PATCH = diff("a/d/a", "b/d/a", "d/a", "new")


@pytest.mark.parametrize(
    ("calls", "waits"),
    [
        ([ToolCall("read_file", {"path": "a"}), ToolCall("read_file", {"path": "./a"})], [[], []]),
        ([ToolCall("read_file", {"path": "d/a"}), ToolCall("patch", {"diff": PATCH})], [[], [0]]),
        ([ToolCall("read_file", {"path": "l/a"}), ToolCall("patch", {"diff": PATCH})], [[], [0]]),
        ([ToolCall("read_file", {"path": "b"}), ToolCall("patch", {"diff": PATCH})], [[], []]),
        ([ToolCall("search_files", {"pattern": "x"}), ToolCall("patch", {"diff": PATCH})], [[], [0]]),
        ([ToolCall("search_files", {"pattern": "x", "path": "l"}), ToolCall("patch", {"diff": PATCH})], [[], [0]]),
        ([ToolCall("write_file", {"path": "b", "content": ""}), ToolCall("patch", {"diff": PATCH})], [[], []]),
        ([ToolCall("write_file", {"path": "m", "content": ""}), ToolCall("read_file", {"path": "a"})], [[], [0]]),
        ([ToolCall("patch", {"path": "a", "old_string": "a", "new_string": "b"}), ToolCall("read_file", {"path": "m"})],
         [[], [0]]),
        ([ToolCall("patch", {"diff": diff("a/b", "b/e/b", "b", "b")}), ToolCall("read_file", {"path": "e/b"})], [[], [0]]),
        ([ToolCall("patch", {"diff": "no diff"}), ToolCall("read_file", {"path": "b"})], [[], [0]]),
        ([ToolCall("search_files", {"pattern": "x"}), ToolCall("write_file", {"path": "~root/x", "content": ""})], [[], [0]]),
    ],
)  # fmt: skip
def test_dispatch_P2_what_the_file_tools_say_they_touch(workspace, files, calls, waits):
    """dispatch.P2: links, directories and a patch's body count, not its `path` alone."""
    plan = files.plan(calls, session=files.session(cwd=workspace))
    assert [[wait.on for wait in call.waits] for call in plan.calls] == waits


def test_relative_paths_are_the_tasks_own(workspace, files):
    """The same relative path is another file in another working directory: the session's, or the task's."""
    session = files.session(cwd=workspace)
    session.set_cwd("d", task_id="t")
    calls = [ToolCall("write_file", {"path": f"{workspace}/a", "content": ""}), ToolCall("read_file", {"path": "a"})]
    assert [len(call.waits) for call in files.plan(calls, session=session).calls] == [0, 1]
    assert [len(call.waits) for call in files.plan(calls, session=session, task_id="t").calls] == [0, 0]


@pytest.mark.parametrize(
    ("calls", "imported"),
    [
        ([ToolCall("read_file", {"path": "a"}), ToolCall("read_file", {"path": "b"})], False),
        ([ToolCall("write_file", {"path": "a", "content": ""})], False),
        ([ToolCall("write_file", {"path": "a", "content": ""}), ToolCall("read_file", {"path": "a"})], True),
    ],
)
def test_a_plan_imports_a_plugin_only_where_it_matters(tmp_path, calls, imported):
    """A frozen tool's code is asked what it touches when another call with effects is there; reads alone share anyway."""
    with Runtime(home=tmp_path / "home") as rt:
        plan = rt.plan(calls)
        entry = rt.registry.get_entry("read_file")
        assert (entry.activate is None) is imported
        assert plan.waves == (((0,), (1,)) if imported else (tuple(range(len(calls))),))
