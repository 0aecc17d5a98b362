"""Many annotators in the labelling page at once: how long from an answer to the next sample, and is anything lost?

    python benchmarks/page_load.py [--annotators 50] [--seconds 120] [--backend sqlite postgresql]

Each annotator signs in by a link, asks for ten samples at a time, and every second sends an answer and fetches the
next sample, as the page does; one in twenty answers is sent twice under its key, one in thirty is undone. The server
is `ally label --share` in a process of its own. Afterwards the clients' histories are compared with the record: every
answer that was acknowledged is there once, and no sample was dealt to two people.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pandas as pd

from ally import Campaign
from store_server import places

CLASSES = ("low", "high")


@dataclass
class History:
    """What one annotator saw."""

    name: str
    dealt: list[str] = field(default_factory=list)
    told: dict[int, tuple[str, str]] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    answer_seconds: list[float] = field(default_factory=list)
    next_seconds: list[float] = field(default_factory=list)


async def annotate(origin: str, secret: str, seconds: float, history: History, seed: int) -> None:
    rng = random.Random(seed)
    limits = httpx.Limits(max_connections=6)
    async with httpx.AsyncClient(
        base_url=f"{origin}/api/v1", headers={"Origin": origin}, timeout=60, limits=limits, trust_env=False
    ) as api:
        (await api.post("/session", json={"secret": secret})).raise_for_status()
        await asyncio.sleep(rng.random())
        waiting: list[tuple[int, str]] = []
        asked = sent = 0
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            began = time.monotonic()
            if len(waiting) < 3:
                asked += 1
                query = (await api.post("/queries", json={"key": f"q{asked}", "n": 10})).raise_for_status().json()
                waiting += [(query["query"], one["id"]) for one in query["samples"]]
                history.dealt += [one["id"] for one in query["samples"]]
            if not waiting:
                return
            number, id = waiting.pop(0)
            sent += 1
            label = rng.choice(CLASSES)
            body = {"answers": [{"id": id, "key": f"a{sent}", "label": label, "query": number, "expects": None}]}
            following = waiting[0][1] if waiting else id
            began_answer = time.perf_counter()

            async def tell(body: dict[str, object] = body, began_answer: float = began_answer) -> dict[str, object]:
                found = (await api.post("/answers", json=body)).raise_for_status().json()["outcomes"][0]
                history.answer_seconds.append(time.perf_counter() - began_answer)
                return dict(found)

            outcome, _ = await asyncio.gather(tell(), api.get("/samples", params={"id": following}))
            history.next_seconds.append(time.perf_counter() - began_answer)
            if outcome["state"] != "recorded":
                raise SystemExit(f"{history.name}: {outcome}")
            history.told[int(str(outcome["number"]))] = (id, label)
            if rng.random() < 1 / 20:
                again = (await api.post("/answers", json=body)).raise_for_status().json()["outcomes"][0]
                if again["number"] != outcome["number"]:
                    raise SystemExit(f"{history.name}: sent again, answer {outcome['number']} became {again['number']}")
            if rng.random() < 1 / 30:
                body_undo = {"key": f"u{sent}", "number": outcome["number"]}
                (await api.post("/undo", json=body_undo)).raise_for_status()
                history.undone.add(int(str(outcome["number"])))
            await asyncio.sleep(max(0.0, 1.0 - (time.monotonic() - began)))


def violations(histories: list[History], campaign: Campaign) -> list[str]:
    """What the record and the histories do not agree about."""
    record = {said.number: said for said in campaign.answers.all()}
    found = []
    for history in histories:
        for number, (id, label) in history.told.items():
            said = record.get(number)
            if said is None or (said.annotator, said.sample, said.value) != (history.name, id, label):
                found.append(f"{history.name} was told that answer {number} is {label!r} of {id!r}; on record: {said}")
    told = sum(len(history.told) for history in histories)
    undone = {said.undoes for said in record.values() if said.kind == "undo"}
    if len(record) - len(undone) != told:
        found.append(f"{told} answers were acknowledged and {len(record) - len(undone)} are on record")
    if undone != set().union(*(history.undone for history in histories)):
        found.append("the undos on record are not those that were acknowledged")
    free = {record[number].sample for number in undone if number is not None}
    twice = [id for id, n in Counter(id for history in histories for id in history.dealt).items() if n > 1]
    found += [f"{id!r} was dealt twice" for id in twice if id not in free]
    return [*found, *campaign.check()]


def milliseconds(seconds: list[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    at = {"p50": 0.5, "p99": 0.99}
    found = {name: ordered[min(len(ordered) - 1, int(share * len(ordered)))] for name, share in at.items()}
    return {name: round(1000 * value, 1) for name, value in {**found, "max": ordered[-1]}.items()}


def cpu_seconds(process: int) -> float:
    """What a process has used so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(place: str, folder: Path, annotators: int, seconds: float) -> dict[str, object]:
    """Figures of one backend; ends the program if a promise was broken."""
    n = int(annotators * (seconds * 1.2 + 30))
    table = folder / "rows.csv"
    pd.DataFrame({"id": [f"s{row}" for row in range(n)], "x": [float(row) for row in range(n)]}).to_csv(
        table, index=False
    )
    Campaign.create(place, table, id_column="id", classes=CLASSES, evaluate=0, automatic=False).close()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    names = [f"annotator{number}" for number in range(annotators)]
    words = [word for name in names for word in ("--annotator", name)]
    command = [sys.executable, "-m", "ally", "label", place, "--share", "--no-browser", "--port", str(port), *words]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        secrets = {}
        while len(secrets) < annotators:
            line = server.stdout.readline()
            if not line:
                raise SystemExit("the server did not start")
            name, _, rest = line.strip().partition(" ")
            if name in names:
                secrets[name] = rest.rpartition("#")[2]
        histories = [History(name) for name in names]

        async def everybody() -> None:
            origin = f"http://127.0.0.1:{port}"
            await asyncio.gather(
                *(annotate(origin, secrets[one.name], seconds, one, seed) for seed, one in enumerate(histories))
            )

        before = cpu_seconds(server.pid)
        asyncio.run(everybody())
        cpu = cpu_seconds(server.pid) - before
    finally:
        server.terminate()
        server.wait(20)
    with Campaign.open(place) as campaign:
        wrong = violations(histories, campaign)
    if wrong:
        raise SystemExit("; ".join(wrong[:5]))
    answers = sum(len(history.told) for history in histories)
    return {
        "annotators": annotators,
        "answers": answers,
        "answers_per_second": round(answers / seconds, 1),
        "server_cpu_ms_per_answer": round(1000 * cpu / max(1, answers), 1),
        "load_average": round(os.getloadavg()[0], 1),
        "answer": milliseconds([value for history in histories for value in history.answer_seconds]),
        "next sample": milliseconds([value for history in histories for value in history.next_seconds]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--backend", nargs="+", default=["sqlite", "postgresql"])
    given = parser.parse_args()
    for backend in given.backend:
        with tempfile.TemporaryDirectory() as folder, places(backend, Path(folder)) as (new, _):
            figures = run(new(), Path(folder), given.annotators, given.seconds)
        print(json.dumps({"backend": backend, **figures}), flush=True)


if __name__ == "__main__":
    main()
