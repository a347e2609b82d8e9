"""`mibyan call`: one tool call, its text, its exit code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mibyan.tools.results import ERROR_TYPES


@pytest.mark.parametrize(
    ("words", "code", "status", "error_type"),
    [
        (["echo", '{"text": "hi"}'], 0, "ok", None),
        (["echo", "text=hi", "number:=2"], 0, "ok", None),
        (["repeat", "text=hi"], 0, "ok", None),
        (["Echo"], 0, "ok", None),
        (["risky", "text=x", "--yes"], 0, "ok", None),
        (["echo", "number=many"], 1, "error", "invalid_arguments"),
        (["echo", "colour=red"], 1, "error", "invalid_arguments"),
        (["echo", "[1]"], 1, "error", "invalid_arguments"),
        (["echo", '{"text": "hi'], 1, "error", "arguments_truncated"),
        (["fails"], 1, "error", "tool_exception"),
        (["tides"], 1, "error", "tool_unavailable"),
        (["ecko"], 1, "error", "unknown_tool"),
        ([""], 1, "error", "unknown_tool"),
        (["a\udcff\x1b[31m"], 1, "error", "unknown_tool"),
        (["stuck", "--timeout", "0.2"], 1, "timeout", "timeout"),
        (["forbidden"], 3, "blocked", "blocked"),
        (["risky", "text=x"], 3, "denied", "denied"),
    ],
)
def test_the_exit_code_is_the_statuss(
    run: Callable, bench: Path, words: list[str], code: int, status: str, error_type: str | None
) -> None:
    """api.md: 0 ok; 1 error, timeout, cancelled; 3 blocked or denied. The text and the ToolResult are on standard output."""
    structured = run("call", *words, "--json")
    assert (structured.code, structured.data["status"], structured.data["error_type"]) == (code, status, error_type)
    assert error_type is None or error_type in ERROR_TYPES
    assert structured.data.keys() == {
        "id", "name", "status", "text", "content", "data", "error", "error_type", "duration_ms", "trace",
    }  # fmt: skip
    plain = run("call", *words)
    assert plain.code == code
    assert ("error" in plain.out) is (status != "ok")
    assert "Traceback" not in plain.err


def test_the_text_is_printed_as_it_is(run: Callable, bench: Path) -> None:
    """The result's text, a line end behind it, and nothing else is on standard output."""
    assert run("call", "risky", "text=a b", "--yes").out == "done: a b\n"
    assert json.loads(run("call", "echo", "text=é").out) == {"text": "é", "number": 0, "anything": None}


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "soon", "", "1e400", "\udcff"])
def test_a_time_out_is_a_number_above_nothing(run: Callable, bench: Path, seconds: str) -> None:
    """--timeout takes seconds above 0; anything else is usage, and nothing runs."""
    done = run("call", "echo", "--timeout", seconds)
    assert (done.code, done.out) == (2, "")
    assert "isn't a number of seconds above 0" in done.err


def test_both_forms_of_arguments_are_refused(run: Callable, bench: Path) -> None:
    """JSON and keys at once: usage, and nothing runs."""
    done = run("call", "echo", "{}", "text=x")
    assert (done.code, done.out) == (2, "")
    assert "don't go together" in done.err


def test_arguments_from_standard_input(program: Callable, bench: Path) -> None:
    """`-` reads JSON of any size from standard input."""
    text = "x" * 1_000_000
    done = program("call", "echo", "-", "--json", stdin=json.dumps({"text": text}))
    assert done.code == 0
    assert done.data["status"] == "ok"
    done = program("call", "echo", "-", stdin=b"\xff\xfe")
    assert (done.code, done.out) == (2, "")
    assert "isn't UTF-8" in done.err


def test_half_a_character_in_the_words(program: Callable, bench: Path) -> None:
    """Bytes that aren't UTF-8 in a word are data like any other: a result, no traceback."""
    done = program("call", "echo", b"text=\xff\xfe", "--json")
    assert done.code in {0, 1}
    assert done.data["status"] in {"ok", "error"}
    assert "Traceback" not in done.err


def test_without_a_terminal_what_needs_approval_is_denied(program: Callable, bench: Path) -> None:
    """No --yes and nobody to ask: denied, 3, and the model is told how that changes."""
    done = program("call", "risky", "text=x", stdin="y\n")
    assert (done.code, done.data["error_type"]) == (3, "denied")
    assert "--yes" in done.data["error"]


def test_the_trace_is_a_json_line_for_each_step(run: Callable, bench: Path, tmp_path: Path) -> None:
    """--trace FILE: JSON lines with the call's id, from its beginning to its result; a second call is added."""
    file = tmp_path / "trace.jsonl"
    done = run("call", "echo", "number=3", "--trace", str(file), "--json")
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert {line["call_id"] for line in lines} == {done.data["id"]}
    assert [line["step"] for line in lines] == ["call", *(step["step"] for step in done.data["trace"]), "result"]
    assert "repaired" in [line["step"] for line in lines]
    assert lines[-1]["status"] == "ok"
    run("--trace", str(file), "call", "ecko")
    again = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert again[: len(lines)] == lines
    assert again[-1]["error_type"] == "unknown_tool"


@pytest.mark.parametrize("path", ["absent/trace", ".", ""])
def test_a_trace_that_cannot_be_written_is_told_before_anything_runs(run: Callable, bench: Path, path: str) -> None:
    """--trace to nowhere: 2 and a sentence, and the call isn't made."""
    done = run("call", "noisy", "--trace", path)
    assert (done.code, done.out) == (2, "")
    assert "can't write the trace" in done.err
    assert "printed by a tool" not in done.err


def test_a_tool_of_an_untrusted_plugin(run: Callable, project: Path) -> None:
    """A call of what a project's untrusted plugin offers ends with 3 and says what would change that."""
    done = run("call", "ship")
    assert (done.code, done.data["error_type"]) == (3, "unknown_tool")
    assert "deploy, which is untrusted" in done.err
    assert "mibyan plugins trust deploy" in done.err


def test_a_tool_of_a_disabled_plugin(run: Callable, project: Path) -> None:
    """A call of what a disabled plugin would offer is an unknown tool, and the command that changes it is told."""
    done = run("call", "ship", "--no-plugin", "deploy")
    assert (done.code, done.data["error_type"]) == (1, "unknown_tool")
    assert "deploy, which is disabled" in done.err


def test_strict_runs_nothing_while_a_plugin_is_not_ready(run: Callable, bench: Path, project: Path) -> None:
    """--strict: a plugin that isn't ready ends with 3 before the call is made; one that is off on purpose doesn't."""
    done = run("call", "noisy", "--strict")
    assert (done.code, done.out) == (3, "")
    assert "plugin deploy is untrusted" in done.err
    assert "printed by a tool" not in done.err
    assert run("call", "echo", "--strict", "--no-plugin", "deploy").code == 0


def test_a_broken_configuration_ends_a_call(run: Callable, bench: Path) -> None:
    """A configuration error ends `call` with 2 and its line; nothing runs."""
    (bench / "config.yaml").write_text("dispatch:\n  timeot: 3\n")
    done = run("call", "noisy")
    assert (done.code, done.out) == (2, "")
    assert "config.yaml:2: key 'dispatch.timeot'" in done.err
    assert "'dispatch.timeout'" in done.err
    assert "printed" not in done.err


@pytest.mark.parametrize("option", ["--plugin", "--no-plugin"])
def test_a_plugin_that_there_is_not(run: Callable, bench: Path, option: str) -> None:
    """plugins.F2: unknown ids are errors with a suggestion."""
    done = run("call", "echo", option, "bensh")
    assert (done.code, done.out) == (2, "")
    assert f"{option}: there is no plugin 'bensh' (did you mean 'bench'?)" in done.err


def test_safe_mode_loads_built_ins_only(run: Callable, bench: Path) -> None:
    """plugins.L6: --safe-mode."""
    done = run("--safe-mode", "call", "echo")
    assert (done.code, done.data["error_type"]) == (1, "unknown_tool")
    assert "greeting" not in done.err
