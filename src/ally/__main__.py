"""``python -m ally``."""

from ally.cli import main

main()
