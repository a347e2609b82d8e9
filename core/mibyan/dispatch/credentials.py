"""Which texts of config.yaml are credentials: they leave neither in a result nor in a trace or a log (dispatch.C9).

The settings hold what the operator wrote as it is: a server's `env`, `headers`, `args` and `url`, a plugin's own `config`,
a shell hook's command. Most of that is harmless (`Content-Type`, `LANG`, `NODE_ENV: production`) and stands in results
for good reasons; so a text counts by the name it stands under, or by what it looks like.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import unquote, unquote_plus

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: A word of a name that says: this is a credential.
_CREDENTIAL: Final = re.compile(
    r"(?:|api|access|auth|private|secret|service|master|encryption|signing|subscription)keys?|\w*tokens?|\w*secrets?"
    r"|\w*passwords?|passwd|pwd|passphrase|passcode|pat|pass|credentials?|creds|auth|authorization|cookies?|bearer|jwt|sig"
    r"|signature"
)
#: Words of which a name holds many: what stands below them counts whatever it is called.
_MANY: Final = re.compile(r"\w*(?:keys|tokens|secrets|passwords|credentials|creds)")
#: The last word of a name that tells something about a credential.
_ABOUT: Final = re.compile(
    "agent|alg|algorithm|audience|backend|budget|cmd|command|count|dir|directory|email|enabled|endpoint|env|expires|expiry|"
    "field|file|files|format|header|helper|host|ids?|interval|issuer|kind|length|lifetime|limit|manager|max|method|min|mode|"
    "names?|param|parameter|path|policy|prefix|provider|region|required|scheme|scopes?|service|size|sock|socket|store|"
    "suffix|timeout|ttl|type|uri|url|user|username|var|variable|version|window"
)
#: What is written where a credential could be, and is none.
_WORDS: Final = re.compile(
    "anonymous|automatic|default|development|disabled|enabled|environment|keychain|keyring|optional|password|production|required|"
    "undefined",
    re.IGNORECASE,
)
_PATH: Final = re.compile(r"(?:~|\.\.?)?/[^\n]*\.\w{1,10}|(?:~|\.\.?)/[^\n]*")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REFERENCE: Final = re.compile(r"\$\{(\w+)[^}]*\}")
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]*\s+(\S.*)", re.DOTALL)
_QUOTED: Final = re.compile(r"""=\s*(?:"([^"]*)"|'([^']*)')""")
_ASSIGNED: Final = re.compile(
    r"""([A-Za-z][\w.-]*)["']?\s*[:=]\s*(?:"([^"]*)"|'([^']*)'|((?:bearer|basic|token|digest)\s+[^\s"',;&]+|[^\s"',;&]+))""",
    re.IGNORECASE,
)
_OPTION: Final = re.compile(r"""--?([A-Za-z][\w-]*)[ \t]+(?:"([^"]*)"|'([^']*)'|([^\s"'-][^\s"']*))""")
_USERINFO: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://([^\s/?#@:]*)(?::([^\s/?#@]*))?@")
_QUERY: Final = re.compile(r"[?&;]([\w.-]+)=([^\s&#;\"']+)")
_RANDOM: Final = re.compile(r"[A-Za-z0-9_+/=.~-]{20,}")
_RUN: Final = re.compile(r"[A-Za-z0-9]{16,}")


class Credentials(NamedTuple):
    """What of a configuration is secret."""

    #: Environment variables whose values are.
    names: frozenset[str] = frozenset()
    #: Texts that stand in the configuration itself, of any length.
    values: frozenset[str] = frozenset()


def configured(settings: Mapping[str, Any]) -> Credentials:
    """The credentials in a configuration, without the variables that `variables_named` finds.

    Args:
        settings: JSON types, as `Settings.to_data` gives them.
    """
    found = _Found()
    found.look(settings)
    return Credentials(frozenset(found.names), frozenset(found.values))


def names_credential(name: str) -> bool:
    """Whether what has this name is a credential: `API_KEY`, `x-auth-token`, `dbPassword`; not `TOKEN_URL`, `KEY_ID`."""
    words = _words(name)
    return (
        bool(words)
        and _ABOUT.fullmatch(words[-1]) is None
        and words[0] not in {"max", "min", "total"}
        and "public" not in words
        and any(map(_CREDENTIAL.fullmatch, words))
    )


def looks_random(text: str) -> bool:
    """Whether a text looks like a generated key: long, in one piece, letters among digits."""
    return _RANDOM.fullmatch(text) is not None and any(
        not run.isalpha() and not run.isdigit() for run in _RUN.findall(text)
    )


def _words(name: str) -> list[str]:
    words = [word.lower() for word in re.split(r"[^A-Za-z0-9]+", _CAMEL.sub("_", name)) if word]
    while words and words[-1].isdigit():
        words.pop()
    return [word.rstrip("0123456789") or word for word in words]


class _Found:
    """Walks through settings and gathers."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.values: set[str] = set()

    def look(self, value: Any, key: str = "") -> None:
        """Go through a section."""
        if isinstance(value, dict):
            for name, part in value.items():
                if name in ("env", "headers", "config") and isinstance(part, dict):
                    self._named(part)
                else:
                    self.look(part, name)
        elif isinstance(value, list):
            if key == "args":
                self._arguments([part for part in value if isinstance(part, str)])
            for part in value:
                self.look(part, key)
        elif isinstance(value, str):
            self._addresses(value)
            if key == "command":
                self._text(value)

    def _named(self, value: Any, name: str = "", *, inherited: bool = False) -> None:
        """Go through values whose names the operator, or a plugin's author, has chosen."""
        if isinstance(value, dict):
            many = inherited or any(map(_MANY.fullmatch, _words(name)[-1:]))
            for below, part in value.items():
                self._named(part, below, inherited=many and _words(below)[-1:] != ["type"])
        elif isinstance(value, list):
            for part in value:
                self._named(part, name, inherited=inherited)
        elif isinstance(value, str):
            self._addresses(value)
            if inherited or names_credential(name) or looks_random(value.strip()):
                self._secret(value)

    def _arguments(self, words: list[str]) -> None:
        """Arguments of a program: `--api-key X`, `--token=X`, `-e KEY=X`, `--header "Authorization: Bearer X"`."""
        for word, following in zip(words, (*words, "")[1:], strict=True):
            option = word.startswith("-") and "=" not in word and " " not in word
            if option and names_credential(word) and not following.startswith("-"):
                self._secret(following)
            self._text(word)

    def _text(self, text: str) -> None:
        """A text with assignments, options and headers in it."""
        for name, *values in (*_ASSIGNED.findall(text), *_OPTION.findall(text)):
            if names_credential(name):
                for value in filter(None, values):
                    self._secret(value)

    def _addresses(self, text: str) -> None:
        """The credentials within URLs."""
        if "://" not in text:
            return
        for user, password in _USERINFO.findall(text):
            for part in (user if looks_random(user) else "", password):
                self._secret(part)
                self._secret(unquote(part))
        for name, value in _QUERY.findall(text):
            if names_credential(name) or looks_random(value):
                self._secret(value)
                self._secret(unquote_plus(value))

    def _secret(self, text: str) -> None:
        """A credential, with those of its parts that are credentials by themselves."""
        text = text.strip()
        self.names.update(_REFERENCE.findall(text))
        if _REFERENCE.search(text):
            self.values.update(piece.strip() for piece in _REFERENCE.split(text)[::2])
            return
        if _WORDS.fullmatch(text) or _PATH.fullmatch(text):
            return
        self.values.add(text)
        self.values.update(one or other for one, other in _QUOTED.findall(text))
        scheme = _SCHEME.fullmatch(text)
        if scheme is not None:
            self.values.add(scheme[1])
            self.values.update(_basic(scheme[1]) if text[:5].lower() == "basic" else ())
        elif ";" in text and "=" in text:  # A cookie.
            self.values.update(pair.partition("=")[2].strip() for pair in text.split(";"))


def _basic(encoded: str) -> Iterable[str]:
    """What HTTP's scheme Basic carries: `user:password`, and the password."""
    import base64
    import binascii

    try:
        plain = base64.b64decode(encoded, validate=True).decode()
    except (binascii.Error, ValueError):
        return ()
    return plain, plain.partition(":")[2]
