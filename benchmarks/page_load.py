"""Many annotators in the labelling page at once: how long from an answer to the next sample, and is anything lost?

    python benchmarks/page_load.py [--annotators 50] [--seconds 120] [--backend sqlite postgresql]

Each annotator signs in by a link, listens to the events, asks for ten samples at a time, and every second sends an
answer and fetches the next sample, as the page does; one in twenty answers is sent twice under its key, one in thirty
is undone. The server is `ally label --share` in a process of its own; the clients write to plain sockets, so that they
take little of the machine. Afterwards the clients' histories are compared with the record: every answer that was
acknowledged is there once, and no sample was dealt to two people.
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
from typing import Any
from urllib.parse import quote

import pandas as pd

from ally import Campaign
from store_server import places

CLASSES = ("low", "high")
AIM = 150.0
"""Milliseconds from an answer to the next sample that 99 in 100 stay below."""


@dataclass
class History:
    """What one annotator saw."""

    name: str
    dealt: list[str] = field(default_factory=list)
    told: dict[int, tuple[str, str]] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)
    answer_seconds: list[float] = field(default_factory=list)
    next_seconds: list[float] = field(default_factory=list)


class Line:
    """One connection to the server, kept open; one request at a time."""

    def __init__(self, port: int, cookie: str = "") -> None:
        self._port, self.cookie = port, cookie
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """The answer's JSON; ends the program where the server refuses."""
        reader = await self._send(method, path, body)
        head = await _head(reader)
        data = await reader.readexactly(int(head["content-length"]))
        if head[""] != "200":
            raise SystemExit(f"{method} {path}: {head['']} {data.decode()}")
        if "set-cookie" in head:
            self.cookie = head["set-cookie"].partition(";")[0]
        return dict(json.loads(data))

    async def listen(self) -> None:
        """Reads the stream of events for as long as it lasts."""
        reader = await self._send("GET", "/events", None)
        while await reader.read(65536):
            pass

    async def _send(self, method: str, path: str, body: object) -> asyncio.StreamReader:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        host = f"127.0.0.1:{self._port}"
        data = b"" if body is None else json.dumps(body).encode()
        lines = [
            f"{method} /api/v1{path} HTTP/1.1",
            f"Host: {host}",
            f"Origin: http://{host}",
            f"Cookie: {self.cookie}",
        ]
        if body is not None:
            lines += ["Content-Type: application/json", f"Content-Length: {len(data)}"]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        return reader

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()


async def _head(reader: asyncio.StreamReader) -> dict[str, str]:
    """Headers of an answer by their small names; the status under the empty one."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    pairs = (line.partition(": ") for line in lines if line)
    return {"": first.split(" ")[1], **{name.lower(): value for name, _, value in pairs}}


async def annotate(port: int, secret: str, seconds: float, history: History, seed: int) -> None:
    rng = random.Random(seed)
    api = Line(port)
    await api.call("POST", "/session", {"secret": secret})
    beside, events = Line(port, api.cookie), Line(port, api.cookie)
    listening = asyncio.create_task(events.listen())
    try:
        await asyncio.sleep(rng.random())
        await _label(api, beside, time.monotonic() + seconds, history, rng)
    finally:
        listening.cancel()
        for line in (api, beside, events):
            line.close()


async def _label(api: Line, beside: Line, end: float, history: History, rng: random.Random) -> None:
    """Labels until `end`; `beside` fetches samples while answers travel."""
    waiting: list[tuple[int, str]] = []
    asked = sent = 0
    while (began := time.monotonic()) < end:
        if len(waiting) < 3:
            asked += 1
            query = await api.call("POST", "/queries", {"key": f"q{asked}", "n": 10})
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

        async def tell(body: object = body, began_answer: float = began_answer) -> dict[str, Any]:
            found = (await api.call("POST", "/answers", body))["outcomes"][0]
            history.answer_seconds.append(time.perf_counter() - began_answer)
            return dict(found)

        outcome, _ = await asyncio.gather(tell(), beside.call("GET", f"/samples?id={quote(following)}"))
        history.next_seconds.append(time.perf_counter() - began_answer)
        if outcome["state"] != "recorded":
            raise SystemExit(f"{history.name}: {outcome}")
        history.told[outcome["number"]] = (id, label)
        if rng.random() < 1 / 20:
            again = (await api.call("POST", "/answers", body))["outcomes"][0]
            if again["number"] != outcome["number"]:
                raise SystemExit(f"{history.name}: sent again, answer {outcome['number']} became {again['number']}")
        if rng.random() < 1 / 30:
            await api.call("POST", "/undo", {"key": f"u{sent}", "number": outcome["number"]})
            history.undone.add(outcome["number"])
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


def run(place: str, folder: Path, annotators: int, seconds: float) -> dict[str, Any]:
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
    began = time.monotonic()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        secrets: dict[str, str] = {}
        ready: dict[str, float] = {}
        while len(secrets) < annotators:
            line = server.stdout.readline()
            if not line:
                raise SystemExit("the server did not start")
            if "shared at" in line:
                ready = {"seconds": round(time.monotonic() - began, 2), "cpu": round(cpu_seconds(server.pid), 2)}
            name, _, rest = line.strip().partition(" ")
            if name in names:
                secrets[name] = rest.rpartition("#")[2]
        histories = [History(name) for name in names]

        async def everybody() -> None:
            await asyncio.gather(
                *(annotate(port, secrets[one.name], seconds, one, seed) for seed, one in enumerate(histories))
            )

        before, mine = cpu_seconds(server.pid), time.process_time()
        asyncio.run(everybody())
        cpu, mine = cpu_seconds(server.pid) - before, time.process_time() - mine
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
        "ready": ready,
        "answers": answers,
        "answers_per_second": round(answers / seconds, 1),
        "server_cpu_ms_per_answer": round(1000 * cpu / max(1, answers), 1),
        "clients_cpu_ms_per_answer": round(1000 * mine / max(1, answers), 1),
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
        print(f"{backend}: ready after {figures['ready']['seconds']} s ({figures['ready']['cpu']} s of CPU)")
        for part in ("answer", "next sample"):
            late = figures[part]["p99"]
            print(f"{backend}: {part}: p50 {figures[part]['p50']} ms, p99 {late} ms", end="")
            print(f" (aim {AIM:g} ms: {'met' if late < AIM else 'missed'})")
        costs = figures["server_cpu_ms_per_answer"], figures["clients_cpu_ms_per_answer"]
        print(f"{backend}: CPU per answer: server {costs[0]} ms, clients {costs[1]} ms")
        print(f"{backend}: checker: {figures['answers']} answers on record once each, none lost, no sample dealt twice")


if __name__ == "__main__":
    main()
