"""The command line."""

import sys


def main() -> None:
    """Runs a command. Imports happen here, so that Ctrl-C during start-up ends it cleanly too."""
    try:
        from ally.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
