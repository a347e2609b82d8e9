"""YAML as data with lines: what is read, and the sentence for everything that isn't."""

from __future__ import annotations

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mibyan.config.problems import InvalidConfigError
from mibyan.config.yamlfile import MAX_BYTES, parse_document, read_document
from mibyan.errors import ConfigError


@pytest.fixture(params=["libyaml", "python"])
def parser(request, monkeypatch):
    """Both of PyYAML's parsers: the one in C may be missing."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    return request.param


def read(text: str) -> dict:
    return parse_document(text, "config.yaml").data


def problems(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "config.yaml")
    return [str(problem) for problem in caught.value.problems]


LAUGHS = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", {}),
        ("# only a comment\n", {}),
        ("---\n", {}),
        ("null", {}),
        ("\ufeffa: 1\r\nb: x\r\n", {"a": 1, "b": "x"}),
        ("a: [yes, No, ON, off, true, FALSE]", {"a": [True, False, True, False, True, False]}),
        ('a: ["yes", "off", "1", "null", ""]', {"a": ["yes", "off", "1", "null", ""]}),
        ("a: [null, ~, Null, ]", {"a": [None, None, None]}),
        ("a: [0, -1, +2, 1_000, 0x1f, 0o17]", {"a": [0, -1, 2, 1000, 31, 15]}),
        ("a: [1.5, .5, 2., 1e3, -1.5E-3, 1_0.5]", {"a": [1.5, 0.5, 2.0, 1000.0, -0.0015, 10.5]}),
        (
            "a: [007, 12:30:45, 2024-01-01, 1.2.3, 0b1, y, n]",
            {"a": ["007", "12:30:45", "2024-01-01", "1.2.3", "0b1", "y", "n"]},
        ),
        ("on: 1\n123: 2\nnull: 3\n'a b': 4", {"on": 1, "123": 2, "null": 3, "a b": 4}),
        (
            "a: !!str 5\nb: !!int '7'\nc: ! x\nd: !!float 1\ne: !!map {}\nf: !!seq []",
            {"a": "5", "b": 7, "c": "x", "d": 1, "e": {}, "f": []},
        ),
        ("a: |\n  x\n  y\nb: >\n  x\n  y\n", {"a": "x\ny\n", "b": "x y\n"}),
        ("a: &x {k: 1}\nb: *x\n", {"a": {"k": 1}, "b": {"k": 1}}),
        ("&k a: 1\nb: *k\n", {"a": 1, "b": "a"}),
        ("a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n", {"a": {"k": 1, "l": 2}, "b": {"k": 1, "l": 3}}),
        ("b:\n  <<: [{k: 1}, {k: 2, l: 2}]\n", {"b": {"k": 1, "l": 2}}),
        ("'<<': 1", {"<<": 1}),
        ("{a: 1, b}", {"a": 1, "b": None}),
    ],
)
def test_data(text, data, parser):
    """Scalars are YAML 1.2's plus the booleans people write; keys are text; anchors and merges work."""
    found = read(text)
    assert found == data
    assert json.dumps(found) == json.dumps(data)


def test_lines(parser):
    """Every key and item knows its line; what stands for something else is where it is used."""
    document = parse_document("# c\na:\n  b: 1\n\n  'x.y': [1,\n    {z: 2}]\nk: &k {l: 1}\nm: *k\n", "f")
    lines = {("a",): 2, ("a", "b"): 3, ("a", "x.y"): 5, ("a", "x.y", 0): 5, ("a", "x.y", 1, "z"): 6, ("m", "l"): 8}
    assert {path: document.line(path) for path in lines} == lines
    assert document.where(("a", "nope", "nope")) == "f:2"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- a", "config.yaml:1: expected a mapping of keys to values, got a list"),
        ("\n\njust text", "config.yaml:3: expected a mapping of keys to values, got 'just text'"),
        ("5", "config.yaml:1: expected a mapping of keys to values, got 5"),
        ("a:\n\t- 1\n", "config.yaml:2: a tab where YAML wants spaces"),
        ("\ta: 1", "config.yaml:1: a tab where YAML wants spaces"),
        ("a: 1\nb: [1\nc: 2\n", "config.yaml:2: a list in brackets that isn't closed, or lacks a comma"),
        ("a: 1\nb: 'x\nc: 2\n", "config.yaml:2: a quote that isn't closed"),
        ("a: b: c", "config.yaml:1: a ': ' that can't be there; put quotes around text that has one, and check the indentation"),
        ("a: @x", "config.yaml:1: text that begins with @ must be in quotes"),
        ("a: `x", "config.yaml:1: text that begins with ` must be in quotes"),
        ("x: 1\na: \x07", "config.yaml:2: a control character (U+0007)"),
        ("a: 1\n---\nb: 2", "config.yaml:2: there is a second document (after a line '---'); one is allowed"),
        ("? [a]\n: 1\n", "config.yaml:1: a key must be text; put quotes around it if it has brackets or braces"),
        ("{{ a }}: 1", "config.yaml:1: a key must be text; put quotes around it if it has brackets or braces"),
        ("a: *y", "config.yaml:1: key 'a': the alias *y stands inside its own anchor or has none"),
        ("a: &x [*x]", "config.yaml:1: key 'a[0]': the alias *x stands inside its own anchor or has none"),
        ("a: 1\nb:\n  <<: 5", "config.yaml:3: key 'b': '<<' takes a mapping, got 5"),
        ("a: .nan", "config.yaml:1: key 'a': '.nan' isn't a finite number; put quotes around it if it is text"),
        ("a: -.inf", "config.yaml:1: key 'a': '-.inf' isn't a finite number; put quotes around it if it is text"),
        ("a: 1e999", "config.yaml:1: key 'a': '1e999' isn't a finite number; put quotes around it if it is text"),
        ("a: " + "9" * 5000, "config.yaml:1: key 'a': a number of 5,000 digits; put quotes around it if it is text"),
        ("a: !!python/object/apply:os.system [ls]", "config.yaml:1: key 'a': the tag tag:yaml.org,2002:python/object/apply:os.system isn't known here; leave it out"),
        ("a: !!binary aGk=", "config.yaml:1: key 'a': the tag tag:yaml.org,2002:binary isn't known here; leave it out"),
        ("a: !!int x", "config.yaml:1: key 'a': 'x' isn't what its tag tag:yaml.org,2002:int says"),
        ("a: " + "[" * 70 + "]" * 70, "config.yaml:1: key 'a[0][0]': more than 64 levels inside one another"),
        (LAUGHS, "config.yaml:6: more than 200,000 values (do anchors repeat one another?)"),
    ],
)  # fmt: skip
def test_sentences(text, expected, parser):
    """What isn't a configuration is a sentence with its line."""
    assert problems(text) == [expected]


def test_every_duplicate(parser):
    """A key that is written twice is an error at every place but the first, also with the same value."""
    assert problems("a: 1\nb:\n  c: 1\n  'c': 1\na: 2\n") == [
        "config.yaml:4: key 'b.c': written twice (first in line 3); only one can count",
        "config.yaml:5: key 'a': written twice (first in line 1); only one can count",
    ]


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "- " * 100_000, "a: {" * 50_000, "&a " * 1000, "a:\n" + " " * 100_000 + "b"]
)
def test_never_runs_away(text):
    """Deep and odd texts are answered, and never with anything but a ConfigError."""
    with pytest.raises(ConfigError):
        read(text + "\n: x : [")


@given(text=st.text() | st.text(alphabet="ab:-[]{}&*!|>'\"#%@,? \n\t<0.~"))
def test_total(text):
    """Any text is a mapping of JSON types, or a ConfigError with problems."""
    try:
        data = read(text)
    except ConfigError:
        assert problems(text)
    else:
        json.dumps(data, allow_nan=False)


@given(data=st.dictionaries(st.text(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=10)))  # fmt: skip
def test_json_is_read_as_it_is(data):
    """JSON is YAML: what any JSON library writes with ASCII only reads back the same."""
    text = json.dumps(data)
    # YAML has no pairs of surrogates.
    if "\\ud" not in text:
        assert json.dumps(read(text)) == text


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "expected"),
        [
            (b"a: caf\xe9\n", "config.yaml:1: it isn't UTF-8 text"),
            (b"\x7fELF\x02\x01\x01\x00", "config.yaml:1: a control character"),
            (b"a: 1\n\xff\xfe", "config.yaml:2: it isn't UTF-8 text"),
            ("a: 1".encode("utf-16"), "config.yaml:1: it isn't UTF-8 text"),
            (b"#" * (MAX_BYTES + 1), "config.yaml: it is larger than 4,000,000 bytes"),
        ],
        ids=["latin-1", "binary", "later", "utf-16", "huge"],
    )
    def test_content(self, content, expected, tmp_path):
        """Bytes that aren't a configuration are one problem with the line."""
        (tmp_path / "config.yaml").write_bytes(content)
        with pytest.raises(InvalidConfigError, match=expected) as caught:
            read_document(tmp_path / "config.yaml", "config.yaml")
        assert len(caught.value.problems) == 1

    def test_tricks_are_visible(self):
        """Escape codes and bidirectional marks in a cloned file reach no terminal."""
        (message,) = problems('"\u202e\u200bevil": &a 1\n"\u202e\u200bevil": \'\x9b2J\'')
        assert not set(message) & set("\u202e\u200b\x9b\x1b")
