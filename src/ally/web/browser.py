"""Opens the page in a browser of this machine."""

from __future__ import annotations

import html
import os
import threading
import webbrowser
from pathlib import Path

REDIRECT = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>ally</title>
<a href="{address}">Open the page</a>
"""


def open_browser(address: str, private: Path) -> None:
    """Without waiting for it. `private` is a folder that only this user can read: every user of this machine can read
    the arguments of a program, so an address with a secret is given as a file in it that leads there."""
    if "#" in address:
        redirect = private / "open.html"
        with os.fdopen(os.open(redirect, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(REDIRECT.format(address=html.escape(address)))
        address = redirect.as_uri()
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
