"""The API over real HTTP: asking, answering, undoing, pictures, events, and a process that comes and goes."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import sys
import threading
import time

import pytest
from conftest_web import CLASSES, Running, free_port, serving, until, write_photos

from ally import Campaign
from ally.campaign import AskedSample
from ally.campaign.people import user
from ally.campaign.telling import PageAnswer
from ally.errors import InputError
from ally.web import shared_flush
from ally.web.readable import asked


@pytest.fixture(scope="module")
def served(folder):
    write_photos(folder / "photos", 60)
    campaign = Campaign.create(
        folder / "a.db", folder / "photos", classes=CLASSES, automatic=False, evaluate=10, budget=50
    )
    with serving(campaign) as found:
        yield found


@pytest.fixture
def api(served):
    with served.client() as client:
        yield client


def said(response, status=200):
    assert response.status_code == status, response.text
    return response.json()


def test_the_campaign_says_what_is_labelled(api):
    about = said(api.get("/campaign"))
    assert about["kind"] == "images"
    assert [one["text"] for one in about["classes"]] == CLASSES
    assert (about["samples"], about["budget"], about["me"]["role"], about["shared"]) == (60, 50, "owner", False)


def test_small_answers_are_sent_at_once(api):
    """A head and a body in two packets once waited for each other, 40 ms in every request."""
    times = [api.get("/nothing").elapsed.total_seconds() for _ in range(40)]
    assert min(times[20:]) < 0.03


def test_ask_answer_undo(api, served):
    query = said(api.post("/queries", json={"key": "q1", "n": 4}))
    assert said(api.post("/queries", json={"key": "q1", "n": 4}))["samples"] == query["samples"]
    assert said(api.get(f"/queries/{query['query']}"))["samples"] == query["samples"]
    first, second, third, fourth = (one["id"] for one in query["samples"])
    answers = [
        {"id": first, "key": "a1", "label": "digit 0", "query": query["query"], "expects": None},
        {"id": second, "key": "a2", "skip": True, "query": query["query"], "expects": None},
        {"id": third, "key": "a3", "label": "no class", "query": query["query"]},
        {"id": fourth, "key": "a4"},
        {"id": "nobody", "key": "a5", "label": "digit 0"},
    ]
    done = said(api.post("/answers", json={"answers": answers}))["outcomes"]
    assert [one["state"] for one in done] == ["recorded", "recorded", "refused", "refused", "refused"]
    assert "no class" in done[2]["detail"]
    again = said(api.post("/answers", json={"answers": answers[:2]}))["outcomes"]
    assert [(one["number"], one["repeated"]) for one in again] == [(1, True), (2, True)]
    assert [one["id"] for one in said(api.get("/answers"))["answers"]] == [second, first]

    stale = {"id": first, "key": "a6", "label": "digit 1", "expects": None}
    (conflict,) = said(api.post("/answers", json={"answers": [stale]}))["outcomes"]
    assert (conflict["state"], conflict["before"], conflict["number"]) == ("conflict", "digit 0", 1)
    changed = {"id": first, "key": "a7", "label": "digit 1", "expects": 1}
    (done,) = said(api.post("/answers", json={"answers": [changed]}))["outcomes"]
    assert (done["state"], done["before"], done["before_by"]) == ("recorded", "digit 0", user())

    assert said(api.post("/undo", json={"key": "u1"}))["label"] == "digit 1"
    assert said(api.post("/undo", json={"key": "u1"}))["label"] == "digit 1"
    assert said(api.post("/undo", json={"key": "u2", "number": 2}))["skip"] is True
    assert said(api.post("/queries/{}/release".format(query["query"]), json={"only": [third]})) == {"released": 1}
    assert served.campaign.labels() == {first: "digit 0"}


def test_notes_are_kept_per_person(api, served):
    """Once for each key, also if the first is sent again after a second; they are handed out with the labels."""
    id = said(api.post("/queries", json={"key": "n1", "n": 1}))["samples"][0]["id"]
    for key, text in (("k1", "blurred <b>"), ("k2", "blurred, twice"), ("k1", "blurred <b>")):
        said(api.post("/notes", json={"id": id, "key": key, "text": text}))
    assert {"id": id, "text": "blurred, twice"}.items() <= said(api.get("/review"))["notes"][0].items()
    said(api.post("/answers", json={"answers": [{"id": id, "key": "n2", "label": "digit 0"}]}))
    lines = list(csv.DictReader(api.get("/export").text.splitlines()))
    assert [line["id"] for line in lines if line["note"] == "blurred, twice"] == [id]
    served.campaign.page.note(id, "mine too", annotator="bob")
    (line,) = [json.loads(line) for line in api.get("/export?format=jsonl").text.splitlines() if id in line]
    assert line["note"] == f"{user()}: blurred, twice; bob: mine too"
    served.campaign.page.note(id, "", annotator="bob")
    said(api.post("/notes", json={"id": id, "key": "k3", "text": ""}))
    assert said(api.get("/review"))["notes"] == []
    assert "note" not in api.get("/export").text.splitlines()[0]
    said(api.post("/notes", json={"id": "nobody", "key": "k4", "text": "x"}), 404)
    said(api.post("/undo", json={"key": "n3"}))


def test_pictures_are_kept_by_their_stamp(api):
    id = "00001.png"
    content = said(api.get("/samples", params={"id": id}))
    assert (content["image"]["width"], content["image"]["height"], content["problem"]) == (64, 64, None)
    plain = api.get("/samples/image", params={"id": id, "size": "thumb"})
    assert plain.headers["content-type"] == "image/png"
    assert plain.headers["cache-control"] == "private, no-cache"
    stamped = api.get("/samples/image", params={"id": id, "size": "thumb", "v": content["image"]["stamp"]})
    assert "immutable" in stamped.headers["cache-control"]
    unchanged = api.get(
        "/samples/image", params={"id": id, "size": "thumb"}, headers={"If-None-Match": plain.headers["etag"]}
    )
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    part = api.get("/samples/image", params={"id": id}, headers={"Range": "bytes=0-7"})
    assert (part.status_code, part.content) == (206, b"\x89PNG\r\n\x1a\n")
    said(api.get("/samples/image", params={"id": id, "size": "huge"}), 422)
    said(api.get("/samples/image", params={"id": "nobody"}), 404)


def test_errors_have_one_shape(api):
    for response in (
        api.get("/queries/9999"),
        api.post("/queries", json={"key": "", "n": 1}),
        api.post("/queries", content=b"{", headers={"Content-Type": "application/json"}),
        api.get("/nothing"),
        api.put("/campaign", json={}),
    ):
        problem = response.json()
        assert response.headers["content-type"] == "application/problem+json"
        assert problem["status"] == response.status_code
        assert {"title", "detail", "type"} <= set(problem)


def test_progress_counts_what_people_said(api, served):
    served.campaign.relabel({"00059.png": CLASSES[0]}, annotator="ann")
    progress = said(api.get("/progress"))
    assert progress["budget"] == 50
    assert progress["people"][0]["answers"] >= 1
    assert progress["training"]["state"] in ("none", "done")


def test_export_and_settings(api, served):
    lines = api.get("/export").text.splitlines()
    assert lines[0].startswith("id,label")
    said(api.patch("/settings", json={"budget": 60}))
    assert served.campaign.settings.budget == 60
    said(api.patch("/settings", json={"classes": ["digit 0"]}), 422)
    said(api.patch("/settings", json={"classes": [*CLASSES, "other"]}))
    assert said(api.get("/campaign"))["classes"][-1]["text"] == "other"


@pytest.mark.parametrize("odd", ["half\ud83d", "a\x00b", "x" * 3000], ids=["surrogate", "NUL", "long"])
@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PATCH", "/settings", lambda odd: {"classes": ["a", odd]}),
        ("POST", "/queries", lambda odd: {"key": odd, "n": 1}),
        ("POST", "/answers", lambda odd: {"answers": [{"id": "00001.png", "key": "k", "label": odd}]}),
        ("POST", "/notes", lambda odd: {"id": "00001.png", "key": "k", "text": odd}),
        ("POST", "/notes", lambda odd: {"id": odd, "key": "k", "text": "fine"}),
    ],
)
def test_a_text_that_cannot_be_kept_is_refused(api, method, path, body, odd):
    sent = json.dumps(body(odd))
    said(api.request(method, path, content=sent, headers={"Content-Type": "application/json"}), 422)
    said(api.get("/campaign"))


def test_events_tell_of_answers(served):
    with served.client() as listener, served.client() as api, listener.stream("GET", "/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        pulses = (json.loads(line[5:]) for line in stream.iter_lines() if line.startswith("data:"))
        before = next(pulses)
        query = said(api.post("/queries", json={"key": "e1", "n": 1}))
        answer = {"id": query["samples"][0]["id"], "key": "e2", "label": "digit 0"}
        said(api.post("/answers", json={"answers": [answer]}))
        after = next(pulses)
        assert after["last_answer"] == before["last_answer"] + 1


def test_what_arrives_together_shares_a_flush(served, monkeypatch):
    """While one flush is under way, answers, queries and undos wait for the next; each is refused by itself."""
    monkeypatch.setattr(shared_flush, "LONGEST", 20.0)  # a busy machine does not divide the calls
    campaign, gatherer = served.campaign, served.ready.page.gatherer
    ids = campaign.ask(12, annotator="many").ids
    began, go = threading.Event(), threading.Event()
    together = campaign.page.together

    def slow(*given):
        began.set()
        assert go.wait(20)
        return together(*given)

    campaign.page.together = slow
    before, states, others = gatherer.flushes, [], {}

    def send(number):
        with served.client() as api:
            answer = {"id": ids[number], "key": f"f{number}", "label": "digit 0"}
            states.append(said(api.post("/answers", json={"answers": [answer]}))["outcomes"][0]["state"])

    def other(path, body):
        with served.client() as api:
            others[path, body["key"]] = api.post(path, json=body)

    calls = [("/queries", {"key": "f", "n": 2}), ("/queries", {"key": "g", "n": 2}), ("/undo", {"key": "f"})]
    calls += [("/undo", {"key": "g", "number": 999_999}), ("/notes", {"key": "f", "id": ids[0], "text": "odd"})]
    threads = [threading.Thread(target=send, args=(number,)) for number in range(12)]
    threads += [threading.Thread(target=other, args=call) for call in calls]
    try:
        threads[0].start()
        assert began.wait(20)
        for thread in threads[1:]:
            thread.start()
        until(lambda: sum(len(given) for given, _ in gatherer._waiting) == 11 and len(gatherer._calls) == 5)
    finally:
        go.set()
        for thread in threads:
            thread.join()
        del campaign.page.together
    assert states == ["recorded"] * 12
    asked = [said(others["/queries", key])["samples"] for key in "fg"]
    assert len({one["id"] for samples in asked for one in samples}) == 4, "dealt twice"
    assert others["/undo", "g"].status_code == 422
    assert said(others["/undo", "f"])["id"] in ids
    assert campaign.page.notes()[ids[0]]
    assert gatherer.flushes - before == 2


def test_a_call_that_fails_takes_only_itself_back(served):
    campaign = served.campaign
    (id,) = campaign.ask(1, annotator="many").ids

    def breaks():
        campaign.page.log(("half", {}))
        raise KeyError("a mistake")

    told, made = campaign.page.together(
        [PageAnswer(id, "digit 0", "many", "b1")], [breaks, lambda: campaign.page.log(("whole", {}))]
    )
    assert told[0].number == campaign.page.pulse().last_answer
    assert isinstance(made[0], KeyError)
    assert [event.kind for event in campaign.page.events() if event.kind in ("half", "whole")] == ["whole"]
    _, made = campaign.page.together([], [lambda: 1, lambda: 2, lambda: 3], seconds=-1.0)
    assert made == [1], "one call is always made, the rest with the next flush"


def test_the_command_reports_what_it_cannot_do(served, folder):
    from ally.cli.campaign.labelling import label

    place = str(folder / "a.db")
    port = int(served.origin.rpartition(":")[2])
    for options, words in (
        ({"port": port}, "choose another"),
        ({"port": 99999}, "between 0 and 65535"),
        ({"host": ["x"]}, "--share"),
        ({"annotator": ["ann", "bob"]}, "--share"),
    ):
        with pytest.raises(InputError, match=words):
            label(place, browser=False, **options)


@pytest.mark.long
def test_it_runs_as_its_own_process(folder):
    """Ready in two seconds, without torch, ended by Ctrl-C, and back with every answer after SIGKILL."""
    write_photos(folder / "own", 12)
    place = folder / "own.db"
    Campaign.create(place, folder / "own", classes=CLASSES, automatic=False, evaluate=0).close()
    running = Running(str(place), free_port())
    began = time.monotonic()
    running.start()
    took = time.monotonic() - began
    import httpx

    with httpx.Client(base_url=f"{running.origin}/api/v1", headers={"Origin": running.origin}) as api:
        query = said(api.post("/queries", json={"key": "k", "n": 5}))
        answer = {"id": query["samples"][0]["id"], "key": "a", "label": "digit 1"}
        said(api.post("/answers", json={"answers": [answer]}))
        assert running.kill() == -signal.SIGKILL
        running.start()
        assert said(api.post("/answers", json={"answers": [answer]}))["outcomes"][0]["repeated"] is True
        left = said(api.post("/queries", json={"key": "k", "n": 5}))["samples"]
        assert [one["id"] for one in left] == [one["id"] for one in query["samples"][1:]]
        with api.stream("GET", "/events"):
            assert running.kill(signal.SIGINT) == 0
    assert took < 10, f"ready after {took:.1f} s"


def test_the_server_never_imports_torch(folder):
    program = """
import sys, threading
from ally import Campaign
from ally.web.server import Plan, Server, prepare
import httpx, signal, ally.cli
place, out = sys.argv[1], []
with Campaign.open(place) as campaign:
    ready = prepare(campaign, Plan())
    up = threading.Event()
    server = Server(ready.page, up.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [ready.socket]})
    thread.start()
    up.wait()
    origin = ready.address.rstrip("/")
    with httpx.Client(base_url=origin + "/api/v1", headers={"Origin": origin}, trust_env=False) as api:
        query = api.post("/queries", json={"key": "torch", "n": 2}).json()
        id = query["samples"][0]["id"]
        seen = [api.post("/answers", json={"answers": [{"id": id, "key": "torch", "label": "digit 1"}]})]
        for path in ("campaign", "progress", "review", "answers", "export"):
            seen.append(api.get("/" + path))
        for size in ("thumb", "view"):
            seen.append(api.get("/samples/image", params={"id": id, "size": size}))
    server.handle_exit(signal.SIGINT, None)
    thread.join()
assert all(response.status_code == 200 for response in seen), [response.text for response in seen]
print("torch" in sys.modules)
"""
    write_photos(folder / "light", 12)
    place = folder / "light.db"
    Campaign.create(place, folder / "light", classes=CLASSES, automatic=False, evaluate=0).close()
    done = subprocess.run([sys.executable, "-c", program, str(place)], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "False", done.stdout + done.stderr


@pytest.mark.parametrize(("predicted", "beyond"), [(0.5, True), (1.0, False), (5.0, False), (9.0, True)])
def test_a_guess_beyond_all_numbers_is_marked(predicted, beyond):
    sample = AskedSample("a", "active", 0.1, {"predicted": predicted})
    assert asked(sample, [1.0, 3.0, 5.0]).guess.beyond is beyond
    assert not asked(sample).guess.beyond, "nothing was told yet"
