"""terminal.T2: what never ends is refused in the foreground, with what to do instead; judged on the parse."""

from __future__ import annotations

import pytest

from mibyan import ToolError
from mibyan_builtin.terminal.endless import refuse_endless

ENDLESS = (
    "tail -f log", "tail -n 5 -F log", "tail --follow=name log", "sudo tail -f /var/log/syslog", "cd x && uvicorn app:app",
    "python -m http.server 8000", "python3.12 -m uvicorn app:app --reload", "uv run flask run", "python manage.py runserver",
    "npm run dev", "npm start", "yarn dev", "npx vite", "docker compose up", "docker logs -f web", "kubectl logs -f pod",
    "journalctl -fu sshd", "ping host", "watch ls", "bash -c 'tail -f log'", "echo a; (tail -f log | grep x)", "sleep infinity",
    "php -S localhost:8000", "nohup uvicorn app:app", "env A=1 gunicorn app", "X=tail; $X -f log",
)  # fmt: skip
ENDING = (
    "pip install uvicorn", "tail -n 5 log", "tail -f log &", "timeout 5 tail -f log", "tail -f log | head -5", "uvicorn --help",
    "echo tail -f log", "git commit -m 'tail -f log'", "cat <<E\ntail -f log\nE", "npm run build", "npm install", "npm test",
    "docker compose up -d", "docker logs web", "ping -c 3 host", "vite build", "grep -rn uvicorn .", "# tail -f log\nls",
    "tail -f --pid=1 log", "uvicorn app:app & sleep 1; curl localhost", "sleep 5", "which gunicorn", "python manage.py migrate",
    "top --version", "systemctl restart gunicorn", "if",
)  # fmt: skip


@pytest.mark.parametrize("command", ENDLESS)
def test_what_never_ends_is_refused(command: str) -> None:
    """Servers and followers, also behind wrappers and in the middle of a line."""
    with pytest.raises(ToolError, match="doesn't end by itself") as caught:
        refuse_endless(command)
    assert "background=true" in str(caught.value.hint)


@pytest.mark.parametrize("command", ENDING)
def test_what_ends_is_not(command: str) -> None:
    """Names as arguments or data, the background, `timeout`, `head`, and what only says something."""
    refuse_endless(command)
