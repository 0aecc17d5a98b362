"""The attack table: what strangers, other sites and bad data try, and what each of them gets."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Barrier

import httpx
import pandas as pd
import pytest
from conftest_web import CLASSES, serving, until, write_photos
from PIL import Image

from ally import Campaign
from ally.data.images.shown import AT_ONCE
from ally.web import guard, schemas
from ally.web.access import Access, open_access
from ally.web.access_list import FileList
from ally.web.looking import _short
from ally.web.routing import ANNOTATORS_MAY, write_json
from ally.web.server import Plan

SCRIPT = '<script>window.hurt=1</script><img src=x onerror="window.hurt=1">'


@pytest.fixture(scope="module")
def alone(folder):
    write_photos(folder / "photos", 30)
    campaign = Campaign.create(folder / "alone.db", folder / "photos", classes=CLASSES, automatic=False, evaluate=5)
    with serving(campaign) as found:
        yield found


@pytest.fixture(scope="module")
def shared(folder):
    write_photos(folder / "shared", 30)
    campaign = Campaign.create(folder / "shared.db", folder / "shared", classes=CLASSES, automatic=False, evaluate=5)
    with serving(campaign, Plan(share=True, annotators=("ann", "bob"))) as found:
        yield found


def secret_of(line):
    return line.rpartition("#")[2]


@pytest.fixture(scope="module")
def people(shared):
    """Signed in: the owner, ann and bob."""
    access = shared.ready.page.access
    found = {}
    for name, role in (("owner", "owner"), ("ann", "annotator"), ("bob", "annotator")):
        client = shared.client(cookies={access.cookie_name: access.exchange(access.new_link(name, role))})
        found[name] = client
    yield found
    for client in found.values():
        client.close()


def routes(page):
    return [(method, route.path) for route in page.api.routes for method in sorted(route.methods)]


def called(client, method, path, **more):
    body = {} if method in ("GET", "HEAD") else {"json": {}}
    return client.request(
        method, f"{client.base_url.copy_with(path='')}{path.replace('{number}', '1')}", **body, **more
    )


# Who comes from where


def test_every_route_is_listed(alone):
    """A new route fails here until somebody says who may call it."""
    owners = {
        ("GET", "/api/v1/export"),
        ("PATCH", "/api/v1/settings"),
        ("POST", "/api/v1/training"),
        ("GET", "/api/v1/links"),
        ("POST", "/api/v1/links"),
        ("POST", "/api/v1/links/end"),
    }
    everybody = {("POST", "/api/v1/session"), ("GET", "/assets/{name}")}
    everybody |= {("GET", path) for path in ("/", "/grid", "/progress", "/review", "/settings")}
    signed_in = {("GET", "/api/openapi.json")}
    assert set(routes(alone.ready.page)) == owners | everybody | signed_in | ANNOTATORS_MAY


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost:1"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
    ],
)
def test_other_sites_get_nothing_from_any_route(alone, headers, status):
    with httpx.Client(base_url=alone.origin, headers={"Origin": alone.origin, **headers}) as client:
        for method, path in routes(alone.ready.page):
            response = called(client, method, path)
            assert response.status_code == status, (method, path)
            assert "access-control-allow-origin" not in response.headers


def test_a_form_of_another_site_is_refused(alone):
    with httpx.Client(base_url=alone.origin) as client:
        for method, path in routes(alone.ready.page):
            if method == "GET":
                continue
            plain = client.request(method, path, content=b"a=b")
            assert plain.status_code == 403, "without an Origin"
            form = client.request(
                method, path, content=b"{}", headers={"Origin": alone.origin, "Content-Type": "text/plain"}
            )
            assert form.status_code == 415


def test_a_link_from_elsewhere_opens_the_page_and_no_frame_does(alone):
    come = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    response = httpx.get(alone.address, headers=come)
    assert response.status_code == 200
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert httpx.get(f"{alone.origin}/api/v1/export", headers=come).status_code == 403


def test_every_answer_has_the_headers(alone):
    with httpx.Client(base_url=alone.origin, headers={"Origin": alone.origin}) as client:
        answers = [called(client, method, path) for method, path in routes(alone.ready.page) if "events" not in path]
        answers.append(client.get("/", headers={"Host": "evil"}))
    for response in answers:
        for name, value in guard.HEADERS.items():
            assert response.headers[name] == value
        assert "unsafe" not in response.headers["content-security-policy"]
        assert "cache-control" in response.headers
        assert "server" not in response.headers


# Who may do what


def test_strangers_get_nothing_but_the_empty_page(shared):
    with shared.client() as stranger:
        for method, path in routes(shared.ready.page):
            status = called(stranger, method, path).status_code
            if path.startswith("/api") and path != "/api/v1/session":
                assert status == 401, (method, path)
            else:
                assert status in (200, 404, 422), (method, path)


def test_annotators_may_do_what_is_listed(shared, people):
    for method, path in routes(shared.ready.page):
        if not path.startswith("/api/v1") or "session" in path or "events" in path:
            continue
        status = called(people["ann"], method, path).status_code
        assert (status == 403) == ((method, path) not in ANNOTATORS_MAY), (method, path, status)


def test_other_peoples_queries_are_out_of_reach(people):
    query = people["ann"].post("/queries", json={"key": "mine", "n": 2}).json()
    for call in (
        people["bob"].get(f"/queries/{query['query']}"),
        people["bob"].post(f"/queries/{query['query']}/release", json={}),
        people["bob"].get("/queries/9999"),
    ):
        assert call.status_code == 404
        assert "you have no query" in call.json()["detail"]
    again = people["bob"].post("/queries", json={"key": "mine", "n": 2}).json()
    assert not {one["id"] for one in query["samples"]} & {one["id"] for one in again["samples"]}
    number = (
        people["ann"]
        .post("/answers", json={"answers": [{"id": query["samples"][0]["id"], "key": "k", "label": CLASSES[0]}]})
        .json()["outcomes"][0]["number"]
    )
    taken = people["bob"].post("/undo", json={"key": "u", "number": number})
    assert taken.status_code == 422
    assert people["bob"].get("/answers").json()["answers"] == []


def test_a_link_works_once_and_not_for_ever(shared):
    access = shared.ready.page.access

    def exchange(secret):
        with shared.client() as client:
            response = client.post("/session", json={"secret": secret})
            return response.status_code, response

    secret = access.new_link("eve")
    status, response = exchange(secret)
    assert status == 200
    assert response.json() == {"annotator": "eve", "role": "annotator"}
    kept = response.headers["set-cookie"].lower()
    assert all(word in kept for word in ("httponly", "samesite=strict", "path=/"))
    assert secret not in kept
    assert exchange(secret)[0] == 403, "replayed"
    assert exchange("guessed")[0] == 403

    with shared.client(cookies={access.cookie_name: secret}) as client:
        assert client.get("/campaign").status_code == 401, "a link is no cookie"
    cookie = response.cookies[access.cookie_name]
    with shared.client(cookies={access.cookie_name: cookie}) as client:
        assert client.get("/campaign").json()["me"]["annotator"] == "eve"
        access.end("eve")
        assert client.get("/campaign").status_code == 401, "ended by the owner"

    now = [0.0]
    aged = Access(FileList(shared.campaign.id), None, clock=lambda: now[0])
    secret = aged.new_link("old")
    now[0] = 8 * 86400.0
    assert aged.exchange(secret) is None, "expired"


def test_links_and_cookies_outlive_a_restart_and_are_not_in_the_file(shared, folder):
    access = shared.ready.page.access
    secret = access.new_link("zoe")
    cookie = access.exchange(access.new_link("yan"))
    again, _ = open_access(shared.campaign, None)
    assert again.person(cookie).annotator == "yan"
    assert again.exchange(secret) is not None
    kept = (folder / "shared.db").read_bytes()
    assert secret.encode() not in kept
    assert cookie.encode() not in kept


def test_a_stranger_sends_no_more_than_a_secret(shared):
    body = json.dumps({"secret": "x", **{f"a{number}": 1 for number in range(2000)}}).encode()
    with shared.client() as client:
        for content in (body, iter([body[:5000], body[5000:]])):
            response = client.post("/session", content=content, headers={"Content-Type": "application/json"})
            assert response.status_code == 413


def test_guessing_is_slowed_down(shared):
    shared.ready.page.guesses._levels.clear()
    with shared.client() as client:
        seen = [client.post("/session", json={"secret": f"guess {n}"}).status_code for n in range(14)]
    assert seen[:8] == [403] * 8
    assert seen[-1] == 429


def test_nobody_may_ask_too_fast(alone):
    bucket = alone.ready.page.app.known
    before, bucket.burst, bucket.rate = (bucket.burst, bucket.rate), 5.0, 0.1
    bucket._levels.clear()
    try:
        with alone.client() as client:
            seen = [client.get("/answers") for _ in range(8)]
    finally:
        bucket.burst, bucket.rate = before
        bucket._levels.clear()
    assert [response.status_code for response in seen[:5]] == [200] * 5
    assert (seen[-1].status_code, seen[-1].headers["retry-after"]) == (429, "1")


def test_one_person_does_not_keep_all_threads(shared, people):
    """Large pictures are made two at a time; whoever asks for fifty waits alone."""
    turns = shared.campaign.page._pictures._turns
    ids = [f"{number:05}.png" for number in range(25)]
    with ThreadPoolExecutor(50) as pool:
        with ExitStack() as busy:
            for _ in range(AT_ONCE):
                turns.acquire()
                busy.callback(turns.release)
            asked = [
                pool.submit(people["bob"].get, "/samples/image", params={"id": id, "size": size})
                for id in ids
                for size in ("large", "view")
            ]
            until(lambda: shared.ready.page.app.turns.of("bob").locked(), what="his turns to be taken")
            assert people["ann"].get("/samples", params={"id": ids[0]}, timeout=5).status_code == 200
        assert {one.result().status_code for one in asked} == {200}


def test_streams_of_events_are_counted(shared, people):
    streams = [people["bob"].stream("GET", "/events") for _ in range(8)]
    try:
        for stream in streams:
            stream.__enter__()
        assert people["bob"].get("/events").status_code == 429
    finally:
        for stream in streams:
            stream.__exit__(None, None, None)


def test_secrets_are_not_logged(shared, caplog):
    caplog.set_level(logging.DEBUG)
    access = shared.ready.page.access
    shared.ready.page.guesses._levels.clear()
    secret = access.new_link("log")
    with shared.client() as client:
        cookie = client.post("/session", json={"secret": secret}).cookies[access.cookie_name]
        client.get("/campaign")
    server = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpcore", "httpx"))]
    assert not any(secret in line or cookie in line for line in server)


# What is sent


def test_large_deep_and_broken_bodies(alone):
    with alone.client() as client:
        head = {"Content-Type": "application/json"}
        huge = client.post("/answers", content=b" " * (guard.MOST_BODY + 1), headers=head)
        assert huge.status_code == 413

        def pieces():
            for _ in range(3):
                yield b" " * 500_000

        assert client.post("/answers", content=pieces(), headers=head).status_code == 413
        port = int(alone.origin.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as plain:
            plain.sendall(
                f"POST /api/v1/answers HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {alone.origin}\r\n"
                "Content-Type: application/json\r\nContent-Length: 100000000\r\n\r\n[".encode()
            )
            assert b" 413 " in plain.recv(2000), "before the 100 MB are sent"
        for depth in (2_000, 200_000):
            deep = client.post("/answers", content=b"[" * depth + b"]" * depth, headers=head)
            assert deep.status_code in (400, 422), deep.text
        for body in (b"", b"\xff\xfe", b"NaN", b'{"answers": 1}', b'{"answers": [{"id": NaN}]}'):
            assert client.post("/answers", content=body, headers=head).status_code in (400, 422)


@pytest.mark.parametrize(
    "label", ["no class", "", " ", SCRIPT, 17, 1.5, True, float("1e300")], ids=lambda label: repr(label)[:20]
)
def test_a_label_outside_the_classes_is_refused(alone, label):
    with alone.client() as client:
        done = client.post(
            "/answers", json={"answers": [{"id": "00001.png", "key": f"o{label!r}"[:60], "label": label}]}
        )
        assert done.json()["outcomes"][0]["state"] == "refused"
    assert "00001.png" not in alone.campaign.labels()


def test_a_slow_body_ends(alone, monkeypatch):
    monkeypatch.setattr(guard, "BODY_SECONDS", 0.3)
    port = int(alone.origin.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.sendall(
            f"POST /api/v1/answers HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nOrigin: {alone.origin}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{".encode()
        )
        slow.settimeout(10)
        assert b" 408 " in slow.recv(2000)


# What the samples hold


@pytest.mark.parametrize(
    "id",
    [
        "../alone.db",
        "..%2falone.db",
        "%2e%2e/alone.db",
        "..\\alone.db",
        "\\\\server\\share\\x.png",
        "/etc/passwd",
        "C:/x.png",
        "file:///etc/passwd",
        "http://127.0.0.1/x.png",
        "javascript:alert(1)",
        "link.png",
        ".hidden.png",
        "00001.png\x00.png",
        "x" * 5000,
    ],
)
def test_samples_are_served_by_id_and_nothing_else_is(alone, folder, id):
    outside = folder / "outside.png"
    Image.new("RGB", (4, 4)).save(outside)
    Image.new("RGB", (4, 4)).save(folder / "photos" / ".hidden.png")
    link = folder / "photos" / "link.png"
    if not link.is_symlink():
        os.symlink(outside, link)
    with alone.client() as client:
        for path in ("/samples", "/samples/image"):
            response = client.get(path, params={"id": id})
            assert response.status_code in (404, 422), response.text


@pytest.mark.parametrize(
    "target",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/app.py",
        "/assets/%2e%2e%2fapp.py",
        "/assets/..\\app.py",
        "/assets//etc/passwd",
        "/assets/main.js%00.css",
        "/../../../../etc/passwd",
        "//evil.example/",
        "/api/v1/../../assets/main.js",
    ],
)
def test_files_of_the_page_have_exact_names(alone, target):
    """As it is sent: no client has tidied the path."""
    port = int(alone.origin.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: plain.recv(65536), b""))
    assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), answer[:200]
    assert b"import" not in answer
    assert b"root:" not in answer


def test_a_sample_that_became_a_link_out_is_not_shown(alone, folder):
    secret = folder / "secret.png"
    Image.new("RGB", (4, 4)).save(secret)
    sample = folder / "photos" / "00029.png"
    sample.unlink()
    os.symlink(secret, sample)
    with alone.client() as client:
        content = client.get("/samples", params={"id": "00029.png"}).json()
        assert "outside" in content["problem"]
        assert client.get("/samples/image", params={"id": "00029.png"}).status_code in (404, 422)


def bomb(width, height):
    """A PNG whose head says it is very large."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


def test_files_that_are_no_images_or_too_large(alone, folder):
    """They were images when the campaign began, and were exchanged since."""
    polyglot = io.BytesIO()
    Image.new("RGB", (8, 8), (200, 10, 10)).save(polyglot, "PNG")
    cases = {
        "00020.png": SCRIPT.encode(),
        "00021.png": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
        "00022.png": bomb(40_000, 25_000),
        "00023.png": bomb(2**31 - 1, 2**31 - 1),
        "00024.png": polyglot.getvalue()[:40],
        "00025.png": b"",
    }
    for name, data in cases.items():
        (folder / "photos" / name).write_bytes(data)
    with alone.client() as client:
        for name in cases:
            response = client.get("/samples/image", params={"id": name})
            assert response.status_code == 422, name
            assert response.headers["content-type"] == "application/problem+json"
            assert client.get("/samples", params={"id": name}).status_code == 200
        mixed = folder / "photos" / "00026.png"
        mixed.write_bytes(polyglot.getvalue() + SCRIPT.encode())
        shown = client.get("/samples/image", params={"id": "00026.png"})
        assert shown.headers["content-type"] == "image/png"
        assert b"script" not in shown.content, "only its pixels are passed on"


def test_texts_names_and_columns_come_as_data(folder):
    """The page makes text nodes of them (test_page_attacks.py); here: JSON, and never HTML."""
    frame = pd.DataFrame(
        {"id": [SCRIPT, "b"], SCRIPT: ["javascript:alert(1)", "[x](javascript:alert(1))"], "n": [1.0, 2.0]}
    )
    frame.to_csv(folder / "odd.csv", index=False)
    campaign = Campaign.create(
        folder / "odd.db", folder / "odd.csv", id_column="id", classes=[SCRIPT, "b"], automatic=False, evaluate=0
    )
    with serving(campaign, Plan(annotators=(SCRIPT,))) as served, served.client() as client:
        content = client.get("/samples", params={"id": SCRIPT})
        assert content.headers["content-type"] == "application/json"
        assert content.json()["columns"][SCRIPT] == "javascript:alert(1)"
        about = client.get("/campaign").json()
        assert (about["me"]["annotator"], about["classes"][0]["text"]) == (SCRIPT, SCRIPT)


# When it is over


def test_answers_after_the_lease_expired(folder):
    write_photos(folder / "few", 3)
    now = [1000.0]
    campaign = Campaign.create(
        folder / "few.db",
        folder / "few",
        classes=CLASSES,
        automatic=False,
        evaluate=0,
        lease_seconds=60.0,
        clock=lambda: now[0],
    )
    with serving(campaign, Plan(share=True)) as served:
        access = served.ready.page.access
        ann, bob = (
            served.client(cookies={access.cookie_name: access.exchange(access.new_link(name))})
            for name in ("ann", "bob")
        )
        with ann, bob:
            query = ann.post("/queries", json={"key": "q", "n": 3}).json()
            none = bob.post("/queries", json={"key": "q", "n": 3}).json()
            assert none["samples"] == []
            assert "reserved for other people" in none["ended"], "all are with ann"
            now[0] += 120
            other = bob.post("/queries", json={"key": "r", "n": 3}).json()
            ids = [one["id"] for one in other["samples"]]
            assert len(ids) == 3, "her lease is gone"

            def tell(client, id, key, label, **more):
                body = {"answers": [{"id": id, "key": key, "label": label, "expects": None, **more}]}
                return client.post("/answers", json=body).json()["outcomes"][0]

            assert tell(bob, ids[0], "1", CLASSES[0])["state"] == "recorded"
            late = tell(ann, ids[0], "1", CLASSES[1], query=query["query"])
            assert (late["state"], late["before_by"]) == ("conflict", "bob")
            assert tell(ann, ids[1], "2", CLASSES[1], query=query["query"])["state"] == "recorded", "nobody answered"
            assert tell(bob, ids[2], "2", CLASSES[0])["state"] == "recorded"
            end = ann.post("/queries", json={"key": "s", "n": 3}).json()
            assert (end["query"], end["samples"], end["ended"]) == (None, [], "Every sample is labelled or skipped.")


# What is kept and sent again


def test_half_a_character_is_not_taken_and_is_sent_if_it_is_there(alone):
    """It could be kept as JSON, and no answer that holds it could be written as UTF-8."""
    with alone.client() as client:

        def send(method, path, text):
            return client.request(method, path, content=text, headers={"Content-Type": "application/json"})

        for body in (b'["\\ud800"]', b'["' + b"y" * 2000 + b'"]', b"[" + b"9" * 400 + b"]"):
            assert send("PATCH", "/settings", b'{"classes": ' + body + b"}").status_code == 422
        for label in (b'"\\ud800"', b'"' + b"y" * 2000 + b'"'):
            answer = b'{"answers": [{"id": "00000.png", "key": "k", "label": ' + label + b"}]}"
            assert send("POST", "/answers", answer).status_code == 422
    from_a_file = schemas.Class(label="half\udcff", text="half\udcff")
    assert json.loads(write_json(from_a_file)) == {"label": "half\udcff", "text": "half\udcff"}


def test_names_of_people_steer_nothing(shared, people):
    for name in ("a\x00", "\x1b[31mred", "a\nb", "a\u2028b", "\u202eabc", "\x9b", " ", ""):
        assert people["owner"].post("/links", json={"annotator": name}).status_code == 422, repr(name)
        assert name not in {person.annotator for person, _ in shared.ready.page.access.people()}
    for name in ("Zoë 張", "an ounce of *prevention*"):
        assert people["owner"].post("/links", json={"annotator": name}).status_code == 200
        assert people["owner"].post("/links/end", json={"annotator": name}).status_code == 200


def test_numbers_and_keys_out_of_all_proportion(alone):
    """Each is an answer in words, none of them is a fault of the server."""
    head = {"Content-Type": "application/json"}
    with alone.client() as client:
        for path in (
            "/answers?n=1000000000000000000000",
            "/review?n=1000000000000000000",
            "/queries/99999999999999999999999",
            "/queries/-1",
            "/queries/1e3",
            "/samples?id=%ED%A0%80",
            "/samples?id=%00",
            "/samples/image?id=00002.png&size=../view",
            "/export?format=csv%0d%0aX:%20y",
        ):
            response = client.get(path)
            assert response.status_code in (404, 422), path
            assert response.headers["content-type"] == "application/problem+json"
        for path, body in (
            ("/queries", b'{"key": "q", "n": 1000000000000000000}'),
            ("/queries", b'{"key": "q", "n": ' + b"9" * 5000 + b"}"),
            ("/queries", b'{"key": "' + b"q" * 201 + b'"}'),
            ("/queries", b'{"a": ' * 1500 + b"1" + b"}" * 1500),
            ("/queries", b'{"key": "q", "n": Infinity}'),
            ("/undo", b'{"key": "u", "number": 9223372036854775808}'),
            ("/notes", b'{"id": "00002.png", "key": "n", "text": "\\ud800"}'),
        ):
            response = client.post(path, content=body, headers=head)
            assert response.status_code in (400, 422), body[:40]
            assert "error parsing" not in response.json()["detail"]
        twice = client.post("/queries", content=b'{"key": "twice", "n": 1, "n": 2}', headers=head)
        assert len(twice.json()["samples"]) == 2, "the last of two fields counts"


def test_errors_name_no_folder_and_no_password():
    assert _short("/home/ann/secret project/pets.db") == "pets"
    assert _short("postgresql://ann:***@host:5432/pets?password=secret&options=-csearch_path%3Dpets") == "pets"


def test_many_people_of_one_address_sign_in_at_the_same_moment(shared):
    access = shared.ready.page.access
    secrets = [secret_of(access.new_link(f"guest {number}", "annotator")) for number in range(40)]
    together = Barrier(len(secrets))

    def sign_in(secret):
        with shared.client() as client:
            together.wait()
            return client.post("/session", json={"secret": secret}).status_code

    with ThreadPoolExecutor(len(secrets)) as pool:
        assert set(pool.map(sign_in, secrets)) == {200}
