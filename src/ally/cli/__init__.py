"""The command line."""

import sys


def main() -> None:
    """Runs a command. What it needs is imported here, so that Ctrl-C in the first moments ends it as later."""
    try:
        from ally.cli.app import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


__all__ = ["main"]
