"""The command line."""

from ally.cli.app import main

__all__ = ["main"]
