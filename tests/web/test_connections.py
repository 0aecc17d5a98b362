"""What somebody can do who only has a connection: hold it, dribble, never read, send what is no request."""

from __future__ import annotations

import contextlib
import logging
import re
import select
import socket
import time
from dataclasses import replace

import pytest
from conftest_web import CLASSES, serving, until, write_photos

from ally import Campaign
from ally.web import guard
from ally.web.connection import ConnectionLimits
from ally.web.server import Plan, choose_limits

QUICK = ConnectionLimits(head_seconds=0.5, write_seconds=0.5, write_bytes=65_536, most=20, most_of_address=12)
"""Limits that a test reaches in a second."""
OTHER = "127.0.0.2"


@pytest.fixture
def faults(caplog):
    """Mistakes of the server itself, which it writes to its own log."""
    logger = logging.getLogger("uvicorn.error")
    logger.addHandler(caplog.handler)
    yield lambda: [record.exc_text or record.getMessage() for record in caplog.records if record.exc_info]
    logger.removeHandler(caplog.handler)


@pytest.fixture(scope="module")
def quick(folder):
    write_photos(folder / "photos", 6, side=8)
    campaign = Campaign.create(folder / "quick.db", folder / "photos", classes=CLASSES, automatic=False, evaluate=0)
    with serving(campaign, Plan(rate=1e6, limits=QUICK)) as served:
        yield served


class Peer:
    """A connection as somebody hostile writes to it."""

    def __init__(self, served, address="127.0.0.1"):
        self.host = served.address[7:-1]
        port = int(self.host.rpartition(":")[2])
        self.socket = socket.create_connection(("127.0.0.1", port), 20, (address, 0))
        self.received = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, text, **more):
        self.socket.sendall(text.format(host=self.host, **more).encode())

    def statuses(self):
        return [int(code) for code in re.findall(rb"HTTP/1\.1 (\d{3}) ", self.received)]

    def read_until(self, words):
        self.socket.settimeout(20)
        while words not in self.received:
            data = self.socket.recv(65536)
            assert data, self.received
            self.received += data

    def is_closed(self, seconds=0.0):
        """Whether the server ended it, within this time."""
        self.socket.settimeout(max(seconds, 1e-3))
        try:
            while data := self.socket.recv(65536):
                self.received += data
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def seconds_until_closed(self, dribble=b"", most=15.0):
        """Sends one byte after another, as long as it may."""
        began = time.monotonic()
        while time.monotonic() - began < most and not self.is_closed(0.1):
            with contextlib.suppress(OSError):
                self.socket.sendall(dribble)
        return time.monotonic() - began


WHOLE = "GET /api/v1/answers HTTP/1.1\r\nHost: {host}\r\n\r\n"
HALF = "GET /api/v1/answers HTTP/1.1\r\nHost: {host}\r\nX-Slow: "


def test_a_head_has_its_time_on_a_connection_that_is_kept(quick):
    """Also one byte at a time, and also where it began before the answer to the request before it was there."""
    for first in (WHOLE, ""):
        for dribble in (b"", b"x"):
            with Peer(quick) as peer:
                peer.send(first)
                if first:
                    peer.read_until(b"}")
                peer.send(HALF)
                assert 0.4 < peer.seconds_until_closed(dribble) < 5
    with Peer(quick) as peer:
        peer.send(WHOLE + HALF)
        assert 0.4 < peer.seconds_until_closed(b"x") < 5
        assert peer.statuses() == [200]


def test_a_connection_may_rest_between_two_requests(quick):
    with Peer(quick) as peer:
        peer.send(WHOLE)
        peer.read_until(b"}")
        assert not peer.is_closed(4 * QUICK.head_seconds)
        peer.send(WHOLE)
        until(lambda: peer.is_closed(0.05) or len(peer.statuses()) == 2)
        assert peer.statuses() == [200, 200]


def test_a_connection_that_says_nothing_ends(quick):
    with Peer(quick) as peer:
        assert 0.4 < peer.seconds_until_closed() < 5


@pytest.mark.parametrize("kept", [False, True], ids=["new", "kept alive"])
def test_others_come_in_while_all_places_are_held(quick, kept):
    """Whoever holds them makes room at once, not when the deadline is over."""
    with contextlib.ExitStack() as stack:
        for number in range(3 * QUICK.most):
            peer = stack.enter_context(Peer(quick, f"127.0.0.{2 + number % 3}"))
            with contextlib.suppress(OSError):
                if kept:
                    peer.send(WHOLE)
                    peer.read_until(b"}")
                peer.send(HALF)
        began = time.monotonic()
        for address in ("127.0.0.1", OTHER):
            with Peer(quick, address) as honest:
                honest.send(WHOLE)
                honest.read_until(b"}")
                assert honest.statuses() == [200]
        assert time.monotonic() - began < QUICK.head_seconds


def test_one_address_has_some_of_the_places(quick, folder):
    """Even if all it opened are streams of events, which may last."""
    limits = replace(QUICK, head_seconds=60, most_of_address=6)
    with contextlib.ExitStack() as stack:
        served = stack.enter_context(serving(Campaign.open(folder / "quick.db"), Plan(limits=limits)))
        peers = [stack.enter_context(Peer(served, OTHER)) for _ in range(20)]
        until(lambda: sum(not peer.is_closed() for peer in peers) == 6)
        for peer in peers[-6:]:
            peer.send("GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n\r\n")
            peer.read_until(b"retry")
        with Peer(served, OTHER) as late:
            until(late.is_closed)
        assert not any(peer.is_closed() for peer in peers[-6:]), "what is in use stays"
        with Peer(served) as honest:
            honest.send(WHOLE)
            honest.read_until(b"}")


def test_places_are_for_a_proxy_and_no_more_than_files():
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        assert choose_limits(Plan()).most_of_address == 500
        assert choose_limits(Plan(share=True, hosts=("https://label.example.org",))).most_of_address == 1000
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        choose_limits(Plan())
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(2000, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("framing", ["Content-Length: 900000", "Transfer-Encoding: chunked"])
def test_the_rest_of_a_refused_body_is_not_awaited(quick, framing):
    """Answered before it was whole; what still drops in keeps nothing open."""
    with Peer(quick) as peer:
        peer.send(f"POST /api/v1/nothing HTTP/1.1\r\nHost: {{host}}\r\nOrigin: http://evil\r\n{framing}\r\n\r\n")
        assert peer.seconds_until_closed(b"1\r\n \r\n") < 5
        assert peer.statuses() == [403]


def test_a_connection_rests_for_a_while_only(quick, folder):
    limits = replace(QUICK, idle_seconds=1)
    with serving(Campaign.open(folder / "quick.db"), Plan(limits=limits)) as served, Peer(served) as peer:
        peer.send(WHOLE)
        peer.read_until(b"}")
        assert 0.5 < peer.seconds_until_closed() < 8


def test_what_breaks_the_rules_behind_an_answer_is_closed(quick, faults):
    """There is no second answer to send."""
    head = "POST /api/v1/answers HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{origin}\r\nTransfer-Encoding: chunked\r\n"
    for method in ("HEAD", "CONNECT"):
        with Peer(quick) as peer:
            peer.send(method + head[4:].replace("{origin}", "{host}") + "\r\nno chunk\r\n")
            assert peer.seconds_until_closed() < 5
            assert peer.statuses() == [400], method
    for origin, status in (("evil", 403), ("{host}", 415)):
        with Peer(quick) as peer:
            peer.send(head.replace("{origin}", origin) + "\r\n")
            peer.read_until(b"}")
            peer.send("no chunk\r\n\r\n")
            assert peer.seconds_until_closed() < 5
            assert peer.statuses() == [status]
    for piece in ("no chunk\r\n", "1\r\n{{no end", "-1\r\n", "ffffffffffffffffffffff\r\n"):
        with Peer(quick) as peer:
            peer.send(head.replace("{origin}", "{host}") + "Content-Type: application/json\r\n\r\n1\r\n \r\n")
            peer.send(piece)
            assert peer.seconds_until_closed() < 5
            assert peer.statuses() == [400], piece
        with Peer(quick) as peer:
            peer.send(head.replace("{origin}", "{host}") + "Content-Type: application/json\r\n\r\n" + piece)
            assert peer.seconds_until_closed() < 5
            assert peer.statuses() == [400], "head and body in one"
    with Peer(quick) as peer:
        peer.send("GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n\r\n")
        peer.read_until(b"retry")
        peer.send("\x00\x01 no request\r\n\r\n" * 1000)
        assert not peer.is_closed(0.1), "it is not read before the stream is over"
    assert faults() == []


def test_a_chunked_body_without_end(quick, monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.5)
    head = (
        "POST /api/v1/answers HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    with Peer(quick) as slow, Peer(quick) as large:
        slow.send(head)
        assert slow.seconds_until_closed(b"1\r\n \r\n") < 5
        assert slow.statuses() == [408]
        large.send(head)
        piece = b"10000\r\n" + b" " * 65536 + b"\r\n"
        with contextlib.suppress(OSError):
            for _ in range(20):
                large.socket.sendall(piece)
        assert large.seconds_until_closed() < 5
        assert large.statuses() in ([413], []), "or it was closed while it still wrote"


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_no_request_is_smuggled_in_the_body_of_another(quick, method):
    """A proxy that believes one length, and a server that believes the other, would disagree where the next begins."""
    inner = "0\r\n\r\nGET /api/v1/answers HTTP/1.1\r\nHost: {host}\r\n\r\n"
    for framing in (
        "Content-Length: 70\r\nTransfer-Encoding: chunked",
        "Content-Length: 5\r\nContent-Length: 6",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Content-Length: 70\r\n Transfer-Encoding: chunked",
    ):
        with Peer(quick) as peer:
            head = "Origin: http://{host}\r\nContent-Type: application/json\r\n" + framing
            peer.send(f"{method} /api/v1/answers HTTP/1.1\r\nHost: {{host}}\r\n{head}\r\n\r\n{inner}")
            assert peer.seconds_until_closed() < 5
            assert peer.statuses() in ([400], [501], []), (framing, peer.received)


def test_a_request_to_look_has_no_body(quick, faults):
    """A stream of events waited for it, and broke in the middle."""
    for framing in ("Content-Length: 5", "Transfer-Encoding: chunked"):
        with Peer(quick) as peer:
            peer.send(f"GET /api/v1/events HTTP/1.1\r\nHost: {{host}}\r\n{framing}\r\n\r\n")
            assert peer.seconds_until_closed() < 5
            assert peer.statuses() == [400]
    assert faults() == []


ASSET = "GET /assets/style.css HTTP/1.1\r\nHost: {host}\r\n\r\n"


@contextlib.contextmanager
def slow_reader(quick, buffer):
    """Asked for much more than the kernel keeps for it."""
    with Peer(quick) as peer:
        peer.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        peer.send(ASSET * 2000)
        yield peer


def is_dropped(peer):
    """Found out by writing, without reading what came before."""
    peer.socket.settimeout(0.05)
    try:
        peer.socket.send(b"G")
    except TimeoutError:
        return False
    except OSError:
        return True
    return False


def test_whoever_never_reads_is_let_go(quick):
    with slow_reader(quick, 4096) as peer:
        began = time.monotonic()
        until(lambda: is_dropped(peer), 15)
        assert time.monotonic() - began > 0.4


def test_whoever_reads_slowly_is_not(quick):
    """For far longer than an answer may wait that nobody reads."""
    with slow_reader(quick, 65_536) as peer:
        end = time.monotonic() + 4 * QUICK.write_seconds
        while time.monotonic() < end:
            for _ in range(4):
                assert peer.socket.recv(32_768)
            select.select([], [], [peer.socket], 0.02)
        assert not is_dropped(peer)


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("GET /api/v1/answers", "Host: {host}.\r\n", 403),
        ("GET /api/v1/answers", "Host: 127.0.0.2\r\n", 403),
        ("GET /api/v1/answers", "Host: [::1%25lo]:80\r\n", 403),
        ("GET /api/v1/answers", "Host: user@{host}\r\n", 403),
        ("GET /api/v1/answers", "Host: {host}, evil.example\r\n", 403),
        ("GET /api/v1/answers", "Host: {host}\r\nHost: evil.example\r\n", 400),
        ("GET /api/v1/answers", "Host: {host}\r\nHost: {host}\r\n", 400),
        ("GET /api/v1/answers", "", 400),
        ("GET /api/v1/answers", "Host:\r\n", 403),
        ("GET http://evil.example/api/v1/answers", "Host: {host}\r\n", 404),
        ("GET http://{host}/api/v1/answers", "Host: evil.example\r\n", 403),
        ("GET *", "Host: {host}\r\n", 404),
        ("CONNECT evil.example:443", "Host: {host}\r\n", 403),
        ("OPTIONS *", "Host: {host}\r\n", 403),
        ("TRACE /api/v1/answers", "Host: {host}\r\n", 403),
        ("GET /api/v1/answers", "Host: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n", 200),
        ("GET /api/v1/answers", "Host: {host}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n", 200),
        ("GET /api/v1/answers", "Host: {host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400),
        ("GET /api/v1/answers", "Host: {host}\r\nContent-Length: " + "9" * 5000 + "\r\n", 400),
        ("GET /api/v1/answers", "Host: {host}\r\nContent-Length: +1\r\n", 400),
        ("GET /api/v1/answers", "Host: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        ("GET /api/v1/answers", "Host: {host}\r\nTransfer-Encoding: gzip, chunked\r\n", 400),
        ("GET /api/v1/answers", "Host: {host}\r\nX: 1\r\n" + "a: b\r\n" * 9000, 431),
        ("GET /api/v1/answers", "Host: {host}\r\nX:" + "a" * 70_000 + "\r\n", 431),
        ("GET /api/v1/answers", "Host: {host}\r\nX-HTTP-Method-Override: POST\r\nX-Forwarded-Host: e\r\n", 200),
        ("GET /api/v1/answers\x00", "Host: {host}\r\n", 400),
        ("GET /%00%ff%c0%ae/..%2f..%2fetc", "Host: {host}\r\n", 404),
        ("GET /api/v1/samples/image?id=00001.png", "Host: {host}\r\nRange: bytes=0-1,2-3,x\r\n", 206),
        ("GET /api/v1/samples/image?id=00001.png", "Host: {host}\r\nRange: bytes=99999999999999999999-\r\n", 416),
        ("GET /api/v1/samples/image?id=00001.png", "Host: {host}\r\nRange: bytes=" + "0-1," * 500 + "\r\n", 200),
        ("GET /api/v1/samples/image?id=00001.png", "Host: {host}\r\nIf-Range: x\r\nRange: lines=0-1\r\n", 200),
    ],
)
def test_odd_requests_get_a_plain_answer(quick, faults, target, headers, status):
    with Peer(quick) as peer:
        with contextlib.suppress(OSError):
            peer.send(f"{target} HTTP/1.1\r\n{headers}\r\n")
        until(lambda: peer.is_closed(0.05) or peer.statuses())
        assert peer.statuses()[:1] == [status], peer.received
        assert b"Traceback" not in peer.received
    assert faults() == []
