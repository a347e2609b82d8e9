"""What commands write, as far as it is known before they run, and where it comes from."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals import searchers
from mibyan.approvals.paths import loses_machine, read_origins
from mibyan.approvals.shell.escapes import unescaped
from mibyan.approvals.shell.options import Options
from mibyan.approvals.shell.values import (
    CREDENTIAL,
    DECODED,
    INITIALISER,
    NETWORK,
    NO_ORIGINS,
    PROCESS_IDS,
    SHELL_OUTPUT,
    SILENCE,
    UNKNOWN,
    Arg,
    Data,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from mibyan.approvals.shell.call import Call

#: Programs that bring what others have written.
FETCHERS: Final = frozenset((
    "curl", "wget", "wget2", "aria2c", "axel", "fetch", "http", "https", "httpie", "xh", "curlie", "lynx", "links", "w3m", "lwp-request", "GET", "nc", "ncat",
    "netcat", "socat", "telnet", "ftp", "tftp", "iwr", "irm", "Invoke-WebRequest", "Invoke-RestMethod", "gsutil", "dig", "nslookup", "git-remote-http",
))  # fmt: skip
#: Programs that send data to other machines.
SENDERS: Final = frozenset((
    "curl", "wget", "http", "https", "httpie", "xh", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "tftp", "scp", "sftp", "rsync", "ssh", "mail", "mailx",
    "sendmail", "mutt", "aws", "gsutil", "rclone", "s3cmd", "openssl", "iwr", "irm", "Invoke-WebRequest", "Invoke-RestMethod", "nslookup", "dig", "host", "ping", "gh",
))  # fmt: skip
#: Programs whose output is made to be evaluated by a shell, and is their own.
_INITIALISERS: Final = frozenset((
    "ssh-agent", "direnv", "pyenv", "rbenv", "nodenv", "jenv", "goenv", "brew", "starship", "zoxide", "dircolors", "gpg-agent", "keychain", "fnm", "nvm",
    "mise", "asdf", "atuin", "opam", "conda", "micromamba", "mamba", "luarocks", "thefuck", "register-python-argcomplete", "resize", "lesspipe", "minikube",
    "docker-machine", "uv", "rustup", "hub", "pipx", "mibyan",
))  # fmt: skip
_PIDS: Final = frozenset(("pgrep", "pidof", "lsof", "fuser"))
_LIMIT = 200_000


def written(call: Call) -> Data:
    """What a call writes to its standard output, if it isn't redirected."""
    make = _PRODUCERS.get(call.name)
    if make is not None:
        return make(call)
    if call.name in FETCHERS:
        return _fetched(call)
    origins = _origins(call)
    if call.name in _PIDS or (call.name == "ps"):
        origins |= {PROCESS_IDS}
    if call.name in {"printenv", "env", "set", "export", "declare"} and len(call.args) == 1:
        origins |= {CREDENTIAL}
    if call.name in _INITIALISERS or "completion" in call.words[:3]:
        return Data("", origins | {INITIALISER})
    if call.name in {"sh", "bash", "zsh", "dash", "ksh", "ash"} and not call.scope.files.get(
        call.scope.path((call.words or [""])[-1])
    ):
        origins |= (
            {SHELL_OUTPUT}
            if any(re.fullmatch(r"-[a-z]*i[a-z]*", word) for word in call.words) or not call.words
            else NO_ORIGINS
        )
    return Data(None, origins)


def _origins(call: Call) -> frozenset[str]:
    """What a call reads: its input, and the files that are its words."""
    found = call.stdin.origins
    for arg in call.args[1:]:
        found |= arg.origins | (arg.data.origins if arg.data else NO_ORIGINS)
        text = arg.text.rpartition("=")[2].lstrip("@<")
        if text and not text.startswith("-"):
            path = call.scope.path(text)
            found |= read_origins(path) | call.scope.files.get(path, SILENCE).origins
    return found


def _echo(call: Call) -> Data:
    args, escapes, newline = list(call.args[1:]), False, True
    while args and re.fullmatch(r"-[neE]+", args[0].text):
        escapes = escapes or "e" in args[0].text
        newline = newline and "n" not in args[0].text
        args.pop(0)
    text = " ".join(arg.text for arg in args)
    if any(arg.globbed for arg in args):
        text = UNKNOWN
    return Data((unescaped(text) if escapes else text) + "\n" * newline, _origins_of(args))


def _origins_of(args: list[Arg]) -> frozenset[str]:
    return NO_ORIGINS.union(*(arg.origins for arg in args))


_DIRECTIVE = re.compile(r"%(%|[-+ #0]*\d*(?:\.\d+)?([sbqdiuxXocfeEgG]))")


def _printf(call: Call) -> Data:
    args = list(call.args[1:])
    if args and args[0].text.startswith("-v"):
        name = args[0].after("-v").text or (args[1].text if len(args) > 1 else "")
        call.scope.set(name, UNKNOWN)
        return SILENCE
    if args and args[0].text == "--":
        args.pop(0)
    if not args:
        return SILENCE
    form, values = unescaped(args[0].text), [arg.text for arg in args[1:]]
    rest = values[::-1]

    def put(match: re.Match[str]) -> str:
        if match[1] == "%":
            return "%"
        value = rest.pop() if rest else ""
        return unescaped(value) if match[2] == "b" else value

    pieces = [_DIRECTIVE.sub(put, form)]
    while rest and len(rest) < len(values) and len(pieces) < 1000:
        pieces.append(_DIRECTIVE.sub(put, form))
    return Data("".join(pieces), _origins_of(args))


def _cat(call: Call) -> Data:
    operands = Options(call.args[1:], ("n", "c", "lines", "bytes") if call.name in {"head", "tail"} else ()).operands
    if not operands:
        return call.stdin if call.stdin.given else Data(None)
    texts: list[str] = []
    origins = NO_ORIGINS
    known = True
    for arg in operands:
        path = call.scope.path(arg.text)
        data = call.stdin if arg.text in {"-", "/dev/stdin"} else arg.data or call.scope.files.get(path)
        origins |= arg.origins | (data.origins if data else read_origins(path))
        known = known and data is not None and data.text is not None
        texts.append((data.text or "") if data else "")
    return Data("".join(texts) if known else None, origins)


def _part(call: Call) -> Data:
    """`head`, `tail` and their like: what they write is a part of what they read."""
    data = _cat(call)
    short = data.text is not None and data.text.count("\n") <= 1
    return data if short else Data(None, data.origins)


def _tee(call: Call) -> Data:
    options = Options(call.args[1:])
    for arg in options.operands:
        call.scope.put(call.scope.path(arg.text), call.stdin, more=options.has("a", "append"))
    return call.stdin if call.stdin.given else Data(None)


def _reversed(call: Call) -> Data:
    data = _cat(call)
    text = None if data.text is None else "\n".join(line[::-1] for line in data.text.split("\n"))
    return Data(text, data.origins | {DECODED})


def _tr(call: Call) -> Data:
    operands = [arg.text for arg in Options(call.args[1:], mixed=False).operands]
    text = call.stdin.text
    if text is None or UNKNOWN in text or len(operands) != 2 or len(text) > _LIMIT:
        return Data(None, call.stdin.origins | ({DECODED} if text is not None else NO_ORIGINS))
    old, new = (_characters(word) for word in operands)
    table = {char: new[min(index, len(new) - 1)] for index, char in enumerate(old)} if new else {}
    return Data("".join(table.get(char, char) for char in text), call.stdin.origins | {DECODED})


def _characters(text: str) -> str:
    def spread(match: re.Match[str]) -> str:
        low, high = ord(match[1]), ord(match[2])
        return "".join(map(chr, range(low, min(high, low + 300) + 1))) if high >= low else match[0]

    return re.sub(r"(.)-(.)", spread, unescaped(text))


def _base64(call: Call) -> Data:
    options = Options(
        call.args[1:], ("w", "wrap", "i", "o") if call.name == "base64" and _is_apple(call) else ("w", "wrap")
    )
    if not (options.has("d", "D", "decode") or call.name.endswith("decode")):
        return Data(None, _origins(call))
    data = _cat(call.inner([call.args[0], *options.operands], via=call.via))
    return Data(_decoded(data.text), data.origins | {DECODED})


def _is_apple(call: Call) -> bool:
    return any(arg.text == "-o" for arg in call.args)


def _decoded(text: str | None) -> str | None:
    if text is None or UNKNOWN in text or len(text) > _LIMIT:
        return None
    try:
        return base64.b64decode("".join(text.split()), validate=False).decode("utf-8", "replace").replace("\x00", "")
    except (binascii.Error, ValueError):
        return None


def _xxd(call: Call) -> Data:
    options = Options(call.args[1:], tuple("clsog"))
    if not options.has("r"):
        return Data(None, _origins(call))
    data = _cat(call.inner([call.args[0], *options.operands], via=call.via))
    try:
        text = (
            None
            if data.text is None
            else bytes.fromhex("".join(data.text.split())).decode("utf-8", "replace").replace("\x00", "")
        )
    except ValueError:
        text = None
    return Data(text, data.origins | {DECODED})


def _openssl(call: Call) -> Data:
    words = call.words
    decodes = "-d" in words or "-decrypt" in words
    to_file = [words[index + 1] for index, word in enumerate(words[:-1]) if word == "-out"]
    data = Data(None, _origins(call) | ({DECODED} if decodes else NO_ORIGINS))
    for name in to_file:
        call.scope.put(call.scope.path(name), data)
    return SILENCE if to_file else data


def _unpacked(call: Call) -> Data:
    origins = _origins(call)
    if Options(call.args[1:]).has("d", "decrypt") or call.name == "uudecode":
        origins |= {DECODED}
    if any(word.startswith("--export-secret") for word in call.words):
        origins |= {CREDENTIAL}
    return Data(None, origins)


def _python(call: Call) -> Data:
    words = call.words
    decodes = "-m" in words and any(word in {"base64", "binascii", "codecs", "zlib", "quopri", "uu"} for word in words)
    return Data(None, _origins(call) | ({DECODED} if decodes else NO_ORIGINS))


#: Options that name the file to write, and whether a file is written anyway.
_INTO: Final = {"curl": ("o", "output"), "wget": ("O", "output-document"), "wget2": ("O", "output-document"), "aria2c": ("o", "out"), "axel": ("o", "output"),
                "http": ("o", "output"), "https": ("o", "output"), "xh": ("o", "output"), "iwr": ("OutFile",), "Invoke-WebRequest": ("OutFile",)}  # fmt: skip


def fetched_into(call: Call) -> list[Arg]:
    """The files that a fetching program writes to by its options."""
    names = _INTO.get(call.name, ())
    single = call.name in {"iwr", "Invoke-WebRequest"}
    options = Options(
        call.args[1:], (*names, *tuple("AbcCdDeFHKmQrTuUwxXyYzP")) if call.name == "curl" else names, single=single
    )
    return [arg for arg in options.values(*names) if arg.text not in {"-", "/dev/stdout"}]


def _fetched(call: Call) -> Data:
    data = Data(None, frozenset((NETWORK,)) | _origins(call))
    files = fetched_into(call)
    for arg in files:
        call.scope.put(call.scope.path(arg.text), data)
    if files:
        return SILENCE
    if not _names_its_file(call):
        return data
    for word in call.words:
        if "://" in word:
            call.scope.put(call.scope.path(word.split("?")[0].rstrip("/").rsplit("/", 1)[-1]), data)
    return SILENCE


def _names_its_file(call: Call) -> bool:
    """Whether a fetching program writes a file that is called as its address ends."""
    if call.name == "curl":
        return any(re.fullmatch(r"-[A-Za-z]*O[A-Za-z]*|--remote-name", word) for word in call.words)
    if call.name not in {"wget", "wget2", "aria2c", "axel"}:
        return False
    return not any(re.match(r"-[A-Za-z]*O|--output-document", word) for word in call.words)


def _silent(_call: Call) -> Data:
    return SILENCE


def _find(call: Call) -> Data:
    """What `find` writes begins with where it begins; that is all that matters of it."""
    starts = searchers.find_starts(call)
    lost = (
        len(starts) == 1
        and loses_machine(starts[0], call.scope, found=True)
        and not searchers.is_narrowed(call.args[1:])
    )
    return Data(f"{starts[0].text}\n" if lost else None)


_PRODUCERS: Final[dict[str, Callable[[Call], Data]]] = {
    "find": _find, "echo": _echo, "printf": _printf, "cat": _cat, "tee": _tee, "head": _part, "tail": _part, "rev": _reversed, "tr": _tr, "base64": _base64,
    "gbase64": _base64, "base32": _base64, "b64decode": _base64, "xxd": _xxd, "openssl": _openssl, "gpg": _unpacked, "age": _unpacked, "uudecode": _unpacked,
    "python": _python, "python3": _python, ":": _silent, "true": _silent, "cd": _silent, "mkdir": _silent, "rm": _silent, "touch": _silent,
    "chmod": _silent, "cp": _silent, "mv": _silent, "ln": _silent, "test": _silent, "[": _silent, "sleep": _silent,
}  # fmt: skip
