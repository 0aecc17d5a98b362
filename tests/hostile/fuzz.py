"""Changes campaign files, model files and requests at random, and looks at what `ally` makes of them.

Every outcome must be a right answer or a refusal in words: no crash, traceback, hang, connection, program, or memory
and time beyond the limits of `watching`. Every input has a number, so that it can be made again: ``--only 1234``.

    python tests/hostile/fuzz.py --minutes 10 --out runs/fuzz
"""

from __future__ import annotations

import argparse
import collections
import json
import random
import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fuzz_requests import fuzz_requests
from mutations import Change, change_bytes, change_database, change_model, write_changed
from watching import Watcher, prepare_folder

CAMPAIGN_COMMANDS = (
    ("status", "{path}"), ("status", "{path}", "--json"), ("doctor", "{path}"), ("ask", "{path}", "--n", "3"),
    ("review", "{path}"), ("export", "{path}", "labels.csv"), ("export", "{path}", "record.jsonl", "--record"),
    ("export", "{path}", "model.safetensors", "--model"), ("predict", "{path}"), ("tell", "{path}", "answers.csv"),
    ("trust", "{path}", "--json"), ("classes", "{path}"), ("rescan", "{path}"), ("retrain", "{path}"),
)  # fmt: skip


@dataclass(frozen=True)
class Seed:
    """A file that works, what may be changed in it, and the commands that read it."""

    path: Path
    changes: tuple[Change, ...]
    commands: tuple[tuple[str, ...], ...]


def make_seeds(folder: Path) -> list[Seed]:
    """Campaigns and models as `ally` makes them."""
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.svm import SVC

    from ally import Campaign

    rng = np.random.default_rng(0)
    rows = [f"s{n},{n % 2 + rng.normal(0, 0.3):.3f},{rng.normal():.3f},{'red' if n % 3 else 'blue'}" for n in range(60)]
    (folder / "rows.csv").write_text("id,x,z,colour\n" + "\n".join(rows) + "\n")
    (folder / "answers.csv").write_text("id,label\ns41,b\ns42,a\n")
    seeds = []
    classes = ["a", "b"]
    models = {
        **{name: name for name in ("linear", "extra-trees", "hist-gradient-boosting", "mlp", "auto")},
        "neighbours": KNeighborsClassifier(3),
        "vectors": SVC(probability=True),
    }
    for name, model in models.items():
        place = folder / f"{name}.db"
        with Campaign.create(
            place, folder / "rows.csv", classes=classes, model=model, evaluate=5, automatic=False
        ) as made:
            made.relabel({f"s{n}": "ab"[n % 2] for n in range(24)})
            made.retrain()
            made.ask(4)
            model_file = folder / f"{name}.safetensors"
            made.training.model().write(model_file)
        seeds.append(Seed(place, (change_database, change_database, change_bytes), CAMPAIGN_COMMANDS))
        commands = (("predict", "{path}", "rows.csv"), ("predict", "{path}", "rows.csv", "--json"))
        seeds.append(Seed(model_file, (change_model, change_model, change_bytes), commands))
    return seeds


def fuzz_files(seeds: list[Seed], watcher: Watcher, folder: Path, number: int, out: Path) -> tuple[str, str | None]:
    """One changed file through one command: the kind of its outcome, and the fault in words."""
    rng = random.Random(number)
    seed = rng.choice(seeds)
    shutil.rmtree(folder, ignore_errors=True)
    work = prepare_folder(folder)
    for name in ("rows.csv", "answers.csv"):
        shutil.copy(seed.path.parent / name, work / name)
    path = work / f"foreign{seed.path.suffix}"
    write_changed(seed.path, path, rng.choice(seed.changes), rng)
    words = [word.format(path=path) for word in rng.choice(seed.commands)]
    kept = path.read_bytes()
    outcome = watcher.run(words, folder)
    fault = outcome.find_fault("")
    if fault is not None:
        place = out / f"{number}{seed.path.suffix}"
        place.write_bytes(kept)
        (out / f"{number}.txt").write_text(f"{' '.join(words)}\n{fault}\n\n{outcome.printed}")
    return f"{seed.path.suffix[1:]} {'answer' if outcome.code == 0 else 'refusal'}", fault


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--only", type=int, help="only the input of this number")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/fuzz"))
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * asked.minutes
    counts: collections.Counter[str] = collections.Counter()
    faults: list[int] = []
    with tempfile.TemporaryDirectory(prefix="ally-fuzz-") as made:
        folder = Path(made)
        (folder / "seeds").mkdir()
        seeds = make_seeds(folder / "seeds")

        def note(number: int, kind: str, fault: str | None) -> None:
            counts[kind] += 1
            if fault is not None:
                faults.append(number)
                print(f"input {number}: {fault}", flush=True)

        def work(worker: int) -> None:
            if worker == 0 and asked.only is None:
                page = Path(shutil.copy(seeds[0].path, folder / "seeds" / "page.db"))
                for outcome in fuzz_requests(page, 12 * asked.minutes, asked.first):
                    note(*outcome)
            watcher = Watcher()
            number = asked.first + worker if asked.only is None else asked.only
            while time.monotonic() < end:
                kind, fault = fuzz_files(seeds, watcher, folder / f"victim{worker}", number, asked.out)
                note(number, kind, fault)
                if asked.only is not None:
                    break
                number += asked.workers
            watcher.close()

        with ThreadPoolExecutor(asked.workers) as pool:
            list(pool.map(work, range(1 if asked.only is not None else asked.workers)))
    print(json.dumps({"inputs": counts.total(), **dict(counts.most_common()), "faults": sorted(faults)}))
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
