"""Databases: statements in their clients, and commands that are statements themselves."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from mibyan.approvals.shell.options import Options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mibyan.approvals.rules.checks import Checker, Found
    from mibyan.approvals.shell.call import Call

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\$.*?\$\$|--[^\n]*|/\*.*?\*/", re.DOTALL)
_DROPS = re.compile(
    r"(?:^|;|\()\s*(?:EXPLAIN\s+ANALYZE\s+)?(?:DROP\s+(?:TABLE|DATABASE|SCHEMA|VIEW|MATERIALIZED|INDEX|USER|ROLE|COLLECTION|KEYSPACE|TABLESPACE|FUNCTION|PROCEDURE|TRIGGER|SEQUENCE|TYPE|OWNED|EXTENSION|PUBLICATION)\b|"
    r"TRUNCATE\b(?!\s*\()|ALTER\s+TABLE\s+\S+\s+DROP\b|DELETE\s+FROM\s+[^;]*|UPDATE\s+\S+\s+SET\b[^;]*)",
    re.IGNORECASE,
)
_WHERE = re.compile(r"\bWHERE\b", re.IGNORECASE)
_MONGO = re.compile(
    r"\.(?:dropDatabase|drop|dropIndexes|dropUser|deleteMany|remove)\s*\(\s*(?:\{\s*\}\s*)?\)|\bdb\.dropDatabase\b"
)
_REDIS = re.compile(r"\s*(?:FLUSHALL|FLUSHDB|SHUTDOWN|DEBUG\s+SEGFAULT|CONFIG\s+SET)\b", re.IGNORECASE)
_BANG = re.compile(r"(?:^|\n)\s*(?:\\!|\.shell|\.system|!|system)\s+(.+)")


def deletes(statements: str) -> bool:
    """Whether SQL deletes tables, databases or all rows."""
    bare = _QUOTED.sub("''", statements)
    for match in _DROPS.finditer(bare):
        text = match[0].lstrip(";( \t\n").upper()
        if not text.startswith(("DELETE", "UPDATE")) or not _WHERE.search(text):
            return True
    return False


def _client(*, valued: tuple[str, ...], codes: tuple[str, ...], operands: bool = False) -> Checker:
    def check(call: Call) -> Iterator[Found]:
        options = Options(call.args[1:], (*valued, *codes))
        given = options.values(*codes) + (options.operands[1:] if operands else [])
        if any(deletes(arg.text) for arg in given) or (
            call.stdin.text is not None and call.stdin.given and deletes(call.stdin.text)
        ):
            yield "sql", call.span
        if any(_BANG.search(arg.text) for arg in given):
            yield "exec_flag", call.span

    return check


def _mongo(call: Call) -> Iterator[Found]:
    texts = [value.text for value in Options(call.args[1:], ("eval", "host", "port", "u", "p", "f")).values("eval")]
    if any(_MONGO.search(text) for text in [*texts, call.stdin.text or ""]):
        yield "sql", call.span


def _redis(call: Call) -> Iterator[Found]:
    operands = Options(call.args[1:], ("h", "p", "a", "n", "u", "s", "r", "i", "user", "pass")).operands
    command = " ".join(arg.text for arg in operands)
    if _REDIS.match(command) or (call.stdin.given and any(map(_REDIS.match, (call.stdin.text or "").split("\n")))):
        yield "sql", call.span


def _always(call: Call) -> Iterator[Found]:
    if any(not word.startswith("-") for word in call.words):
        yield "sql", call.span


def _admin(call: Call) -> Iterator[Found]:
    if any(word in {"drop", "shutdown", "flush-hosts", "kill"} for word in call.words):
        yield "sql", call.span


def statement(call: Call) -> Iterator[Found]:
    """A command that is itself a statement, such as `DROP TABLE users`."""
    words = [call.name, *call.words]
    sql_like = words[0].isupper() or (
        len(words) > 1 and words[1].upper() in {"TABLE", "DATABASE", "FROM", "SCHEMA", "INDEX", "VIEW"}
    )
    if sql_like and words[0].upper() in {"DROP", "DELETE", "TRUNCATE", "ALTER", "UPDATE"} and deletes(" ".join(words)):
        yield "sql", call.span


def _django(call: Call) -> Iterator[Found]:
    """`python manage.py flush`, `rails db:drop`, `artisan migrate:fresh`."""
    if any(
        re.fullmatch(
            r"flush|reset_db|sqlflush|db:(?:drop|reset|purge|wipe|schema:load|migrate:reset)|migrate:(?:fresh|reset|refresh)|ecto\.drop|ecto\.reset",
            word,
        )
        for word in call.words[:3]
    ):
        yield "sql", call.span


def _managed(call: Call) -> Iterator[Found]:
    """`python manage.py flush`, `php artisan migrate:fresh`."""
    if call.words and call.words[0].rpartition("/")[2] in {"manage.py", "artisan", "bin/console"}:
        yield from _django(call)


def _prisma(call: Call) -> Iterator[Found]:
    if [word for word in call.words if not word.startswith("-")][:2] in (
        ["migrate", "reset"],
        ["db", "drop"],
    ) or "--force-reset" in call.words:
        yield "sql", call.span


CHECKS: Final[dict[str, Checker]] = {
    **dict.fromkeys(("psql", "pgcli"), _client(valued=(*tuple("dfhLopPRtTUvU"), "host", "port", "dbname", "username"), codes=("c", "command"))),
    **dict.fromkeys(("mysql", "mariadb", "mycli"), _client(valued=tuple("uhPDSs"), codes=("e", "execute"))),
    **dict.fromkeys(("sqlite3", "sqlite", "litecli", "duckdb"), _client(valued=("init", "cmd", "c", "s"), codes=("cmd", "c", "s"), operands=True)),
    **dict.fromkeys(("sqlcmd", "osql", "bcp"), _client(valued=tuple("SUPdEi"), codes=("Q", "q"))), "clickhouse-client": _client(valued=("host", "h", "u"), codes=("q", "query")), "clickhouse": _client(valued=("host",), codes=("q", "query")),
    "cqlsh": _client(valued=("u", "p", "k"), codes=("e", "execute")), "cockroach": _client(valued=("url", "host"), codes=("e", "execute")), "bq": _client(valued=("project_id",), codes=("query",), operands=True),
    "snowsql": _client(valued=tuple("audw"), codes=("q", "query")), "trino": _client(valued=("server",), codes=("execute",)), "presto": _client(valued=("server",), codes=("execute",)), "hive": _client(valued=("f",), codes=("e",)), "beeline": _client(valued=("u", "n", "p"), codes=("e",)), "impala-shell": _client(valued=("i",), codes=("q",)), "spark-sql": _client(valued=("f",), codes=("e",)), "usql": _client(valued=("f",), codes=("c", "command")), "turso": _client(valued=(), codes=(), operands=True), "wrangler": _client(valued=(), codes=("command",)),
    **dict.fromkeys(("mongosh", "mongo"), _mongo), **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), _redis), "dropdb": _always, "dropuser": _always, "mysqladmin": _admin, "mariadb-admin": _admin,
    "rabbitmqctl": lambda call: [("sql", call.span)] if any(word in {"reset", "force_reset", "delete_queue", "delete_vhost", "purge_queue", "stop", "stop_app"} for word in call.words) else [],
    "kafka-topics": lambda call: [("sql", call.span)] if "--delete" in call.words else [], "kafka-topics.sh": lambda call: [("sql", call.span)] if "--delete" in call.words else [],
    **dict.fromkeys(("rails", "rake", "artisan", "mix"), _django), **dict.fromkeys(("python", "python3", "php"), _managed), "prisma": _prisma, "sequelize": _django, "manage.py": _django, "alembic": lambda call: [("sql", call.span)] if call.words[:2] == ["downgrade", "base"] else [],
}  # fmt: skip
