"""Credentials that stand in config.yaml as they are: what counts, what doesn't, and in which spellings (dispatch.C9)."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mibyan import Block, Runtime, ToolCall
from mibyan.config.settings import Settings
from mibyan.dispatch.credentials import configured, looks_random, names_credential
from mibyan.dispatch.redaction import MARK, Redactor, may_hold_credentials

from .conftest import FACES, make_runtime

SECRET = "correct horse/battery&staple"
KEY = "Zk93hsQ0pLw7TtVbn2Xe"
BASIC = base64.b64encode(f"user:{SECRET}".encode()).decode()


def server(**keys: Any) -> dict[str, Any]:
    return {"mcp_servers": {"s": {"command": "serve", **keys}}}


def remote(**keys: Any) -> dict[str, Any]:
    return {"mcp_servers": {"s": {"url": "https://example.org/mcp", **keys}}}


def of_plugin(**config: Any) -> dict[str, Any]:
    return {"plugins": {"entries": {"p": {"config": config}}}}


#: A configuration, and what of it is secret.
SECRETS: dict[str, tuple[dict[str, Any], str]] = {
    "a server's variable": (server(env={"API_KEY": SECRET}), SECRET),
    "by any name, if it looks like a key": (server(env={"THING": KEY}), KEY),
    "a number": (server(env={"AUTH_TOKEN": 1234567890123}), "1234567890123"),
    "a header": (remote(headers={"X-Api-Key": SECRET}), SECRET),
    "a bearer": (remote(headers={"Authorization": f"Bearer {KEY}"}), KEY),
    "a bearer as a whole": (remote(headers={"authorization": f"Bearer {KEY}"}), f"Bearer {KEY}"),
    "a scheme of somebody's own": (remote(headers={"Authorization": f"AcmeKey {SECRET}"}), SECRET),
    "no scheme": (remote(headers={"Authorization": KEY}), KEY),
    "basic": (remote(headers={"Authorization": f"Basic {BASIC}"}), BASIC),
    "basic, its password": (remote(headers={"Authorization": f"Basic {BASIC}"}), SECRET),
    "digest": (remote(headers={"Authorization": f'Digest user="u", response="{SECRET}"'}), SECRET),
    "a proxy's": (remote(headers={"Proxy-Authorization": f"Bearer {KEY}"}), KEY),
    "a cookie": (remote(headers={"Cookie": f"theme=dark; session={SECRET}"}), SECRET),
    "a URL's password": ({"mcp_servers": {"s": {"url": "https://u:p4ssw0rd%2F1@example.org/"}}}, "p4ssw0rd/1"),
    "a URL's user": ({"agent": {"base_url": f"https://{KEY}@example.org/v1"}}, KEY),
    "a URL's query": ({"mcp_servers": {"s": {"url": "https://example.org/?a=1&api_key=horse%20battery"}}}, "horse battery"),
    "a query of any name": ({"web": {"searxng_url": f"https://example.org/?q={KEY}"}}, KEY),
    "a database's URL": (server(env={"DATABASE_URL": "postgres://u:hunter2hunter2@db/x"}), "hunter2hunter2"),
    "an option": (server(args=["--api-key", SECRET]), SECRET),
    "an option with =": (server(args=[f"--token={KEY}"]), KEY),
    "an option that sets a variable": (server(args=["run", "-e", f"GITHUB_TOKEN={KEY}", "image"]), KEY),
    "an option that sets a header": (server(args=["--header", f"Authorization: Bearer {KEY}"]), KEY),
    "a shell hook's header": (
        {"hooks": {"pre_tool_call": [{"command": f'curl -H "Authorization: Bearer {KEY}" https://example.org'}]}}, KEY),
    "a shell hook's variable": ({"hooks": {"pre_tool_call": [{"command": f"API_TOKEN='{SECRET}' check"}]}}, SECRET),
    "a shell hook's option": ({"hooks": {"pre_tool_call": [{"command": f"check --password '{SECRET}' -v"}]}}, SECRET),
    "a plugin's setting": (of_plugin(apiKey=SECRET), SECRET),
    "a plugin's setting further down": (of_plugin(accounts=[{"name": "x", "password": SECRET}]), SECRET),
    "one of several": (of_plugin(tokens={"work": SECRET}), SECRET),
    "one of a list": (of_plugin(api_keys=["x", SECRET]), SECRET),
    "beside a variable": (server(env={"API_KEY": "${PREFIX}" + KEY}), KEY),
}  # fmt: skip

#: Settings of which nothing is secret, whatever they are near to.
HARMLESS: dict[str, dict[str, Any]] = {
    "variables": server(env={
        "PATH": "/usr/local/bin:/usr/bin", "HOME": "/home/somebody", "LANG": "en_US.UTF-8", "DEBUG": "production",
        "NODE_ENV": "production", "LOG_LEVEL": "information", "TOKENIZER": "cl100k_base", "MAX_TOKENS": "1234567890",
        "KEYBOARD": "international", "TOKEN_URL": "https://example.org/token", "SECRET_NAME": "my-database",
        "SSH_AUTH_SOCK": "/run/agent.sock", "AUTH_MODE": "interactive", "GOOGLE_CREDENTIALS": "~/keys/google.json",
        "API_KEY_FILE": "/run/secrets/key", "AWS_REGION": "eu-central-1", "AUTHOR": "Somebody Else",
        "TOKEN": "disabled", "PASSWORD": "password", "CLIENT_ID": "1b4e28ba-2fa1-11d2-883f-b9a761bde3fb",
        "API_KEY": "short", "PUBLIC_KEY": "something long enough",
    }),
    "headers": remote(headers={
        "Content-Type": "application/json", "Accept": "text/event-stream", "User-Agent": "mibyan/1.0 (x86_64)",
        "MCP-Protocol-Version": "2025-06-18", "X-Tenant": "production", "X-Auth-User": "somebody", "X-Key-Id": "12345678",
    }),
    "arguments": server(args=["-y", "@modelcontextprotocol/server-filesystem", "--root=/home/somebody", "--max-tokens",
                              "100000000", "--token-file", "/run/secrets/token", "--key", "--verbose"]),
    "addresses": {"agent": {"base_url": "https://api.example.org/v1?api-version=2024-10-21&page=somewhere"},
                  "web": {"searxng_url": "https://somebody@search.example.org/"}},
    "a plugin's": of_plugin(keyboard="international", token_count="100000000", author="Somebody Else",
                            unit="fahrenheit", tokens={"type": "sentencepiece"}),
    "descriptions": {"toolsets": {"custom": {"keys": {"tools": ["something"], "description": "the key: everything"}}}},
    "commands": {"hooks": {"pre_tool_call": [{"command": "./check --format=json --strict LANG=en_US.UTF-8"}]},
                 "command_allowlist": ["export TOKEN=everything"]},
}  # fmt: skip


def values(home: Path, config: dict[str, Any]) -> Any:
    """The credentials of a configuration that was read and checked."""
    with Runtime(home=home, config=config) as rt:
        data = rt.config.to_data()
    found = configured(data)
    # The quick look must not miss what the thorough one finds.
    assert may_hold_credentials(data) or not found.values
    return {value for value in found.values if len(value) >= 8}


@pytest.mark.parametrize("where", SECRETS)
def test_dispatch_C9_credentials_in_the_configuration(tmp_path: Path, where: str) -> None:
    """dispatch.C9: what config.yaml holds as a credential, under whatever key, is taken out of a result."""
    config, secret = SECRETS[where]
    assert secret in values(tmp_path / "read", config)
    with make_runtime(tmp_path, **config) as rt:
        rt.registry.register("x", "t", {"description": ""}, lambda args: f"<{secret}>")
        assert rt.call("x") == f"<{MARK}>"


@pytest.mark.parametrize("what", HARMLESS)
def test_dispatch_C9_what_is_harmless_stays(tmp_path: Path, what: str) -> None:
    """Other settings are no secrets: `production` isn't blackened in every text because a server is started with it."""
    assert values(tmp_path, HARMLESS[what]) == set()


@pytest.mark.parametrize("text", ["${MY_VARIABLE}", "Bearer ${MY_VARIABLE}", "${MY_VARIABLE:-x}"])
def test_dispatch_C9_variables_that_credentials_are_made_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """dispatch.C9: `${NAME}` under a credential's name makes the value of that variable secret, and withholds it."""
    monkeypatch.setenv("MY_VARIABLE", SECRET)
    with make_runtime(tmp_path, **remote(headers={"Authorization": text, "X-Tenant": "${HOME}"})) as rt:
        rt.registry.register("x", "t", {"description": ""}, lambda args: SECRET)
        assert rt.call("x") == MARK
        names = rt._parts._secret_names()
        assert "MY_VARIABLE" in names
        assert "HOME" not in names


SPELLINGS: dict[str, Callable[[str], str]] = {
    "itself": str,
    "JSON": lambda text: json.dumps(text)[1:-1],
    "readable JSON": lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    "a URL": lambda text: quote(text, safe=""),
    "a path of a URL": quote,
    "a form": quote_plus,
    "a URL, small": lambda text: quote(text, safe="").lower() if text.islower() else quote(text, safe=""),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 behind one character": lambda text: base64.b64encode(f"u{text}".encode()).decode(),
    "base64 behind two characters": lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
    "base64 amid others": lambda text: base64.b64encode(f"user:{text}, and more".encode()).decode(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(secret=st.text(st.characters(codec="utf-8"), min_size=8, max_size=40))
def test_dispatch_C9_spellings(spelling: str, secret: str) -> None:
    """dispatch.C9: a secret is one in JSON, in a URL and in base64 too; of the latter at most an end is left."""
    written = SPELLINGS[spelling](secret)
    assume(written not in MARK)
    left = Redactor(values=lambda: [secret]).redact(f"<{written}>")
    assert MARK in left
    assert written not in left
    if "base64" not in spelling:
        assert left == f"<{MARK}>"
    else:
        assert len(left.replace(MARK, "")) <= len("<>") + len(written) - len(secret)


def test_dispatch_C9_surrogates_in_a_secret() -> None:
    """Whatever a variable holds, redaction doesn't raise."""
    assert Redactor(values=lambda: ["12345678\udc80"]).redact("a 12345678\udc80") == f"a {MARK}"


@pytest.mark.parametrize("face", FACES)
def test_dispatch_C9_nowhere_on_any_face(tmp_path: Path, caplog: pytest.LogCaptureFixture, face: str) -> None:
    """dispatch.C9: neither results nor errors, traces, the log or the report hold what the configuration keeps secret."""

    def leak(args: dict[str, Any]) -> None:
        raise ValueError(f"401 for Authorization: Bearer {KEY}")

    with make_runtime(tmp_path, **remote(headers={"Authorization": f"Bearer {KEY}"})) as rt:
        rt.registry.register("value", "t", {"description": ""}, lambda args: {"sent": f"Bearer {KEY}", "alone": KEY})
        rt.registry.register("raises", "t", {"description": ""}, leak)
        rt.registry.register("hidden", "t", {"description": ""}, print, check_fn=lambda: leak({}))
        rt.registry.register("blocked", "t", {"description": ""}, print)
        rt.add_hook("pre_tool_call", lambda tool_name: Block(KEY) if tool_name == "blocked" else None)
        rt.add_hook("post_tool_call", lambda: leak({}))
        told = [FACES[face](rt, ToolCall(name)).to_dict() for name in ("value", "raises", "hidden", "blocked")]
        told.append(rt.report().to_dict())
    text = json.dumps(told) + caplog.text
    assert KEY not in text
    assert text.count(MARK) >= len(told)


def test_dispatch_C9_variables_may_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """dispatch.C9: a variable's value counts as it is at the moment of the result."""
    with make_runtime(tmp_path) as rt:
        rt.registry.register(
            "x", "t", {"description": ""}, lambda args: "first-value second-value", requires_env="MY_KEY"
        )
        for value in ("first-value", "second-value", "first-value"):
            monkeypatch.setenv("MY_KEY", value)
            assert rt.call("x") == "first-value second-value".replace(value, MARK)
        monkeypatch.delenv("MY_KEY")
        assert rt.call("x") == "first-value second-value"


def test_dispatch_C9_the_defaults_hold_nothing() -> None:
    """A configuration that nobody wrote costs no thorough look."""
    assert not may_hold_credentials(Settings().to_data())


@given(st.text(max_size=40))
def test_any_name_and_text_can_be_judged(text: str) -> None:
    """Names and values are whatever somebody writes."""
    assert names_credential(text) in (True, False)
    assert looks_random(text) in (True, False)
    configured(server(env={text: text}, args=[text, f"--token={text}", f"https://{text}@x/?{text}={text}"]))
