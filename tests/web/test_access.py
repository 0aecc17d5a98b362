"""Who may come in: never by what a campaign's file says, the same at every server, and until they are sent away."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from conftest_web import CLASSES, free_port, serving, until, write_photos

from ally import Campaign
from ally.errors import InputError, StoreDamaged
from ally.web.access import Access, _digest, open_access
from ally.web.access_list import FileList
from ally.web.server import Plan, choose_address, prepare
from ally.web.shared_look import SharedLook
from ally.web.signed_rows import KIND, SignedRows, load_page_key

SETTINGS = {"classes": CLASSES, "automatic": False, "evaluate": 0}


@pytest.fixture
def place(tmp_path):
    write_photos(tmp_path / "photos", 6, side=8)
    Campaign.create(tmp_path / "a.db", tmp_path / "photos", **SETTINGS).close()
    return tmp_path / "a.db"


@pytest.fixture
def shared(place):
    with serving(Campaign.open(place), Plan(share=True)) as served:
        yield served


def signed_in(served, name, role="annotator"):
    access = served.ready.page.access
    return served.client(cookies={access.cookie_name: access.exchange(access.new_link(name, role))})


def test_nothing_in_a_file_lets_anybody_in(place):
    """A session of an owner, planted in the file as versions before kept them, and as rows for servers are kept."""
    cookie, link = "planted-cookie", "planted-link"
    with Campaign.open(place) as campaign:
        for secret, kind in ((cookie, "page session"), (link, "page link")):
            planted = {"annotator": "eve", "role": "owner", "digest": _digest(secret), "until": 9e9}
            campaign.page.log((kind, planted), (KIND, {"entry": json.dumps(planted), "signature": "0" * 64}))
    with serving(Campaign.open(place), Plan(share=True)) as served:
        for name in ("ally-session", served.ready.page.access.cookie_name):
            with served.client(cookies={name: cookie}) as eve:
                assert eve.get("/campaign").status_code == 401
        with served.client() as eve:
            assert eve.post("/session", json={"secret": link}).status_code == 403
        assert [person.annotator for person, _ in served.ready.page.access.people()] != ["eve"]


def test_a_copy_holds_nothing_of_who_may_come_in(shared, place):
    access = shared.ready.page.access
    cookie = access.exchange(access.new_link("ann"))
    data = place.read_bytes()
    assert _digest(cookie).encode() not in data
    assert not any("page" in event.kind for event in shared.campaign.page.events())


def test_whoever_is_invited_again_stays_signed_in(shared):
    access = shared.ready.page.access
    with signed_in(shared, "ann") as first:
        access.end("ann")
        with signed_in(shared, "ann") as again:
            assert (first.get("/campaign").status_code, again.get("/campaign").status_code) == (401, 200)
            (cookie,) = again.cookies.values()
    restarted, problem = open_access(shared.campaign, None)
    assert restarted.person(cookie).annotator == "ann"
    assert problem == ""


def test_two_servers_agree(shared, place):
    with serving(Campaign.open(place), Plan(share=True)) as other:
        secret = shared.ready.page.access.new_link("ann")
        with other.client() as ann:
            assert ann.post("/session", json={"secret": secret}).status_code == 200
            cookies = dict(ann.cookies)
        with shared.client() as late:
            assert late.post("/session", json={"secret": secret}).status_code == 403, "used at the other server"
        with shared.client(cookies=cookies) as here, other.client(cookies=cookies) as there:
            assert (here.get("/campaign").status_code, there.get("/campaign").status_code) == (200, 200)
            other.ready.page.access.end("ann")
            assert (here.get("/campaign").status_code, there.get("/campaign").status_code) == (401, 401)


def test_a_link_is_used_once_however_many_try(place):
    with Campaign.open(place) as campaign:
        servers = [open_access(campaign, None)[0] for _ in range(8)]
        secret = servers[0].new_link("ann")
        with ThreadPoolExecutor(8) as pool:
            cookies = list(pool.map(lambda access: access.exchange(secret), servers))
        assert sum(cookie is not None for cookie in cookies) == 1
        for access in servers:
            access.close()


def test_every_change_is_seen_at_once(place):
    """Files that replace each other quickly have one size, and often one time."""
    with Campaign.open(place) as campaign:
        one, other = Access(FileList(campaign.id), None), Access(FileList(campaign.id), None)
        for _ in range(100):
            cookie = one.exchange(one.new_link("ann"))
            assert other.person(cookie) is not None
            one.end("ann")
            assert other.person(cookie) is None
        one.close()
        other.close()


def test_the_list_does_not_grow(place):
    now = [0.0]
    with Campaign.open(place) as campaign:
        entries = FileList(campaign.id)
        access = Access(entries, None, clock=lambda: now[0])
        for _ in range(50):
            access.exchange(access.new_link("ann"))
            now[0] += 86400.0
        assert len(access.people()) == 1
        assert len(entries.read().list_valid(0.0)) <= 31
        access.close()


def test_a_stream_ends_when_its_person_is_sent_away(shared):
    with signed_in(shared, "ann") as ann, signed_in(shared, "bob") as bob:
        with ann.stream("GET", "/events") as stream, bob.stream("GET", "/events") as others:
            lines, kept = stream.iter_lines(), others.iter_lines()
            next(lines)
            next(kept)
            shared.ready.page.access.end("ann")
            began = time.monotonic()
            for _ in lines:
                pass
            assert time.monotonic() - began < 5
            shared.campaign.relabel({"00001.png": CLASSES[0]})
            assert next(line for line in kept if '"last_answer":1' in line)
        assert ann.get("/events").status_code == 401


def test_streams_opened_at_once_are_counted(shared):
    """All are sent before any answer is read."""
    access = shared.ready.page.access
    cookie = access.exchange(access.new_link("ann"))
    port = int(shared.origin.rpartition(":")[2])
    head = (
        f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {access.cookie_name}={cookie}\r\n\r\n"
    ).encode()
    lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(60)]
    try:
        for line in lines:
            line.sendall(head)
        codes = [line.recv(12) for line in lines]
    finally:
        for line in lines:
            line.close()
    assert (codes.count(b"HTTP/1.1 200"), codes.count(b"HTTP/1.1 429")) == (8, 52)
    with shared.client(cookies={access.cookie_name: cookie}) as ann:

        def opens():
            with ann.stream("GET", "/events") as stream:
                return stream.status_code == 200

        until(opens, what="a place that is free again")


def test_pages_on_two_ports_do_not_sign_each_other_out(shared, tmp_path):
    """A browser sends the cookies of a host to all its ports, and those that other programs set."""
    with (
        serving(Campaign.create(tmp_path / "b.db", tmp_path / "photos", **SETTINGS), Plan(share=True)) as other,
        shared.client() as browser,
    ):
        for served in (shared, other):
            secret = served.ready.page.access.new_link("ann")
            signed = browser.post(f"{served.origin}/api/v1/session", json={"secret": secret}, headers=origin(served))
            assert signed.status_code == 200
        for served in (shared, other):
            assert browser.get(f"{served.origin}/api/v1/campaign", headers=origin(served)).status_code == 200
        name = shared.ready.page.access.cookie_name
        sent = f'junk={{"a": [1]}}; {name}=planted; {name}={browser.cookies[name]}; broken'
        with shared.client() as more:
            assert more.get("/campaign", headers={"Cookie": sent}).status_code == 200


def origin(served):
    return {"Origin": served.origin}


def test_without_a_state_folder_access_ends_with_the_server(place, tmp_path, monkeypatch):
    taken = tmp_path / "a file"
    taken.write_text("")
    monkeypatch.setenv("ALLY_STATE", str(taken / "state"))
    with serving(Campaign.open(place), Plan(share=True)) as served:
        assert any("end with this server" in line for line in served.ready.lines)
        with signed_in(served, "ann") as ann:
            assert ann.get("/campaign").status_code == 200
            (cookie,) = ann.cookies.values()
    with Campaign.open(place) as campaign:
        assert open_access(campaign, None)[0].person(cookie) is None


def test_a_damaged_list_lets_nobody_in(shared, tmp_path, monkeypatch):
    with signed_in(shared, "ann") as ann:
        path = next(path for path in state_files() if shared.campaign.id in path.name and path.suffix == ".json")
        path.write_text("{")
        response = ann.get("/campaign")
        assert response.status_code == 503
        assert str(path) not in response.text
        path.unlink()
        assert ann.get("/campaign").status_code == 401


def state_files():
    from ally.state import find_state_folder

    return list((find_state_folder() / "access").iterdir())


def test_the_list_is_private(shared):
    modes = {path.stat().st_mode & 0o777 for path in state_files() if shared.campaign.id in path.name}
    assert modes == {0o600}


ECHO = """#!/bin/sh
echo "$@" > {told}.part
mv {told}.part {told}
"""


@pytest.fixture
def opened_by_command(place, tmp_path, monkeypatch):
    """`ally label --share` with a browser that writes down its arguments: the process, the address, the argument."""
    told = tmp_path / "arguments"
    program = tmp_path / "browser.sh"
    program.write_text(ECHO.format(told=told))
    program.chmod(0o700)
    monkeypatch.setenv("BROWSER", f"{program} %s")
    port = free_port()
    command = [sys.executable, "-m", "ally", "label", str(place), "--share", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        until(lambda: "you (owner)" in process.stdout.readline(), what="the owner's link")
        (argument,) = until(lambda: told.exists() and told.read_text().split(), what="a browser")
        yield process, f"http://127.0.0.1:{port}/", argument
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_the_owners_link_is_in_no_arguments(opened_by_command):
    """All users of a machine can read them. The browser gets a file that only its user can read."""
    process, address, argument = opened_by_command
    redirect = Path(urlsplit(argument).path)
    (secret,) = set(re.findall(re.escape(address) + r"#([\w-]{43})", redirect.read_text()))
    assert secret not in argument
    assert secret not in Path(f"/proc/{process.pid}/cmdline").read_text()
    assert (redirect.stat().st_mode & 0o777, redirect.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0
    assert not redirect.parent.exists()


@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_the_browser_finds_its_way(opened_by_command, browser):
    _, address, argument = opened_by_command
    tab = browser.new_page()
    tab.goto(argument)
    tab.wait_for_url(address)  # the secret has left the address bar
    until(lambda: tab.evaluate("document.querySelector('.stage')?.dataset.id"), what="a sample")
    assert tab.request.get(f"{address}api/v1/links").status == 200, "as the owner"
    tab.close()


@pytest.mark.long
@pytest.mark.xdist_group("browser")
def test_two_pages_in_one_browser(shared, tmp_path, browser):
    """Cookies of a host go to all its ports."""
    campaign = Campaign.create(tmp_path / "b.db", tmp_path / "photos", **SETTINGS)
    with serving(campaign, Plan(share=True)) as other:
        context = browser.new_context()
        tabs = [context.new_page() for _ in range(2)]
        for tab, served in zip(tabs, (shared, other), strict=True):
            tab.goto(f"{served.address}#{served.ready.page.access.new_link('ann')}")
            until(lambda tab=tab: tab.evaluate("document.querySelector('.stage')?.dataset.id"), what="a sample")
        for tab in tabs:
            tab.reload()
            until(lambda tab=tab: tab.evaluate("document.querySelector('.stage')?.dataset.id"), what="it stays")
        assert len(context.cookies()) == 2
        assert all(cookie["httpOnly"] and cookie["sameSite"] == "Strict" for cookie in context.cookies())
        context.close()


# Servers on several machines


@pytest.fixture
def on_server(new_database, tmp_path):
    write_photos(tmp_path / "photos", 6, side=8)
    url = new_database()
    Campaign.create(url, tmp_path / "photos", **SETTINGS).close()
    return url


KEY, OTHER_KEY = b"1" * 32, b"2" * 32


def signed(url, key=KEY):
    campaign = Campaign.open(url)
    return campaign, Access(SignedRows(campaign, key), None)


def test_machines_with_one_key_agree(on_server):
    (first, here), (second, there), (third, stranger) = (signed(on_server, key) for key in (KEY, KEY, OTHER_KEY))
    secret = here.new_link("ann")
    assert stranger.exchange(secret) is None
    cookie = there.exchange(secret)
    assert here.person(cookie).annotator == there.person(cookie).annotator == "ann"
    assert here.exchange(secret) is None
    assert stranger.person(cookie) is None
    here.end("ann")
    assert there.person(cookie) is None
    again = there.exchange(here.new_link("ann"))
    for campaign in (first, second, third):
        campaign.close()
    campaign, restarted = signed(on_server)
    assert (restarted.person(cookie), restarted.person(again).annotator) == (None, "ann")
    campaign.close()


def rows(url):
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    return connection, connection.execute(
        "SELECT number, detail FROM events WHERE kind = %s ORDER BY number", [KIND]
    ).fetchall()


def test_rows_that_are_not_signed_or_not_in_their_place_let_nobody_in(on_server):
    campaign, access = signed(on_server)
    cookie = access.exchange(access.new_link("ann"))
    access.end("ann")
    stays = access.exchange(access.new_link("bob"))
    connection, kept = rows(on_server)
    entry = json.loads(json.loads(kept[1][1])["entry"])
    forged = json.dumps({**entry, "annotator": "eve", "role": "owner", "place": 99, "digest": _digest("x")})
    for detail in (
        kept[1][1],  # the session that was ended, once more
        json.dumps({"entry": forged, "signature": json.loads(kept[1][1])["signature"]}),
        json.dumps({"entry": forged}),
        json.dumps({"entry": 1, "signature": "é\ud800"}),
        "{}",
    ):
        connection.execute("INSERT INTO events SELECT max(number) + 1, 0, %s, %s FROM events", [KIND, detail])
    for found in (access, signed(on_server)[1]):
        assert found.person(cookie) is None
        assert found.person("x") is None
        assert found.person(stays).annotator == "bob"
    connection.close()
    campaign.close()


def test_a_row_that_is_missing_ends_what_came_before(on_server):
    """It may have said that somebody was sent away."""
    campaign, access = signed(on_server)
    cookie = access.exchange(access.new_link("ann"))
    access.end("ann")
    later = access.exchange(access.new_link("bob"))
    connection, kept = rows(on_server)
    connection.execute("DELETE FROM events WHERE number = %s", [kept[2][0]])
    found = signed(on_server)[1]
    assert (found.person(cookie), found.person(later).annotator) == (None, "bob")
    connection.close()
    campaign.close()


def test_a_list_set_back_is_noticed_by_a_machine_that_saw_the_later_one(on_server):
    """Also by a server that starts afterwards."""
    campaign, access = signed(on_server)
    cookie = access.exchange(access.new_link("ann"))
    access.end("ann")
    assert access.person(cookie) is None
    connection, kept = rows(on_server)
    connection.execute("DELETE FROM events WHERE number = %s", [kept[2][0]])
    campaign.page.log(("another", {}))
    with pytest.raises(StoreDamaged, match="set back"):
        access.person(cookie)
    campaign.close()
    with pytest.raises(StoreDamaged, match="set back") as told:
        signed(on_server)
    Path(re.search(r"remove (\S+),", str(told.value))[1]).unlink()
    assert signed(on_server)[1].person(cookie) is not None, "its owner said that it is so"
    signed(on_server, OTHER_KEY)
    connection.close()


def test_the_page_over_signed_rows(on_server, tmp_path):
    (tmp_path / "key").write_bytes(b"k" * 40 + b"\n")
    plan = Plan(share=True, key_file=tmp_path / "key")
    with (
        serving(Campaign.open(on_server), plan) as one,
        serving(Campaign.open(on_server), plan) as other,
        signed_in(one, "ann") as ann,
    ):
        with other.client(cookies=dict(ann.cookies)) as there, there.stream("GET", "/events") as stream:
            lines = stream.iter_lines()
            next(lines)
            assert ann.get("/campaign").status_code == 200
            one.ready.page.access.end("ann")
            for _ in lines:
                pass
        assert ann.get("/campaign").status_code == 401


def test_keys(tmp_path, monkeypatch):
    monkeypatch.setenv("ALLY_PAGE_KEY", "x" * 32)
    named = load_page_key(None)
    (tmp_path / "key").write_bytes(b"x" * 32 + b"\n")
    assert load_page_key(tmp_path / "key") == named
    (tmp_path / "key").write_bytes(b"short")
    for file in (tmp_path / "key", tmp_path / "none"):
        with pytest.raises(InputError, match="key"):
            load_page_key(file)
    monkeypatch.delenv("ALLY_PAGE_KEY")
    assert load_page_key(None) == load_page_key(None) != named


# Where it listens


@pytest.mark.parametrize(
    ("plan", "address"),
    [
        (Plan(), "127.0.0.1"),
        (Plan(share=True), "0.0.0.0"),
        (Plan(share=True, hosts=("lab.example",)), "0.0.0.0"),
        (Plan(share=True, hosts=("127.0.0.1",)), "127.0.0.1"),
        (Plan(share=True, hosts=("localhost", "https://label.example.org")), "127.0.0.1"),
        (Plan(share=True, hosts=("https://label.example.org", "lab.example")), "0.0.0.0"),
        (Plan(share=True, hosts=("https://label.example.org",), listen="0.0.0.0"), "0.0.0.0"),
        (Plan(share=True, listen="[::1]"), "::1"),
        (Plan(share=True, listen="::"), "::"),
    ],
)
def test_who_can_connect(place, plan, address):
    assert choose_address(plan) == address
    with Campaign.open(place) as campaign:
        ready = prepare(campaign, plan)
        try:
            assert ready.socket.getsockname()[0] == address
        finally:
            ready.socket.close()
            ready.page.access.close()


def test_a_name_is_no_address():
    with pytest.raises(InputError, match="IP address"):
        choose_address(Plan(share=True, listen="lab.example"))


@pytest.mark.parametrize("listen", ["::1", "::"])
def test_it_serves_ipv6(place, listen):
    with serving(Campaign.open(place), Plan(share=True, listen=listen)) as served:
        port = served.ready.socket.getsockname()[1]
        access = served.ready.page.access
        cookies = {access.cookie_name: access.exchange(access.new_link("ann"))}
        for host in ("[::1]", "127.0.0.1") if listen == "::" else ("[::1]",):
            with served.client(cookies=cookies) as client:
                there = f"http://{host}:{port}"
                answer = client.get(f"{there}/api/v1/campaign", headers={"Origin": there})
                assert answer.status_code == 200


def test_looks_are_shared(tmp_path):
    """Requests that wait for another machine at the same time ask it together, each after its own arrival."""
    began, go, looks = threading.Event(), threading.Event(), []

    def look():
        looks.append(len(looks))
        began.set()
        assert go.wait(20)
        return looks[-1]

    async def run():
        shared = SharedLook(look)
        first = asyncio.create_task(shared())
        await asyncio.to_thread(began.wait, 20)
        rest = [asyncio.create_task(shared()) for _ in range(20)]
        await asyncio.sleep(0)
        go.set()
        return await asyncio.gather(first, *rest)

    with ThreadPoolExecutor(1) as pool:  # the browser of other tests keeps an event loop in this one
        assert pool.submit(asyncio.run, run()).result() == [0, *[1] * 20]
