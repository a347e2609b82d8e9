"""`mibyan approvals`: what is allowed for good, and what becomes of a command (terminal.J1, J2, P3, P4)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mibyan import Runtime
from mibyan.approvals import CommandContext, evaluate_command
from mibyan.approvals.policy import Subject
from mibyan.cli.completing import items

CONFIG = """\
# the operator's
approvals:
  deny:
    - curl *evil*   # never there
command_allowlist:
  # learned on Monday
  - recursive_delete  # for builds
  - shutdown
  - recursive_delet
  - git push *
  - ls -l
  - recursive_delete
  - '*'
  - rm -rf /
  - bench:deploy
"""


@pytest.fixture
def config(home: Path) -> Path:
    """A home whose allowlist has entries of every kind."""
    path = home / "config.yaml"
    path.write_text(CONFIG)
    return path


def test_test_explains_a_safe_command(run: Callable, home: Path) -> None:
    """Nothing was found: it would run, and the command ends with 0."""
    done = run("approvals", "test", "ls -l | wc -l", "--json")
    told = done.data
    assert (done.code, told["level"], told["outcome"], told["findings"], told["ways"]) == (0, "safe", "runs", [], [])


def test_test_tells_every_finding_and_what_would_allow_it(run: Callable, home: Path) -> None:
    """terminal.J2: each finding has its rule and place; `always` would write a line for each."""
    command = "rm -rf x; git push --force"
    done = run("approvals", "test", command, "--json")
    told = done.data
    assert (done.code, told["level"], told["outcome"]) == (3, "dangerous", "asks")
    assert [(one["id"], one["text"], one["span"], one["allowed_by"]) for one in told["findings"]] == [
        ("recursive_delete", "rm -rf x", [0, 8], None),
        ("git_destructive", "git push --force", [10, 26], None),
    ]
    assert [way["how"] for way in told["ways"]] == ["once", "session", "always", "mode"]
    assert told["always_writes"] == ["recursive_delete", "git_destructive"]
    shown = run("approvals", "test", command).out
    assert f"    {command}\n    ^^^^^^^^ 1\n              ^^^^^^^^^^^^^^^^ 2\n" in shown
    for part in (
        "recursive delete",
        "rule: git_destructive (dangerous, git)",
        "command_allowlist:\n  - recursive_delete",
    ):
        assert part in shown


def test_test_says_that_nothing_allows_what_is_hardline(run: Callable, config: Path) -> None:
    """terminal.J1, P4: neither an entry, nor a mode, nor an answer."""
    config.write_text("approvals: {mode: off}\ncommand_allowlist: [root_delete, recursive_delete, rm -rf /]\n")
    done = run("approvals", "test", "rm -rf /", "--json")
    told = done.data
    assert (done.code, told["level"], told["outcome"], told["ways"]) == (3, "hardline", "refused", [])
    assert told["findings"][0]["id"] == "root_delete"
    assert told["findings"][0]["allowed_by"] is None
    assert "nothing can" in run("approvals", "test", "rm -rf /").out


def test_test_names_the_line_that_denies(run: Callable, config: Path) -> None:
    """terminal.J5: a deny glob beats everything but hardline, safe commands too; it is told with its line."""
    done = run("approvals", "test", "curl http://evil", "--json")
    told = done.data
    assert (done.code, told["outcome"]) == (3, "refused")
    assert told["denied_by"] == {"glob": "curl *evil*", "place": f"{config}:4"}


def test_test_knows_what_is_allowed(run: Callable, config: Path) -> None:
    """terminal.P3: a decision needs every finding granted; what is allowed names its line."""
    done = run("approvals", "test", "rm -rf x", "--json")
    assert (done.code, done.data["level"], done.data["outcome"]) == (0, "dangerous", "runs")
    allowed = done.data["findings"][0]["allowed_by"]
    assert allowed["entry"] == "recursive_delete"
    assert allowed["place"] in {f"{config}:7", f"{config}:12"}
    done = run("approvals", "test", "rm -rf x; pkill -9 x", "--json")
    assert (done.code, done.data["always_writes"]) == (3, ["process_kill"])


def test_test_knows_the_mode(run: Callable, config: Path) -> None:
    """terminal.P4: with mode off what is dangerous runs unasked, and that is told."""
    config.write_text("approvals:\n  mode: off\n")
    done = run("approvals", "test", "rm -rf x", "--json")
    assert (done.code, done.data["outcome"]) == (0, "runs")
    assert "config.yaml:2" in done.data["why"]


@pytest.mark.parametrize(
    "written",
    ["", "approvals: {mode: off}", CONFIG, "command_allowlist: [git push *, 'eval \"$X\"']", "approvals: {deny: ['*push*', rm *]}"],
)  # fmt: skip
def test_test_says_what_the_pipeline_decides(run: Callable, home: Path, written: str) -> None:
    """What is explained is what a call meets: it runs, it is asked, it is blocked."""
    (home / "config.yaml").write_text(written)
    commands = (
        "ls",
        "rm -rf x",
        "rm x",
        "rm -rf /",
        "git push -f",
        "git push -f; rm -rf x",
        'eval "$X"',
        "curl http://evil",
        "echo 'push",
    )
    with Runtime(home=home, safe_mode=True) as runtime:
        for command in commands:
            verdict = evaluate_command(command, CommandContext(cwd=str(Path.cwd())))
            kind = runtime.approvals.rule(Subject(None, "", "terminal", {"command": command}, verdict=verdict)).kind
            told = run("approvals", "test", command, "--json").data["outcome"]
            assert told == {"run": "runs", "ask": "asks", "block": "refused"}[kind], command


def test_where_it_would_run_counts(run: Callable, home: Path) -> None:
    """terminal.J3, P4: --cwd and --isolated change the verdict."""
    levels = [
        run("approvals", "test", "rm -rf *", "--json", *more).data["level"]
        for more in ([], ["--cwd", "/"], ["--cwd=/", "--isolated"])
    ]
    assert levels == ["dangerous", "hardline", "safe"]


def test_several_words_are_one_command(run: Callable, home: Path) -> None:
    """What the shell has taken apart stays apart: a commit message is no command."""
    done = run("approvals", "test", "--json", "git", "commit", "-m", "x; rm -rf /")
    assert (done.code, done.data["level"], done.data["command"]) == (0, "safe", "git commit -m 'x; rm -rf /'")
    assert run("approvals", "test", "--json", "--", "rm", "--force", "-r", "x").data["level"] == "dangerous"


def test_a_command_on_standard_input(program: Callable, home: Path) -> None:
    """`-` reads it, line ends and all; what isn't there, or isn't text, is a usage error."""
    done = program("approvals", "test", "-", "--json", stdin="cat <<'EOF'\nrm -rf /\nEOF\nrm -rf x\n")
    assert (done.code, done.data["command"].endswith("rm -rf x"), len(done.data["findings"])) == (3, True, 1)
    assert program("approvals", "test", "-", stdin="").code == 2
    assert program("approvals", "test", "-", stdin=b"\xff").code == 2
    assert program("approvals", "test").code == 2


def test_the_explanation_plays_no_tricks(terminal: Callable, home: Path) -> None:
    """On a terminal the command is wrapped, and what could command the terminal is shown as an escape."""
    done = terminal("approvals", "test", "echo \x1b[2Ja\u202eb; rm -rf x").end()
    assert "\x1b" not in done.out + done.err
    assert "\\x1b[2Ja\\u202eb" in done.out


def test_only_test_imports_the_judge(home: Path) -> None:
    """Listing and revoking, and every other command, go without it; no plugin is imported by any of them."""
    (home / "plugins" / "loud").mkdir(parents=True)
    (home / "plugins" / "loud" / "__init__.py").write_text("raise SystemExit(9)\n")
    script = (
        "import sys\nfrom mibyan.cli.main import main\ncode = main(sys.argv[1:])\n"
        "print(code, 'mibyan.approvals.judge' in sys.modules, 'pydantic' in sys.modules, 'click' in sys.modules, file=sys.stderr)"
    )
    for words, expected in (
        (["approvals", "list"], "0 False False False"),
        (["approvals", "revoke", "x"], "2 False False False"),
        (["approvals", "test", "ls"], "0 True False False"),
    ):
        done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=True)
        assert done.stderr.splitlines()[-1] == expected, words


def test_list_tells_what_each_entry_means(run: Callable, config: Path) -> None:
    """Entries with their line; what allows nothing says why."""
    told = run("approvals", "list", "--json").data
    found = {
        (one["entry"], one["place"].rpartition(":")[2]): (one["kind"], one["problem"]) for one in told["approvals"]
    }
    never = "never counts: no grant opens what can't be undone"
    assert found == {
        ("recursive_delete", "7"): ("rule", None),
        ("shutdown", "8"): ("rule", never),
        ("recursive_delet", "9"): ("glob", "no rule has this name; did you mean 'recursive_delete'?"),
        ("git push *", "10"): ("glob", None),
        ("ls -l", "11"): ("glob", "isn't needed: the command runs without it"),
        ("recursive_delete", "12"): ("rule", f"{config}:7 says so already"),
        ("*", "13"): ("glob", "never matches: a glob must name each program that would run"),
        ("rm -rf /", "14"): ("glob", never),
        ("bench:deploy", "15"): ("key", None),
    }
    assert told["deny"] == [{"glob": "curl *evil*", "place": f"{config}:4"}]
    assert (told["mode"], told["mode_place"]) == ("manual", None)
    shown = run("approvals", "list").out
    for part in ("recursive delete", "this very command", "curl *evil*", "mode: manual", f"{config}:10"):
        assert part in shown


def test_the_operators_own_rules_count(run: Callable, home: Path) -> None:
    """terminal.J5: approvals.rules are judged by, granted by name, and an example that says otherwise is an error with its line."""
    config = home / "config.yaml"
    rule = "approvals:\n  rules:\n    - {id: release, pattern: '^make release', description: a release, matches: [make release]}\n"
    config.write_text(rule)
    done = run("approvals", "test", "true; make release", "--json")
    assert (done.code, [(one["id"], one["text"]) for one in done.data["findings"]]) == (
        3,
        [("release", "make release")],
    )
    config.write_text(f"{rule}command_allowlist: [release]\n")
    assert run("approvals", "test", "true; make release").code == 0
    (one,) = run("approvals", "list", "--json").data["approvals"]
    assert (one["entry"], one["meaning"], one["problem"]) == ("release", "a release", None)
    config.write_text(rule.replace("[make release]", "[make it]"))
    done = run("approvals", "test", "ls")
    assert (done.code, "config.yaml:3" in done.err) == (2, True)


def test_list_of_nothing(run: Callable, home: Path) -> None:
    """No entries is said, not an empty table."""
    done = run("approvals", "list")
    assert (done.code, "Nothing is allowed for good." in done.err) == (0, True)
    assert run("approvals", "list", "--json").data["approvals"] == []


def test_a_projects_deny_globs_are_told_with_their_file(run: Callable, project: Path, home: Path) -> None:
    """What a project refuses beside the operator's own."""
    (home / "config.yaml").write_text("approvals: {deny: [nc *]}\n")
    file = project / ".mibyan" / "config.yaml"
    file.write_text("approvals:\n  deny:\n    - make deploy*\n")
    told = run("approvals", "list", "--json").data["deny"]
    assert told == [
        {"glob": "nc *", "place": f"{home / 'config.yaml'}:1"},
        {"glob": "make deploy*", "place": f"{file}:3"},
    ]
    assert run("approvals", "test", "make deploy-all", "--json").data["denied_by"]["place"] == f"{file}:3"


def test_revoke_removes_the_entry_and_nothing_else(run: Callable, config: Path) -> None:
    """terminal.P3: each line that says so goes; comments, order and the rest stay."""
    done = run("approvals", "revoke", "recursive_delete", "--json")
    assert (done.code, done.data) == (0, {"revoked": "recursive_delete", "file": str(config)})
    left = CONFIG.splitlines()
    left = [line for line in left if line.strip().split("  #")[0] != "- recursive_delete"]
    assert [line for line in config.read_text().splitlines() if "learned" not in line] == [
        line for line in left if "learned" not in line
    ]
    assert "# learned on Monday" in config.read_text()
    assert run("approvals", "test", "rm -rf x").code == 3


def test_revoke_of_a_glob(run: Callable, config: Path) -> None:
    """An entry is named as it is written, blanks and stars."""
    assert run("approvals", "revoke", "git push *").code == 0
    assert "git push" not in config.read_text()


def test_revoke_of_what_is_not_there(run: Callable, config: Path) -> None:
    """Ends with 2 and the entry that was probably meant; the file stays as it is."""
    done = run("approvals", "revoke", "recursive_delte")
    assert (done.code, "Did you mean 'recursive_delete'?" in done.err) == (2, True)
    assert "There are: recursive_delete, shutdown" in run("approvals", "revoke", "zzzzzz").err
    assert config.read_text() == CONFIG


def test_revoke_works_beside_a_mistake_elsewhere(run: Callable, config: Path) -> None:
    """A grant can be taken back though another key is wrong; a file that can't be read is an error with its place."""
    config.write_text(f"{CONFIG}nonsense: 1\n")
    assert run("approvals", "revoke", "shutdown").code == 0
    assert run("approvals", "list").code == 2
    config.write_text("command_allowlist: [a\n")
    done = run("approvals", "revoke", "a")
    assert (done.code, str(config) in done.err) == (2, True)


def test_completion_offers_what_is_there(config: Path) -> None:
    """`revoke` completes to the entries, with what each means."""
    found = {item.value: item.help for item in items(["approvals", "revoke"], "re")}
    assert found == {"recursive_delet": "nothing that is known", "recursive_delete": "recursive delete"}
    assert [item.value for item in items(["approvals"], "")] == ["list", "revoke", "test"]


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("approvals.mode", "manul", "manual"),
        ("approvals.timeout", "soon", "approvals.timeout"),
        ("approvals.deny", "5", "approvals.deny"),
        ("approvals.moed", "off", "approvals.mode"),
        ("approvals.smart_api_key_env", "sk-x y", "approvals.smart_api_key_env"),
    ],
)
def test_config_set_says_what_is_wrong(run: Callable, home: Path, key: str, value: str, told: str) -> None:
    """A value that can't be is refused, with what could be, and nothing is written."""
    done = run("config", "set", key, value)
    assert (done.code, told in done.err) == (2, True), done.err
    assert not (home / "config.yaml").exists()


def test_config_set_of_approvals(run: Callable, home: Path) -> None:
    """What may be is written, and counts."""
    for key, value, expected in (
        ("approvals.mode", "off", "off"), ("approvals.timeout", "5", 5), ("approvals.deny", '["rm *", "nc *"]', ["rm *", "nc *"]),
    ):  # fmt: skip
        assert run("config", "set", key, value).code == 0
        assert json.loads(run("config", "get", key, "--json").out) == expected
    assert run("approvals", "test", "rm x").code == 3
