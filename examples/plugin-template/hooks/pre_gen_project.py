"""Refuses, before anything is written, what can't be a plugin's name; `mibyan plugins new` says more about it."""

import json
import re
import sys

slug = json.loads({{ cookiecutter.slug | jsonify | jsonify }})
if not re.fullmatch(r"(?!mibyan-plugin-)[A-Za-z0-9]([A-Za-z0-9._-]{0,48}[A-Za-z0-9])?", slug):
    sys.exit(
        f"{slug!r} can't be a plugin's name: 1 to 50 letters, digits, '-', '_' and '.', without the prefix mibyan-plugin-,"
        " beginning and ending with a letter or a digit"
    )
