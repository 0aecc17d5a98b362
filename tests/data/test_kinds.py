"""Kinds of data: ours, one of a user's own, and the check that both have to pass."""

import dataclasses
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from ally.data import KINDS, ById, FolderSamples, Sample, SampleKind, Samples, Shown, open_source, register_kind
from ally.data.encoders.samples import EncodedSamples
from ally.data.kinds import BUILT_IN, name_kind
from ally.data.problems import Problems
from ally.errors import DataError, IdError, InputError
from ally.testing.samples import CHECKS, check_samples

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def sound_clips(monkeypatch):
    """The example, as other processes find it too; what it registered is taken back."""
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLES))
    yield importlib.import_module("sound_clips")
    del sys.modules["sound_clips"]
    KINDS.remove("sounds")


def test_ours_are_entries():
    assert {kind.name for kind in KINDS.values() if not kind.is_own} == set(BUILT_IN)
    assert [KINDS[name].widget for name in BUILT_IN] == ["card", "image", "text", "card"]
    for name in BUILT_IN:
        assert name_kind(KINDS[name]) == name
        with pytest.raises(InputError, match="built-in"):
            register_kind(dataclasses.replace(KINDS[name]))
        assert dataclasses.replace(KINDS[name]).is_own, "an entry of somebody's own under our name passes for ours"


def test_a_text_is_compared_with_a_warning():
    with pytest.warns(DeprecationWarning, match="compare kind.name"):
        assert KINDS["images"] == "images"
    with pytest.warns(DeprecationWarning, match="compare kind.name"):
        assert KINDS["images"] != "text"
    assert KINDS["images"] != KINDS["text"]
    assert repr(KINDS["images"]) == "<kind of data 'images'>"


@pytest.mark.parametrize("name", ["", "Sounds", "../x", "a b", "ünd"])
def test_a_name_is_plain(name):
    with pytest.raises(InputError, match="lower-case letters"):
        dataclasses.replace(KINDS["images"], name=name)


def test_a_kind_of_ones_own(tmp_path, sound_clips):
    truth = sound_clips.write_clips(tmp_path / "clips", 9)
    (tmp_path / "clips" / "sub").mkdir()
    (tmp_path / "clips" / "sub" / "cut.wav").write_bytes((tmp_path / "clips" / "000.wav").read_bytes()[:60])
    (tmp_path / "clips" / "bad.wav").write_bytes(b"RIFF")
    samples = open_source(tmp_path / "clips")
    assert samples.kind is sound_clips.SOUNDS
    assert [sample.id for sample in samples.scan()] == list(truth)
    assert [problem.id for problem in samples.problems] == ["bad.wav", "sub/cut.wav"]
    assert samples.show("000.wav").picture.startswith(b"\x89PNG")
    with pytest.raises(IdError, match=r"no clip '\.\./clips/000\.wav'"):
        samples.show("../clips/000.wav")
    with pytest.raises(DataError, match="cannot be read"):
        samples.show("bad.wav")
    with pytest.raises(InputError, match="clips are neither texts nor images"):
        samples.contents(["000.wav"])
    with pytest.raises(InputError, match="text= does not apply to"):
        open_source(tmp_path / "clips", text="x")
    (tmp_path / "clips" / "001.wav").write_bytes(b"gone bad")
    values = samples.features(["000.wav", "001.wav"]).read(np.arange(2))
    assert values[0].any()
    assert not values[1].any()
    assert samples.problems.of("001.wav")[0].kind == "unreadable"


def test_it_keeps_the_contract(tmp_path, sound_clips):
    sound_clips.write_clips(tmp_path / "clips", 6)
    (tmp_path / "clips" / "bad.wav").write_bytes(b"")
    check_samples(lambda known: open_source(tmp_path / "clips", kind="sound_clips:SOUNDS", known=known))
    vectors = {f"{number:03}.wav": [float(number), 1.0] for number in range(6)}
    check_samples(
        lambda known: open_source(tmp_path / "clips", kind=sound_clips.SOUNDS, embeddings=vectors, known=known)
    )


def test_a_fingerprint_names_no_code(tmp_path, sound_clips):
    """It says which kind it needs; what is imported and asked is for whoever opens the source to say."""
    sound_clips.write_clips(tmp_path / "clips", 3)
    kept = open_source(tmp_path / "clips").fingerprint()
    with pytest.raises(InputError, match=r"a folder of images, .* the kind 'sounds' .* kind='module:NAME' \(--kind\)"):
        open_source(tmp_path / "clips", known=kept)
    other = dataclasses.replace(sound_clips.SOUNDS, name="noises")
    with pytest.raises(InputError, match="created from the kind 'sounds'"):
        open_source(tmp_path / "clips", kind=other, known=kept)
    with pytest.raises(DataError, match="fingerprint"):
        open_source(tmp_path / "clips", kind="sound_clips:SOUNDS", known={**kept, "module": "sound_clips"})


def test_where_other_processes_find_it(sound_clips, monkeypatch):
    assert name_kind(sound_clips.SOUNDS) == name_kind("sounds") == "sound_clips:SOUNDS"
    with pytest.raises(InputError, match="has no name in the module 'sound_clips'"):
        name_kind(dataclasses.replace(sound_clips.SOUNDS))
    monkeypatch.setattr(sound_clips.SoundClips, "__module__", "__main__")
    assert name_kind(sound_clips.SOUNDS) is None
    monkeypatch.undo()
    monkeypatch.syspath_prepend(EXAMPLES)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(InputError, match="can only be imported here; install 'sound_clips'"):
        name_kind("sound_clips:SOUNDS")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("nosuchmodule:SOUNDS", "cannot be imported .*module:NAME"),
        ("json:dumps", "is a function; name a SampleKind"),
        ("sonds", "unknown kind of data 'sonds'; did you mean 'sounds'"),
        (3, "is no kind of data"),
    ],
)
def test_what_is_no_kind(tmp_path, sound_clips, kind, words):
    with pytest.raises(InputError, match=words):
        open_source(tmp_path, kind=kind)


class Pairs(Samples):
    """Three samples that keep the contract; each fault below breaks it in one place."""

    def __init__(self, known=None):
        self.problems = Problems()
        self.known = known

    kind = SampleKind("pairs", ("pair", "pairs"), lambda place: False, lambda request: Pairs(request.known))

    def numbers(self):
        return {"a": (1.0, 2.0), "b": (3.0, 4.0), "c": (5.0, 6.0)}

    def scan(self):
        self.problems.clear()
        self.problems.add("d", "unreadable", "it is half a pair")
        yield from (Sample(id, str(pair)) for id, pair in self.numbers().items())

    def show(self, id):
        if id not in self.numbers():
            raise IdError(f"there is no pair {id!r}")
        return Shown(id, columns={"left": self.numbers()[id][0]})

    def missing(self, ids):
        gone = [id for id in ids if id not in self.numbers()]
        for id in gone:
            self.problems.add(id, "gone", "it is gone")
        return gone

    def features(self, ids):
        if self.missing(ids):
            raise IdError(f"there are no pairs {self.missing(ids)}")
        return ById(ids, (2,), self.load)

    def load(self, ids):
        return np.asarray([self.numbers()[id] for id in ids], np.float64).reshape(-1, 2)


def scan_of(*ids):
    return lambda self: iter([Sample(id, None) for id in ids])


def counting_scan(self):
    self.count = getattr(self, "count", 0) + 1
    return iter([Sample("a", str(self.count)), Sample("b", None)])


FAULTS = {
    "the same id twice": ({"scan": scan_of("a", "a")}, "came more than once"),
    "ids that are numbers": ({"scan": scan_of(1, 2)}, "ids are texts"),
    "ids that change": ({"scan": lambda self: iter([Sample(str(id(self)), None), Sample("b", None)])}, "other ids"),
    "hashes that change": ({"scan": counting_scan}, "gave other samples"),
    "problems that pile up": ({"problems_of_before": True}, "other problems"),
    "a kind that is a text": ({"kind": "pairs"}, "is a str"),
    "features in an order of their own": (
        {"features": lambda self, ids: ById(sorted(ids), (2,), self.load)},
        "not in that order",
    ),
    "features that depend on what else is read": (
        {"load": lambda self, ids: Pairs.load(self, ids) + len(ids)},
        "others|size|order",
    ),
    "features that are not finite": ({"load": lambda self, ids: np.full((len(ids), 2), np.nan)}, "NaN"),
    "features of another shape": ({"load": lambda self, ids: np.ones((len(ids), 3))}, "read gave"),
    "nothing to see": ({"show": lambda self, id: Shown(id)}, "nothing to see"),
    "an unknown id that is shown": ({"show": lambda self, id: Shown(id, text=id)}, "show took the id"),
    "unknown ids that are taken": (
        {"features": lambda self, ids: ById([id if id in "abc" else "a" for id in ids], (2,), self.load)},
        "features took the id",
    ),
    "missing ids that are not named": ({"missing": lambda self, ids: []}, "missing said"),
    "a fingerprint that is no JSON": (
        {"fingerprint": lambda self, learned=True: {**Samples.fingerprint(self), "own": {"mean": np.float32(1)}}},
        "not plain JSON",
    ),
    "a fingerprint that is not used": (
        {"load": lambda self, ids: Pairs.load(self, ids) + (0 if self.known is None else 1)},
        "opened by its fingerprint, the source has other features",
    ),
    "notes that are a text": ({"notes": "the learner reads pairs"}, "notes are a str"),
    "a note of one word": ({"notes": ("pairs",)}, "is no sentence"),
    "contents that no encoder reads": ({"contents": lambda self, ids: list(ids)}, "no encoder reads"),
    "a problem without a reason": (
        {"scan": lambda self: self.problems.add("d", "value", " ") or scan_of("a", "b")(self)},
        "without a reason",
    ),
}


def test_the_check_passes_what_keeps_the_contract():
    check_samples(Pairs)
    assert len(CHECKS) == 11


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds(fault):
    members, words = FAULTS[fault]
    if members.pop("problems_of_before", False):

        def scan(self):
            self.problems.add(f"row {len(self.problems)}", "unreadable", "it is half a pair")
            return scan_of("a", "b")(self)

        members = {"scan": scan}
    broken = type("Broken", (Pairs,), members)
    with pytest.raises(AssertionError, match=words):
        check_samples(broken)


def test_where_the_kind_is_asked():
    """Nobody compares the name of a kind; an encoder is of a kind of its own."""
    compared = re.compile(r"\bkind(\.name)?\s*(==|!=|in|not in)\s*[\"'(\[{]\s*[\"']?(images|text|table|features)\b")
    source = Path(sys.modules[Samples.__module__].__file__).parents[1]
    files = [*source.rglob("*.py"), *source.rglob("*.js")]
    found = {
        path.relative_to(source).as_posix()
        for path in files
        if "encoder" not in path.as_posix()
        and any(compared.search(line) for line in path.read_text(encoding="utf-8").splitlines())
    }
    assert found == set()


def test_encoded_samples_are_of_their_kind(tmp_path, photos):
    samples = open_source(photos)
    encoded = EncodedSamples(samples, {"name": "n", "identity": "n", "width": 2}, lambda: None, tmp_path)
    assert encoded.kind is samples.kind is KINDS["images"]
    assert isinstance(samples, FolderSamples)
