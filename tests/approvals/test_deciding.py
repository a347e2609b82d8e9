"""From a tool's verdict to an answer: what is blocked, what asks, what runs, and what a yes opens."""

from __future__ import annotations

import json
import threading

import pytest

from mibyan import Ask, Block, Modify, Runtime, ToolCall
from mibyan.approvals import CommandContext, Finding, Verdict, evaluate_code, evaluate_command
from mibyan.errors import ConfigError

SOON = 20.0
SEVERAL = "rm -rf x; git push --force"


@pytest.fixture
def make(tmp_path):
    """Makes runtimes with a tool `sh` whose commands are judged, and that only tells what it was given."""
    made = []

    def runtime(answer=None, **approvals):
        rt = Runtime(home=tmp_path, config={"approvals": approvals} if approvals else None)
        rt._parts._loaded = True
        rt.ran, rt.asked = [], []

        def judge(args, context):
            cwd = str(context.session.cwd())
            return evaluate_command(args["command"], CommandContext(cwd=cwd, rules=context.command_rules))

        rt.registry.register(
            "sh", "t", {"description": ""}, lambda args: rt.ran.append(args["command"]) or "ran", approval=judge
        )
        if answer is not None:
            rt.approvals.notify(lambda request: rt.asked.append(request) or (answer() if callable(answer) else answer))
        made.append(rt)
        return rt

    yield runtime
    for rt in made:
        rt.close()


def run(rt, command, session=None, **args):
    return rt.execute(ToolCall("sh", {"command": command, **args}), session=session)


def test_approvals_J2_one_question_with_all_findings(make):
    """Every finding is in it as JSON types, with what `always` would write."""
    rt = make("once")
    assert run(rt, SEVERAL).status == "ok"
    (request,) = rt.asked
    assert {finding["id"] for finding in request.findings} == {"recursive_delete", "git_destructive"}
    assert (request.text, request.reason) == (SEVERAL, "")
    assert set(request.lasting) == {"recursive_delete", "git_destructive"}
    assert json.loads(json.dumps(request.to_dict()))["findings"][0]["excerpt"] in SEVERAL


def test_what_is_safe_asks_nobody(make):
    """A safe command runs, also where nobody is there."""
    rt = make()
    assert run(rt, "ls").status == "ok"
    assert run(rt, "rm -rf x").status == "denied"
    assert rt.ran == ["ls"]


@pytest.mark.parametrize("mode", ["manual", "smart", "off"])
def test_approvals_P4_hardline_and_deny_hold_in_every_mode(make, mode):
    """Whatever the mode, a grant or the allowlist says; the answer has every hardline finding."""
    rt = make("always", mode=mode, deny=["git push*"])
    rt.approvals.allowlist.add("root_delete", "git_destructive", "rm*")
    hard = run(rt, "rm -rf /; shutdown -h now")
    assert (hard.status, hard.data["blocked_by"]) == ("blocked", "approvals")
    assert "root_delete" in hard.error
    assert "shutdown" in hard.error
    for command in ("git push", "cd x && git push --force", "g''it push"):
        denied = run(rt, command)
        assert (denied.status, "approvals.deny" in denied.error) == ("blocked", True)
    assert (rt.asked, rt.ran) == ([], [])
    assert "blocked" in [decision.kind for decision in rt.report().decisions]


def test_approvals_P4_a_denied_command_is_denied_in_a_script_too(make):
    """terminal.P4: deny globs reach the shell commands that a script runs, also in scripts inside of it."""
    rt = make("always", mode="off", deny=["git push*"])
    rt.registry.register(
        "script",
        "t",
        {"description": ""},
        lambda args: "ran",
        approval=lambda args, context: evaluate_code(args["code"]),
    )
    inner = "import os; os.system('ls; git push origin')"
    for code in (inner, f"exec({inner!r})", "import subprocess as s; s.run(['git', 'push'])"):
        result = rt.execute(ToolCall("script", {"code": code}))
        assert (result.status, "approvals.deny" in result.error) == ("blocked", True), code
    assert rt.execute(ToolCall("script", {"code": "import os; os.system('git pull')"})).status == "ok"


@pytest.mark.parametrize(("mode", "asked"), [("manual", 1), ("off", 0)])
def test_approvals_P4_modes(make, mode, asked):
    """off: what is dangerous runs; manual: a person is asked."""
    rt = make("once", mode=mode)
    assert run(rt, "rm -rf x").status == "ok"
    assert len(rt.asked) == asked


def test_approvals_P3_a_session_grant_opens_its_rules_only(make):
    """It doesn't open other findings, nor other sessions, nor the session that continues it."""
    rt = make("session")
    one, other = rt.session("one"), rt.session("other")
    for command, asked in (("rm -rf x", 1), ("rm -rf y", 1), (SEVERAL, 2), ("git push --force", 2)):
        assert run(rt, command, one).status == "ok"
        assert len(rt.asked) == asked
    assert [finding["granted"] for finding in rt.asked[1].findings if finding["id"] == "recursive_delete"] == [True]
    assert rt.approvals.granted(one) == {"recursive_delete", "git_destructive"}
    run(rt, "rm -rf x", other)
    run(rt, "rm -rf x", rt.session("later", continues=one))
    assert len(rt.asked) == 4
    one.close()
    run(rt, "rm -rf x", rt.session("one"))
    assert len(rt.asked) == 5
    assert rt.approvals.revoke(other)
    run(rt, "rm -rf x", other)
    assert len(rt.asked) == 6


def test_approvals_P3_always_is_a_line_of_the_file(make, tmp_path):
    """It counts for other runtimes at their next decision; taking the line out revokes it."""
    rt, second = make("always"), make()
    assert run(second, "rm -rf x").status == "denied"
    run(rt, "rm -rf x")
    assert (tmp_path / "config.yaml").read_text() == "command_allowlist: [recursive_delete]\n"
    assert run(second, "rm -rf y").status == "ok"
    (step,) = [step for step in run(rt, "rm -rf y").trace if step["step"] == "approval"]
    assert step["by"] == {"recursive_delete": f"{tmp_path / 'config.yaml'}:1"}
    assert len(rt.asked) == 1
    second.approvals.allowlist.remove("recursive_delete")
    assert run(second, "rm -rf y").status == "denied"


@pytest.mark.parametrize(("glob", "status"), [("git push*", "ok"), ("rm*", "denied"), ("*", "denied"), (5, "denied")])
def test_always_with_a_glob(make, glob, status):
    """A glob is kept if it covers the command that was asked about; else it is a denial."""
    rt = make()
    rt.approvals.notify(lambda request: rt.approvals.resolve(request.id, "always", glob=glob) and None)
    assert run(rt, "git push --force").status == status
    assert [entry.text for entry in rt.approvals.allowlist.entries()] == ([glob] if status == "ok" else [])
    rt.approvals.notify(None)
    assert run(rt, "git push --force x").status == status
    assert run(rt, "git push --force x; rm -rf y").status == "denied"


def test_always_where_the_file_cant_be_written_holds_for_the_session(make, tmp_path, caplog):
    """The yes counts, and it is told that it isn't kept."""
    (tmp_path / "config.yaml").write_text("dispatch: {timeout: 5}\n")
    rt = make("always")
    (tmp_path / "config.yaml").write_text("a: [")
    session = rt.session()
    assert [run(rt, "rm -rf x", session).status for _ in range(2)] == ["ok", "ok"]
    assert len(rt.asked) == 1
    assert "can't be written" in caplog.text


def test_approvals_P1_hooks_and_the_tool_ask_one_question(make):
    """What hooks ask and what was found are one question; each is granted by its own name."""
    rt = make("session")
    rt.add_hook("pre_tool_call", lambda args: Ask("the network", key="net") if "push" in args["command"] else None)
    session = rt.session()
    run(rt, "git push --force", session)
    (request,) = rt.asked
    assert (request.reason, len(request.findings)) == ("the network", 1)
    assert rt.approvals.granted(session) == {"host:net", "git_destructive"}
    run(rt, "git push --force y", session)
    assert len(rt.asked) == 1
    rt.approvals.allowlist.add("git_destructive", "git*")
    run(rt, "git push --force y", rt.session())
    assert len(rt.asked) == 2  # a glob of commands doesn't answer the hook


@pytest.mark.parametrize("key", [None, "a\nb", "x" * 500])
def test_a_question_without_a_name_is_granted_for_these_arguments(make, key):
    """The same question about the same arguments isn't asked twice; another one is."""
    rt = make("session")
    rt.add_hook("pre_tool_call", lambda: Ask("sure?", key))
    session = rt.session()
    for command, asked in (("ls", 1), ("ls", 1), ("ls x", 2)):
        run(rt, command, session)
        assert len(rt.asked) == asked


def test_approvals_P3_what_runs_is_what_was_shown(make):
    """The question is about the arguments as the hooks leave them."""
    rt = make("once")
    rt.add_hook("pre_tool_call", lambda: Modify({"command": "rm -rf y"}))
    run(rt, "ls")
    assert ([request.text for request in rt.asked], rt.ran) == (["rm -rf y"], ["rm -rf y"])


@pytest.mark.parametrize("form", ["one", "batch"])
def test_approvals_P3_what_has_changed_meanwhile_is_judged_again(make, tmp_path, form):
    """`rm -rf *` was approved in a folder; while the person thinks the session moves to `/`."""
    rt = make()
    session = rt.session(cwd=tmp_path)
    rt.approvals.notify(lambda request: session.set_cwd("/") or "once")
    call = ToolCall("sh", {"command": "rm -rf *"})
    results = (
        [rt.execute(call, session=session)]
        if form == "one"
        else rt.call_many([call, ToolCall("sh", {"command": "ls"})], session=session)
    )
    assert (results[0].status, "root_delete" in results[0].error) == ("blocked", True)
    assert "rm -rf *" not in rt.ran


def test_what_changes_all_the_time_is_blocked(make):
    """A verdict that is another one each time can't be approved."""
    rt = make("once")
    numbers = iter(range(100))
    rt.registry.register("odd", "t", {"description": ""}, lambda args: "ran", approval=lambda args, context: Verdict(
        "dangerous", (Finding(f"n{next(numbers)}", "dangerous", "odd", "odd", (0, 0)),)))  # fmt: skip
    result = rt.execute(ToolCall("odd"))
    assert (result.status, "keeps changing" in result.error) == ("blocked", True)


@pytest.mark.parametrize("verdict", [
    Verdict("deadly"), Verdict("dangerous", ("x",)), Verdict("safe", (Finding("a", "mild", "b", "c", (0, 0)),)), Verdict("safe", command=5),
    Verdict("safe", (Finding(1, "dangerous", "b", "c", (0, 0)),)), Verdict("dangerous", (Finding("a", "dangerous", "b", "c", None),)), 5, "safe",
])  # fmt: skip
def test_a_verdict_that_is_none_blocks(make, verdict):
    """Policy fails closed."""
    rt = make("once")
    rt.registry.register("odd", "t", {"description": ""}, lambda args: "ran", approval=lambda args, context: verdict)
    assert rt.execute(ToolCall("odd")).status == "blocked"


@pytest.mark.parametrize(("verdict", "status"), [
    (Verdict("hardline"), "blocked"), (Verdict("dangerous"), "denied"), (Verdict("safe"), "ok"), (Block("no"), "blocked"),
    (Verdict("safe", (Finding("a", "hardline", "b", "c", (0, 0)),)), "blocked"),
])  # fmt: skip
def test_a_verdict_is_as_bad_as_the_worst_in_it(make, verdict, status):
    """Also where its level says less, or it has no findings."""
    rt = make("deny")
    rt.registry.register("odd", "t", {"description": ""}, lambda args: "ran", approval=lambda args, context: verdict)
    assert rt.execute(ToolCall("odd")).status == status
    assert len(rt.asked) == (status == "denied")


def test_the_operators_own_rules(make, tmp_path):
    """approvals.rules: judged with the built-in ones, granted by their ids, refused where they are hardline."""
    rules = [
        {
            "id": "deploy",
            "pattern": "^make deploy",
            "description": "deploys",
            "matches": ["cd x && make deploy"],
            "misses": ["make test"],
        },
        {"id": "drop", "pattern": "^dropdb", "description": "drops", "level": "hardline"},
    ]
    rt = make("session", rules=rules)
    session = rt.session()
    assert [
        run(rt, command, session).status for command in ("make deploy", "make test", "make deploy x", "dropdb x")
    ] == ["ok", "ok", "ok", "blocked"]
    assert [finding["id"] for request in rt.asked for finding in request.findings] == ["deploy"]


@pytest.mark.parametrize(("rule", "wrong"), [
    ("{id: A b, pattern: x, description: y}", "isn't one"), ("{id: a, pattern: '(', description: y}", "regular expression"),
    ("{id: a, description: y}", "needs 'pattern'"), ("{id: a, pattern: x, description: y, level: mild}", "level"),
])  # fmt: skip
def test_a_rule_that_isnt_right_is_told_at_load(tmp_path, rule, wrong):
    """With its file and line."""
    (tmp_path / "config.yaml").write_text(f"approvals:\n  rules:\n    - {rule}\n")
    with pytest.raises(ConfigError, match=wrong) as caught:
        Runtime(home=tmp_path)
    assert "config.yaml:3" in str(caught.value)


def test_the_operators_own_rules_in_the_file(make, tmp_path):
    """Each key of a rule, in YAML."""
    (tmp_path / "config.yaml").write_text(
        "approvals:\n  rules:\n    - {id: a, pattern: deploy, description: y, level: dangerous, matches: [make deploy], misses: [ls]}\n"
    )
    rt = make("deny")
    assert [run(rt, command).status for command in ("ls", "make deploy")] == ["ok", "denied"]


@pytest.mark.parametrize("example", ["matches: [make test]", "misses: [make deploy]"])
def test_a_rule_whose_example_says_otherwise_blocks(make, tmp_path, example):
    """It is told with its line when the first command is judged, and no command runs by it."""
    (tmp_path / "config.yaml").write_text(
        f"approvals:\n  rules:\n    - {{id: a, pattern: deploy, description: y, {example}}}\n"
    )
    rt = make("once")
    result = run(rt, "ls")
    assert (result.status, "config.yaml:3" in result.error, "example" in result.error) == ("blocked", True, True)


def test_rules_that_nobody_configures_cost_nothing(make):
    """The judge isn't asked for anything until a command is judged."""
    rt = make()
    rt.registry.register("plain", "t", {"description": ""}, lambda args: "ran")
    assert rt.execute(ToolCall("plain")).status == "ok"
    assert rt._parts.approvals._made is None


def test_hooks_around_a_decision_fire_once_and_change_nothing(make):
    """approvals.P5: pre_approval_request and post_approval_response, raising ones too."""
    rt, told = make("once"), []
    rt.add_hook("pre_approval_request", lambda request: told.append(("pre", request.text)))
    rt.add_hook("pre_approval_request", lambda: 1 / 0)
    rt.add_hook("post_approval_response", lambda request, answer, outcome: told.append((request.text, answer, outcome)))
    rt.add_hook("post_approval_response", lambda: 1 / 0)
    assert run(rt, "rm -rf x").status == "ok"
    rt.approvals.notify(lambda request: "deny")
    assert run(rt, "rm -rf y").status == "denied"
    rt.approvals.notify(None)
    assert run(rt, "rm -rf z").status == "denied"
    assert told == [
        ("pre", "rm -rf x"), ("rm -rf x", "once", "granted"), ("pre", "rm -rf y"), ("rm -rf y", "deny", "denied"),
        ("pre", "rm -rf z"), ("rm -rf z", "", "no_channel"),
    ]  # fmt: skip


def test_a_hook_that_hangs_changes_nothing(tmp_path):
    """approvals.P5: it is given up after dispatch.hook_timeout, and the person is asked all the same."""
    release = threading.Event()
    with Runtime(home=tmp_path, config={"dispatch": {"hook_timeout": 0.1}, "approvals": {"timeout": 10}}) as rt:
        rt._parts._loaded = True
        rt.registry.register("x", "t", {"description": ""}, lambda args: "ran", approval=lambda args, context: Ask("?"))
        rt.add_hook("pre_approval_request", lambda: release.wait(SOON))
        rt.add_hook("post_approval_response", lambda: release.wait(SOON))
        rt.approvals.notify(lambda request: "once")
        assert rt.execute(ToolCall("x")).status == "ok"
        release.set()
