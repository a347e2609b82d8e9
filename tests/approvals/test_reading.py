"""How a command's words are read: expansion, braces, parameters, options, paths, comments (terminal.J3)."""

from __future__ import annotations

import pytest

from mibyan.approvals.shell import braces
from mibyan.approvals.shell.escapes import unescaped
from mibyan.approvals.shell.options import Options, asks_for_help
from mibyan.approvals.shell.parser import Parser, UnparsableError
from mibyan.approvals.shell.scope import Scope
from mibyan.approvals.shell.values import HOME, NO_ORIGINS, UNKNOWN, Arg, Data
from mibyan.approvals.shell.words import Words


def fields(code: str, **variables) -> list[str]:
    """The words that a command's words become, with `<>` for what isn't known."""
    scope = Scope("/w")
    for name, value in variables.items():
        scope.set(name, value)
    words = Words(scope, lambda _node: Data("out\n"))
    command = Parser().parse(code)["Stmts"][0]["Cmd"]
    return [
        arg.text.replace(UNKNOWN, "<>").replace(HOME, "~") for word in command["Args"] for arg in words.fields(word)
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a 'b c' \"d e\"", ["a", "b c", "d e"]), (r"a\ b \c", ["a b", "c"]), ("r''m r\"\"m", ["rm", "rm"]), (r"$'\x72\155' $'a\'b'", ["rm", "a'b"]), ("'' a", ["", "a"]),
        ("a $x b", ["a", "<>", "b"]), ('"$x"', ["<>"]), ("~ ~/a ~bob '~' \"~\"", ["~", "~/a", "/home/bob", "~", "~"]), ('$(x) "$(x)" `x`', ["out", "out", "out"]),
        ("a$IFS-b", ["a", "-b"]), ("a${IFS}b", ["a", "b"]), ("{a,b}{1,2}", ["a1", "a2", "b1", "b2"]), ("{1..3}", ["1", "2", "3"]), ("'{a,b}' {a} {a,", ["{a,b}", "{a}", "{a,"]),
        ("$((1)) $((1+1))", ["1", "<>"]), ("${x:-a} ${x-b}", ["a", "b"]), ("<(x)", ["/dev/fd/63"]), ("a\\\nb", ["ab"]),
    ],
)  # fmt: skip
def test_J3_words(code, expected):
    """terminal.J3: words that are known are expanded."""
    assert fields(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("$v", ["a", "b"]), ('"$v"', ["a b"]), ("${v#a}", ["b"]), ("${v%b}", ["a"]), ("${v/a/x}", ["x", "b"]), ("${v^^}", ["A", "B"]), ("${v:0:1}", ["a"]), ("${v: -1}", ["b"]), ("${#v}", ["3"]),
        ("${v:+c}", ["c"]), ("${v[0]}", ["a", "b"]), ('"${l[@]}"', ["p q", "r"]), ('"${l[*]}"', ["p q r"]), ("${l[1]}", ["r"]), ("${!n}", ["a", "b"]), ("${u@Q}", ["<>"]), ("${v//[ab]/x}", ["<>"]),
    ],
)  # fmt: skip
def test_J3_parameters(code, expected):
    """terminal.J3: variables that the script sets are known."""
    assert fields(code, v="a b", l=["p q", "r"], n="v") == expected


def test_J3_fields_are_split_at_the_scripts_own_separators():
    """terminal.J3: by `IFS` as the script has set it."""
    assert fields("$v", v="rm,-rf,/", IFS=",") == ["rm", "-rf", "/"]


def test_J4_braces_have_a_limit():
    """terminal.J4: what would become too many words isn't known, and unclosed braces cost no time."""
    assert braces.expand([("{a,b}" * 12, False)]) == [[(UNKNOWN, False)]]
    assert len(braces.expand([("{a," * 20_000, False)])) == 1
    assert braces.expand([("{1..100000}", False)]) == [[(UNKNOWN, False)]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"\x41\101\u0042\n", "AAB\n"),
        (r"\q", r"\q"),
        (r"a\0b", "ab"),
        ("plain", "plain"),
        (r"\cA", "\x01"),
        (r"\U00110000", ""),
    ],
)
def test_J3_escapes(text, expected):
    """terminal.J3: as `$'…'` and `printf` read them."""
    assert unescaped(text) == expected


def args(*texts: str) -> list[Arg]:
    return [Arg(text) for text in texts]


def test_options_are_read_as_getopt_does():
    """Clusters, values glued and apart, abbreviations, `--`."""
    options = Options(args("-rfC", "dir", "--out=x", "--sig", "9", "op", "-v", "--", "-z"), ("C", "out", "signal"))
    assert [options.has(name) for name in "rfvz"] == [True, True, True, False]
    assert options.value("C") == "dir"
    assert options.value("out") == "x"
    assert options.value("signal") == "9"
    assert [arg.text for arg in options.operands] == ["op", "-z"]
    assert [arg.text for arg in Options(args("-a", "op", "-b"), mixed=False).operands] == ["op", "-b"]
    assert Options(args("-delete", "x"), single=True).has("delete")


def test_J6_what_only_asks_for_help():
    """terminal.J6: `--help` before an operand, or anywhere for programs with commands."""
    assert asks_for_help(args("-x", "--help"), anywhere=False)
    assert not asks_for_help(args("x", "--help"), anywhere=False)
    assert asks_for_help(args("x", "--help"), anywhere=True)
    assert not asks_for_help(args("--", "--help"), anywhere=True)


def test_J3_directories_are_tracked():
    """terminal.J3: literal `cd`, and both places where it may have been taken or not."""
    scope = Scope("/a/b")
    assert scope.path("../x/./y") == "/a/x/y"
    scope.change_directory("/")
    branch = scope.copy()
    branch.change_directory("tmp")
    scope.settle(branch)
    assert scope.cwd is None
    assert scope.paths("x") == {"x", "/x", "/tmp/x"}
    scope.change_directory("..")
    assert scope.elsewhere == {"/"}
    scope.change_directory(UNKNOWN)
    assert scope.paths("x") == {"x"}


def test_J3_what_a_branch_sets_isnt_known():
    """terminal.J3: nor is a function that it defines."""
    scope = Scope()
    scope.set("a", "1")
    branch = scope.copy()
    branch.set("a", "2", frozenset(("network",)))
    branch.functions["f"] = {}
    scope.settle(branch)
    assert scope.get("a") == UNKNOWN
    assert scope.origins_of("a") == {"network"}
    assert scope.doubtful == {"f"}


def test_J3_what_was_written_to_a_file_is_kept():
    """terminal.J3: also what another branch wrote."""
    scope = Scope("/")
    scope.put("/x", Data("a"))
    scope.put("/x", Data("b"), more=True)
    assert scope.files["/x"].text == "ab"
    scope.put("/x", Data(None, frozenset(("network",))))
    assert (scope.files["/x"].text, scope.files["/x"].origins) == (None, {"network"})
    assert scope.origins_of("nothing") == NO_ORIGINS


@pytest.mark.parametrize("code", ["ls # a \\\nreboot", "(ls # a \\\nreboot)", "# \\\nreboot"])
def test_J3_a_backslash_continues_no_comment(code):
    """terminal.J3: the parser's reading is mended; offsets stay."""
    text = str(Parser().parse(code))
    assert "'reboot'" in text
    assert f"'Offset': {code.index('reboot')}" in text


def test_J4_a_parser_has_its_limits():
    """terminal.J4: time, length and number of pieces."""
    with pytest.raises(UnparsableError, match="too long"):
        Parser().parse("x" * 1_000_001)
    with pytest.raises(UnparsableError, match="can't be read within"):
        Parser(patience=-1).parse("(" * 100_000)
    parser = Parser()
    for _ in range(64):
        parser._left and parser.parse(":") if parser._left > 62 else setattr(parser, "_left", 0)
    with pytest.raises(UnparsableError):
        parser.parse(":")
