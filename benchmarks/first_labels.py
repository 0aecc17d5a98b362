"""Labels that a campaign needs from its first one on: the suite `auto` of label_efficiency.py without random labels.

    python benchmarks/first_labels.py [--data-dir DATA] [--text-encoder FOLDER] [--seeds 10] [--sets NAME ...]
        [--runs FOLDER] [--results FOLDER]

The other suites start every strategy from the same random labels, so that they compare strategies. A user's campaign
starts from none: its first batch covers the pool. Sizes of batches, pools, test sets and the learner
(``model="auto"``) are those of the suite `auto`. Finished campaigns are kept in label_efficiency_first.csv, and a rerun
goes on after them.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

from ally.data import Oracle
from ally.data.arrays.memory import ArraySource
from ally.experiment import Trial
from ally.files import write_whole
from ally.learning.auto import chosen_name
from ally.loop import Loop
from ally.rng import Streams
from label_efficiency import AUTO, HERE, Set, load

NAME = "label_efficiency_first.csv"


def run_campaign(trial: Trial, sizes: Set, seed: int) -> pd.DataFrame:
    """One row after every training: labels, metric, value, and what `auto` chose."""
    oracle = Oracle(trial.pool_labels)
    loop = Loop(
        ArraySource(trial.pool, vectors=True) if trial.vectors else trial.pool,
        None,
        task=trial.task,
        classes=trial.classes,
        random_state=Streams(seed),
    )
    rows = []
    for number in range(sizes.rounds + 1):
        query = loop.ask(sizes.batch if number else sizes.init)
        loop.tell(query.id, oracle.answer(query.ids.tolist()))
        value = trial.measure(loop.predict(trial.test))
        rows.append((trial.name, seed, number, oracle.bought, trial.metric, f"{value:.6g}", chosen_name(loop.learner)))
    return pd.DataFrame(rows, columns=["dataset", "seed", "round", "labels", "metric", "value", "learner"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path)
    parser.add_argument("--text-encoder")
    parser.add_argument("--sets", nargs="*", choices=AUTO, default=list(AUTO))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs") / "label-efficiency")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    options = parser.parse_args()
    out = options.results / NAME
    done = pd.read_csv(out, dtype={"value": str}, keep_default_na=False) if out.exists() else None
    finished = set() if done is None else set(zip(done["dataset"], done["seed"], strict=True))
    for seed in range(options.seeds):
        for name in options.sets:
            if (name, seed) in finished:
                continue
            trial = load(options.data_dir, options.runs, options.text_encoder, name)
            table = run_campaign(trial, AUTO[name], seed)
            done = table if done is None else pd.concat([done, table], ignore_index=True)
            write_whole(out, done.to_csv(index=False).encode())
            print(f"{name}, seed {seed}: {table['value'].iloc[0]} … {table['value'].iloc[-1]}", flush=True)


if __name__ == "__main__":
    main()
