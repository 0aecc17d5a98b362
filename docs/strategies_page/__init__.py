"""docs/strategies.md and its figure, made from the catalogue."""
