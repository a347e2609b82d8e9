"""Validation: unknown keys, wrong types and numbers out of range are sentences with line, key and suggestion."""

from __future__ import annotations

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mibyan.config.schema import json_schema
from mibyan.config.section import all_keys
from mibyan.config.settings import Settings, settings_from_data
from mibyan.config.validation import check
from mibyan.config.yamlfile import Document, parse_document


def checked(text: str) -> dict:
    data, problems = check(parse_document(text, "config.yaml"))
    assert problems == []
    return settings_from_data(data).to_data()


def problems(text: str) -> list[str]:
    data, found = check(parse_document(text, "config.yaml"))
    assert data == {}
    return [str(problem).removeprefix("config.yaml:") for problem in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plugns: {}", "1: key 'plugns': there is no such key (did you mean 'plugins'?)"),
        ("dispatch:\n  timeot: 3", "2: key 'dispatch.timeot': there is no such key (did you mean 'dispatch.timeout'?)"),
        ("\n\nsearxng_url: x", "3: key 'searxng_url': there is no such key (did you mean 'web.searxng_url'?)"),
        ("timeout: 3", "1: key 'timeout': there is no such key"),
        ("zzz: 3", "1: key 'zzz': there is no such key"),
        ("plugins:\n  entries:\n    a.b: {isolated: x}", "3: key 'plugins.entries.'a.b'.isolated': there is no such key (did you mean 'plugins.entries.'a.b'.isolation'?)"),
        ("mcp_servers: {s: {tools: {exlude: []}}}", "1: key 'mcp_servers.s.tools.exlude': there is no such key (did you mean 'mcp_servers.s.tools.exclude'?)"),
        ("hooks: {pre_tool_call: [{comand: x}]}", "1: key 'hooks.pre_tool_call[0].comand': there is no such key (did you mean 'hooks.pre_tool_call[0].command'?)"),
        ("hooks: {on_sesion_start: []}", "1: key 'hooks.on_sesion_start': expected one of pre_tool_call, post_tool_call, transform_tool_result, transform_terminal_output, on_session_start, on_session_end, pre_approval_request, post_approval_response (did you mean 'on_session_start'?)"),
        ("toolsets: {custom: {x: {tool: [b]}}}", "1: key 'toolsets.custom.x.tool': there is no such key (did you mean 'toolsets.custom.x.tools'?)"),
        ("terminal: {ssh: {Host: x}}", "1: key 'terminal.ssh.Host': there is no such key (did you mean 'terminal.ssh.host'?)"),
    ],
)  # fmt: skip
def test_unknown_keys(text, expected):
    """api, Files: unknown keys are errors at every level, with line and suggestion."""
    assert problems(text) == [expected]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plugins: {disabled: foo}", "plugins.disabled': expected a list, got 'foo' (did you mean '[foo]'?)"),
        ("plugins: {disabled: }", "plugins.disabled': expected a list, got nothing; an empty list is []"),
        ("plugins: {disabled: {a: 1}}", "plugins.disabled': expected a list, got a mapping"),
        ("plugins: {disabled: [1]}", "plugins.disabled[0]': expected text, got 1; put quotes around it"),
        ("plugins: {disabled: [on]}", "plugins.disabled[0]': expected text, got true; put quotes around it"),
        ("plugins: {disabled: ['']}", "plugins.disabled[0]': expected text that isn't empty, got ''"),
        ("plugins: {disabled: [[a]]}", "plugins.disabled[0]': expected text, got a list"),
        ("plugins: []", "plugins': expected a mapping, got a list"),
        ("plugins: {entries: {x: 5}}", "plugins.entries.x': expected a mapping, got 5"),
        ("plugins: {autoload: 1}", "plugins.autoload': expected true or false, got 1"),
        ("plugins: {autoload: 'true'}", "plugins.autoload': expected true or false, got 'true' as text; leave the quotes out"),
        ("dispatch: {timeout: -1}", "dispatch.timeout': expected a number greater than 0, got -1"),
        ("dispatch: {timeout: 0}", "dispatch.timeout': expected a number greater than 0, got 0"),
        ("dispatch: {timeout: '5'}", "dispatch.timeout': expected a number, got '5' as text; leave the quotes out"),
        ("dispatch: {timeout: 5s}", "dispatch.timeout': expected a number, got '5s'"),
        ("dispatch: {timeout: yes}", "dispatch.timeout': expected a number, got true"),
        ("dispatch: {timeout: null}", "dispatch.timeout': expected a number, got nothing"),
        ("dispatch: {timeout: 1e300}", "dispatch.timeout': expected a number of at most 31,536,000, got 1e+300"),
        ("dispatch: {max_workers: 1.0}", "dispatch.max_workers': expected a whole number, got 1.0"),
        ("dispatch: {max_workers: on}", "dispatch.max_workers': expected a whole number, got true"),
        ("dispatch: {max_workers: 5000}", "dispatch.max_workers': expected a number of at most 1,024, got 5000"),
        ("dispatch: {max_result_chars: 10000000000000000000000000}", "dispatch.max_result_chars': expected a number of at most 1,000,000,000, got 10000000000000000000000000"),
        ("availability: {ttl: -0.5}", "availability.ttl': expected a number of at least 0, got -0.5"),
        ("tools: {search: {threshold_pct: 101}}", "tools.search.threshold_pct': expected a number of at most 100, got 101"),
        ("tools: {search: {enabled: never}}", "tools.search.enabled': expected auto or true or false, got 'never'"),
        ("namespace: {collisions: last-wins}", "namespace.collisions': expected one of reject, last_wins, got 'last-wins' (did you mean 'last_wins'?)"),
        ("approvals: {mode: on}", "approvals.mode': expected one of manual, smart, off, got true"),
        ("toolsets: {enabled: files}", "toolsets.enabled': expected a list, got 'files' (did you mean '[files]'?)"),
        ("platform_toolsets: {cli: files}", "platform_toolsets.cli': expected a list, got 'files' (did you mean '[files]'?)"),
        ("hooks: {pre_tool_call: {command: x}}", "hooks.pre_tool_call': expected a list, got a mapping"),
        ("terminal: {ssh: {port: 70000}}", "terminal.ssh.port': expected a number of at most 65,535, got 70000"),
        ("mcp_servers: {s: {args: [3.10]}}", "mcp_servers.s.args[0]': expected text, got 3.1; put quotes around it"),
        ("mcp_servers: {s: {env: {A: [hunter2]}}}", "mcp_servers.s.env.A': expected text, got a list"),
        ("mcp_servers: {s: {sampling: on}}", "mcp_servers.s.sampling': expected a mapping, got true"),
        ("command_allowlist: ls", "command_allowlist': expected a list, got 'ls' (did you mean '[ls]'?)"),
        ("agent: {model: 5}", "agent.model': expected text, got 5; put quotes around it"),
    ],
)  # fmt: skip
def test_wrong_values(text, expected):
    """What isn't of a key's kind, or out of its range, is a sentence that says what would be right."""
    assert problems(text) == [f"1: key '{expected}"]


@pytest.mark.parametrize("value", ["'yes'", "'true'", "1", "'on'", "0", "foo", "{a: 1}", "1.0"])
def test_override_optin_is_exact(value):
    """registry.R5: a YAML boolean or a list of names, anything else is a configuration error."""
    (found,) = problems(f"plugins:\n  entries:\n    x:\n      allow_tool_override: {value}")
    assert found.startswith("4: key 'plugins.entries.x.allow_tool_override': expected true or false or a list, got ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("true", True), ("off", False), ("yes", True), ("[]", []), ("[a, 'b-c']", ["a", "b-c"])],
)
def test_override_optin(value, expected):
    """registry.R5: booleans, bare words of YAML 1.1 among them, and lists of names are taken as they are."""
    entry = checked(f"plugins: {{entries: {{x: {{allow_tool_override: {value}, source: project}}}}}}")
    assert entry["plugins"]["entries"]["x"]["allow_tool_override"] == expected
    assert type(entry["plugins"]["entries"]["x"]["allow_tool_override"]) is type(expected)


@pytest.mark.parametrize("quote", ["", "'", '"'])
@pytest.mark.parametrize(
    ("key", "on", "off"),
    [
        (("dispatch", "validate"), True, False),
        (("tools", "search", "enabled"), True, False),
        (("plugins", "autoload"), True, False),
        (("plugins", "bridges", "llm"), True, False),
        (("redaction", "live"), True, False),
        (("web", "allow_private"), True, False),
        (("approvals", "mode"), None, "off"),
    ],
)
def test_on_and_off(key, on, off, quote):
    """api, Files: on/off are accepted bare (YAML 1.1 booleans) and quoted."""
    for word, expected in (("on", on), ("off", off)):
        if expected is None:
            continue
        text = "".join(f"{'  ' * depth}{part}:\n" for depth, part in enumerate(key))[:-1] + f" {quote}{word}{quote}"
        value = checked(text)
        for part in key:
            value = value[part]
        assert value == expected
        assert type(value) is type(expected)


@pytest.mark.parametrize("section", ["dispatch", "plugins", "terminal", "agent", "hooks", "mcp_servers"])
@pytest.mark.parametrize("nothing", ["", " ~", " {}", " # all of it commented out"])
def test_empty_sections(section, nothing):
    """A section with nothing below it has its defaults."""
    if section in {"hooks", "mcp_servers"} and nothing != " {}":
        assert problems(f"{section}:{nothing}") == [f"1: key '{section}': expected a mapping, got nothing"]
    else:
        assert checked(f"{section}:{nothing}") == Settings().to_data()


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("dispatch: {timeout: 5}", ("dispatch", "timeout"), 5),
        ("dispatch: {timeout: 0.5}", ("dispatch", "timeout"), 0.5),
        ("mcp_servers: {s: {command: c, args: [-p, 8080], env: {PORT: 1}}}", ("mcp_servers", "s", "args"), ["-p", "8080"]),
        ("mcp_servers: {s: {url: u, sampling: off}}", ("mcp_servers", "s", "sampling"), None),
        ("mcp_servers: {s: {url: u, sampling: {}}}", ("mcp_servers", "s", "sampling", "max_requests"), 10),
        ("terminal: {ssh: {options: {StrictHostKeyChecking: no, Port: 2}}}", ("terminal", "ssh", "options"), {"StrictHostKeyChecking": "no", "Port": "2"}),
        ("terminal: {docker: {user: 1000, memory: 512m, cpus: 1.5}}", ("terminal", "docker", "user"), "1000"),
        ("plugins: {entries: {123: {config: {on: [1, {a: ~}]}}}}", ("plugins", "entries", "123", "config"), {"on": [1, {"a": None}]}),
        ("plugins: {entries: {x: }}", ("plugins", "entries", "x", "allow_tool_override"), False),
    ],
)  # fmt: skip
def test_values(text, path, expected):
    """Values are taken as people mean them, and nothing is lost."""
    value = checked(text)
    for part in path:
        value = value[part]
    assert value == expected


def test_every_problem_in_order():
    """All problems of a file are told at once, in its order."""
    found = problems("plugins: {disabled: x}\nnope: 1\ndispatch:\n  timeout: x\n  max_workers: 0\nagent: 5\n")
    assert [line.split(":")[0] for line in found] == ["1", "2", "4", "5", "6"]


@pytest.mark.parametrize(
    "text",
    ["agent: {api_key_env: sk-hunter2}", "mcp_servers: {s: {headers: {A: [hunter2]}}}", "plugins: {entries: {x: {config: hunter2}}}", "mcp_servers: {s: {env: hunter2}}"],
)  # fmt: skip
def test_secrets_are_not_shown(text):
    """A message doesn't repeat a value where secrets are kept, or were pasted by mistake."""
    assert "hunter2" not in "".join(problems(text))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(path=st.sampled_from(sorted(all_keys(Settings))), value=JSON)
def test_total(path, value):
    """Any JSON value at any key gives settings or problems at or below that key, never an exception."""
    data = value
    for part in reversed(path):
        data = {part: data}
    found, told = check(Document("f", data))
    if told:
        assert found == {}
        assert all(problem.key.startswith(path[0]) for problem in told)
    else:
        assert settings_from_data(settings_from_data(found).to_data()) == settings_from_data(found)


class TestSchema:
    def test_valid(self):
        """`config schema` is a JSON Schema that the defaults fit, and that knows every key's sentence."""
        schema = json_schema()
        assert jsonschema_rs.Draft202012Validator(schema).is_valid(Settings().to_data())
        assert json_schema() == schema
        parts = [schema, *schema["$defs"].values()]
        keys = {name: key for part in parts for name, key in part["properties"].items()}
        # pydantic leaves out what the section that is referred to says in the same words.
        assert [name for name, key in keys.items() if not key.keys() & {"description", "$ref"}] == []
        assert all(part["description"] for part in schema["$defs"].values())
        assert keys["timeout"]["default"] in {180, 300, None}

    @pytest.mark.parametrize(
        "text",
        ["plugns: {}", "dispatch: {timeout: 0}", "dispatch: {timeout: '5'}", "approvals: {mode: x}", "plugins: {disabled: x}", "agent: {api_key_env: a-b}"],
    )  # fmt: skip
    def test_refuses_what_loading_refuses(self, text):
        """What the schema refuses, loading refuses too: editors and Mibyan agree."""
        assert not jsonschema_rs.Draft202012Validator(json_schema()).is_valid(yaml.safe_load(text))
        assert problems(text)
