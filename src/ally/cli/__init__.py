"""The command line."""

import os
import sys


def main() -> None:
    """Runs a command. Imports happen here, so that Ctrl-C during start-up ends it cleanly too. No Python that it starts
    looks for modules in the current folder, which may be somebody else's."""
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    try:
        from ally.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
