"""Writes docs/strategies.md, and with --figure its picture too (a minute): ``make docs``."""

from __future__ import annotations

import argparse
from pathlib import Path

from strategies_page.page import page

HERE = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", action="store_true", help="run the strategies and draw figures/picks.png")
    if parser.parse_args().figure:
        from strategies_page.picks import draw

        (HERE / "figures").mkdir(exist_ok=True)
        draw(HERE / "figures" / "picks.png")
    (HERE / "strategies.md").write_text(page(HERE.parent / "benchmarks" / "results"), encoding="utf-8")


if __name__ == "__main__":
    main()
