"""Credentials on their way out, and addresses that give them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.paths import is_secret
from mibyan.approvals.shell.values import CREDENTIAL, SILENCE
from mibyan.approvals.streams import SENDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals.rules.checks import Found
    from mibyan.approvals.shell.call import Call

_METADATA: Final = re.compile(
    r"(?:^|//|@)(?:169\.254\.169\.254|169\.254\.170\.2|100\.100\.100\.200|192\.0\.0\.192|\[?fd00:ec2::254\]?|metadata\.google\.internal|metadata\.goog|metadata\.azure\.internal|"
    r"2852039166|0xa9fea9fe|0251\.0376\.0251\.0376)(?:[:/\x00]|$)|^https?://metadata/",
    re.IGNORECASE,
)
#: Programs that send names, and get no page.
_ONLY_ASKING: Final = frozenset(("ping", "dig", "host", "nslookup"))


def check(call: Call) -> Iterator[Found]:
    """What any program that talks to other machines does with credentials."""
    if call.name not in SENDERS:
        return
    for arg in call.args[1:]:
        if _METADATA.search(arg.text) and call.name not in _ONLY_ASKING:
            yield "cloud_metadata", arg.span
    if call.stdin.given and CREDENTIAL in call.stdin.origins:
        yield "credential_exfil", call.span
    for index, arg in enumerate(call.args[1:], 1):
        before = call.args[index - 1].text
        if (
            before in {"-i", "--cert", "--key", "--cacert", "-E", "--identity", "-F", "-o", "-O", "--config", "-K"}
            and "@" not in arg.text
        ):
            continue
        if (
            CREDENTIAL in arg.origins
            or (arg.data is not None and CREDENTIAL in arg.data.origins)
            or ((sent := _sent_file(call, arg.text)) is not None and _is_secret(call, sent))
        ):
            yield "credential_exfil", arg.span


def _is_secret(call: Call, name: str) -> bool:
    """Whether a file has credentials: by its path, or because the script has copied them to it."""
    path = call.scope.path(name)
    return is_secret(path) or CREDENTIAL in call.scope.files.get(path, SILENCE).origins


def fetched_program(call: Call) -> Iterator[Found]:
    """`npx https://…`: a program that is fetched from an address and run."""
    runs = call.name in {"npx", "bunx", "uvx"} or (
        call.name in {"pnpm", "yarn", "npm", "pipx", "uv"}
        and any(word in {"dlx", "exec", "x", "run"} for word in call.words[:2])
    )
    for arg in call.args[1:]:
        if runs and arg.text.startswith(("git+", "github:", "http://", "https://", "gist:")):
            yield "remote_exec", arg.span


def _sent_file(call: Call, text: str) -> str | None:
    """The file that a word means to send."""
    if call.name in {"curl", "http", "https", "xh", "httpie"}:
        match = re.search(r"(?:^|=|:)[@<]([^;]+)", text)
        return match[1] if match else text if "-T" in call.words or "--upload-file" in call.words else None
    if call.name == "wget":
        match = re.match(r"--(?:post|body)-file=(.+)", text)
        words = call.words
        before = words[words.index(text) - 1] if text in words[1:] else ""
        return match[1] if match else text if before in {"--post-file", "--body-file"} else None
    if call.name in {"scp", "rsync", "sftp", "aws", "gsutil", "rclone", "s3cmd"}:
        last = call.args[-1].text
        remote = ":" in last or "://" in last
        return text if remote and text != last and not text.startswith("-") else None
    if call.name == "gh":
        return text if call.words[:1] == ["gist"] else None
    if call.name in {"mail", "mailx", "mutt"}:
        return text if "-a" in call.words or "-A" in call.words else None
    return None
