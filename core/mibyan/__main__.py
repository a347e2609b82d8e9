"""`python -m mibyan`: the command line."""

from __future__ import annotations

import sys


def _leave_current_directory() -> None:
    """Take the current directory, which Python puts first, out of the path: a project that is merely entered runs nothing.

    Where Mibyan itself is found by it, it stays.
    """
    import os

    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120 - before anything is imported
    if not sys.flags.safe_path and sys.path and os.path.realpath(sys.path[0]) != os.path.realpath(own):
        del sys.path[0]


if __name__ == "__main__":
    _leave_current_directory()
    from mibyan.cli.main import main

    sys.exit(main())
