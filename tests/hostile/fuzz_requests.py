"""Requests to a labelling page, changed at random: each gets an answer below 500, or 503 to wait, in time."""

from __future__ import annotations

import http.client
import json
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mutations import SCALARS, change_bytes, change_value

PATIENCE = 10.0
MOST_BYTES = 2**30
ENDLESS = "/events"
STARTS_PROCESSES = "/training"
USUAL = ("s1", "s41", "1", "2", "20", "thumb", "a")


LINES = (
    b"GET /api/v1/answers HTTP/1.1", b"POST /api/v1/answers HTTP/1.1", b"GET /api/v1/events HTTP/1.1",
    b"POST /api/v1/queries HTTP/1.0", b"HEAD / HTTP/1.1", b"PATCH /api/v1/settings HTTP/1.1", b"GET / HTTP/0.9",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n", b"CONNECT x:1 HTTP/1.1", b"OPTIONS * HTTP/1.1", b"GET /assets/main.js HTTP/1.1",
    b"GET http://evil.example/ HTTP/1.1", b"\x16\x03\x01\x02\x00\x01\x00",
)  # fmt: skip
FIELDS = (
    b"Content-Type: application/json", b"Content-Length: 5", b"Content-Length: 0", b"Transfer-Encoding: chunked",
    b"Expect: 100-continue", b"Expect: x", b"Connection: close", b"Connection: Upgrade\r\nUpgrade: websocket",
    b"Upgrade: h2c", b"Range: bytes=0-3,5-1,-2", b"If-None-Match: \xff", b"Cookie: \xff=;;=", b"X:\r\n folded",
    b"Accept-Encoding: gzip;q=0, br", b"If-Range: \xe9", b"Trailer: x", b"Sec-Fetch-Site: cross-site", b"Host: e",
)  # fmt: skip
BODIES = (
    b"", b"{}", b'{"key":"k","n":1}', b"5\r\nhello\r\n", b"0\r\n\r\n", b"0\r\nT: x\r\n\r\n", b"zz\r\n", b"\x00\xff",
    b'11\r\n{"key":"k","n":1}\r\n0\r\n\r\n',
)  # fmt: skip
PROGRAM = """
import sys
from ally import Campaign
from ally.web.server import Plan, prepare
with Campaign.open(sys.argv[1]) as campaign:
    ready = prepare(campaign, Plan(rate=1e6))
    ready.serve(lambda: print(ready.address, flush=True))
"""
"""`ally label`, without a limit on requests a second."""


class Server:
    """A labelling page in a process of its own."""

    def __init__(self, campaign: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, campaign], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("http://"), line
        self.port = int(line.rstrip("/\n").rpartition(":")[2])

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def read_peak(self) -> int:
        """The most memory that it had, in bytes."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        assert found is not None
        return int(found[1]) * 1024

    def end(self) -> str:
        """What it printed to the end."""
        self.process.send_signal(signal.SIGINT)
        printed, _ = self.process.communicate(timeout=30)
        return printed


class Requests:
    """Draws requests from the server's own schema, and changes them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        connection.request("GET", "/api/openapi.json")
        self._schema = json.loads(connection.getresponse().read())
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in self._schema["paths"].items()
            for method, operation in methods.items()
            if not path.endswith((ENDLESS, STARTS_PROCESSES))
        ]

    def draw(self, rng: random.Random) -> tuple[bytes, bool]:
        """One request as it goes over the wire, and whether its framing is whole, so that an answer must come."""
        if rng.random() < 0.3:
            return self._draw_pieces(rng), False
        method, path, operation = rng.choice(self._operations)
        path = re.sub(r"\{[^}]+\}", lambda _: self._draw_text(rng), path)
        pairs = [
            f"{one['name']}={self._draw_text(rng)}"
            for one in operation.get("parameters", ())
            if one["in"] == "query" and rng.random() < 0.7
        ]
        lines = [
            f"{method} {path}{'?' * bool(pairs)}{'&'.join(pairs)} HTTP/1.1",
            f"Host: 127.0.0.1:{self._server.port}",
        ]
        if method != "GET":
            lines += [f"Origin: {self._server.origin}", "Content-Type: application/json"]
        body = b""
        if "requestBody" in operation:
            drawn = self._draw(operation["requestBody"]["content"]["application/json"]["schema"], rng)
            for _ in range(rng.choice((0, 0, 1, 2))):
                drawn = change_value(drawn, rng)
            body = json.dumps(drawn).encode("utf-8", "surrogatepass")
            if rng.random() < 0.1 and body:
                body = change_bytes(body, rng)
        lines += [f"Content-Length: {len(body)}", "Connection: close", "", ""]
        whole = "\r\n".join(lines).encode("utf-8", "surrogatepass") + body
        return (change_bytes(whole, rng), False) if rng.random() < 0.1 else (whole, True)

    def _draw_pieces(self, rng: random.Random) -> bytes:
        """Requests one behind the other, put together from parts that need not fit."""
        server = self._server
        ours = (f"Host: 127.0.0.1:{server.port}".encode(), f"Origin: {server.origin}".encode())
        return b"".join(
            b"\r\n".join((rng.choice(LINES), *ours[: rng.choice((0, 1, 2, 2))], *rng.sample(FIELDS, rng.randint(0, 6))))
            + b"\r\n\r\n"
            + rng.choice(BODIES)
            for _ in range(rng.choice((1, 1, 2, 4)))
        )

    def send(self, request: bytes, whole: bool) -> tuple[int | None, float]:
        """The status of the answer, None where the server only closed, and how long it took."""
        begun = time.monotonic()
        with socket.create_connection(
            ("127.0.0.1", self._server.port), timeout=2 * PATIENCE if whole else 0.2
        ) as connection:
            connection.sendall(request)
            head = b""
            while b"\r\n" not in head:
                more = connection.recv(4096)
                if not more:
                    return None, time.monotonic() - begun
                head += more
        return int(head.split()[1]), time.monotonic() - begun

    def _draw_text(self, rng: random.Random) -> str:
        drawn = rng.choice(USUAL if rng.random() < 0.7 else SCALARS)
        return quote(str(drawn).encode("utf-8", "surrogatepass")[:2000], safe="" if rng.random() < 0.8 else "/")

    def _draw(self, schema: dict[str, Any], rng: random.Random) -> Any:
        if "$ref" in schema:
            return self._draw(self._schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]], rng)
        if "anyOf" in schema:
            return self._draw(rng.choice(schema["anyOf"]), rng)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            needed = schema.get("required", ())
            named = schema.get("properties", {}).items()
            return {name: self._draw(one, rng) for name, one in named if name in needed or rng.random() < 0.6}
        if kind == "array":
            return [self._draw(schema.get("items", {}), rng) for _ in range(rng.choice((1, 1, 3)))]
        draws = {
            "string": ("s1", "s41", "a", "key"),
            "integer": (1, 2, 20),
            "number": (0.5, 2.0),
            "boolean": (True, False),
        }
        return rng.choice(draws.get(str(kind), (None, "a", 1)))


def fuzz_requests(campaign: Path, seconds: float, first: int, step: int = 1) -> Iterator[tuple[int, str, str | None]]:
    """Sends changed requests; gives the number of each, the kind of its outcome, and its fault in words."""
    server = Server(campaign)
    requests = Requests(server)
    end, number = time.monotonic() + seconds, first
    while time.monotonic() < end and server.process.poll() is None:
        request, whole = requests.draw(random.Random(number))
        fault, kind = None, "request closed"
        try:
            status, took = requests.send(request, whole)
            kind = "request closed" if status is None else f"request {status // 100}xx"
            if status is not None and status >= 500 and status != 503:
                fault = f"status {status} for {request[:300]!r}"
            elif took > PATIENCE:
                fault = f"an answer after {took:.1f} seconds for {request[:300]!r}"
        except OSError as error:
            # A reset is how a server closes while a request that it refused still arrives.
            if whole and not isinstance(error, (ConnectionResetError, BrokenPipeError)):
                fault = f"{error!r} for {request[:300]!r}"
        yield number, kind, fault
        number += step
    if server.process.poll() is not None:
        yield number, "request", f"the server ended with {server.process.poll()}"
        return
    if server.read_peak() > MOST_BYTES:
        yield number, "request", f"the server took {server.read_peak() / 2**20:.0f} MB"
    printed = server.end()
    if "Traceback" in printed:
        yield number, "request", f"the server printed {printed[-2000:]}"
