"""What holds for every kind of source."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from ally.data import Shown, Source, open_source
from ally.data.encoders import Function
from ally.data.encoders.samples import EncodedSamples
from ally.errors import AllyError, IdError
from ally.testing.samples import check_samples

TABLE = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, 2.0, 4.0], "colour": ["red", "blue", "red"]})
TEXTS = "one fine day\ntwo rainy nights\n😀 three\n"


def folder(where):
    (where / "photos").mkdir()
    for number, name in enumerate(("a.jpg", "b.png", "c.bmp")):
        Image.new("RGB", (20, 12), (60 * number, 80, 90)).save(where / "photos" / name)
    return where / "photos"


def written(name, text):
    def write(where):
        (where / name).write_text(text, encoding="utf-8")
        return where / name

    return write


def parquet(where):
    TABLE.to_parquet(where / "t.parquet")
    return where / "t.parquet"


def array(where):
    np.save(where / "X.npy", np.arange(6.0).reshape(3, 2))
    return where / "X.npy"


EMBEDDINGS = {"a": [1.0, 2.0], "b": [3.0, 4.0], "c": [5.0, 6.0]}
KINDS = {
    "folder": (folder, {}),
    "csv": (written("t.csv", TABLE.to_csv(index=False)), {}),
    "tsv": (written("t.tsv", TABLE.to_csv(index=False, sep="\t")), {}),
    "csv without ids": (written("t.csv", TABLE.drop(columns="id").to_csv(index=False)), {}),
    "jsonl": (written("t.jsonl", TABLE.to_json(orient="records", lines=True)), {}),
    "parquet": (parquet, {}),
    "frame": (lambda where: TABLE, {}),
    "text": (written("t.txt", TEXTS), {}),
    "text column": (written("t.csv", TABLE.to_csv(index=False)), {"text": "colour"}),
    "embeddings": (written("t.csv", TABLE.to_csv(index=False)), {"embeddings": EMBEDDINGS}),
    "array": (array, {}),
}


@pytest.fixture(params=KINDS)
def opened(request, tmp_path):
    make, options = KINDS[request.param]
    place = make(tmp_path)
    keep = {name: value for name, value in options.items() if name == "embeddings"}
    return open_source(place, **options), lambda known: open_source(place, known=known, **keep)


def test_scanning_twice_gives_the_same(opened):
    samples, again = opened
    first = list(samples.scan())
    assert len(first) == 3
    assert len({sample.id for sample in first}) == 3
    assert list(samples.scan()) == first
    assert list(again(json.loads(json.dumps(samples.fingerprint()))).scan()) == first


def test_a_scan_can_be_abandoned(opened):
    samples, _ = opened
    one = next(iter(samples.scan()))
    assert len(list(samples.scan())) == 3
    assert samples.show(one.id).id == one.id


def test_rows_follow_the_ids(opened):
    samples, again = opened
    ids = [sample.id for sample in samples.scan()]
    source = samples.features(ids)
    assert isinstance(source, Source)
    assert len(source) == 3
    values = source.read(np.arange(3))
    assert values.shape == (3, *source.shape)
    assert values.dtype.kind == "f"
    assert np.isfinite(values).all()
    turned = samples.features(ids[::-1])
    np.testing.assert_array_equal(turned.read(np.array([2, 0, 0])), values[[0, 2, 2]])
    assert source.read(np.array([], np.int64)).shape == (0, *source.shape)
    np.testing.assert_array_equal(again(samples.fingerprint()).features(ids).read(np.arange(3)), values)


def test_unknown_ids(opened):
    samples, _ = opened
    ids = [sample.id for sample in samples.scan()]
    assert samples.missing(ids) == []
    assert samples.missing([*ids, "nope"]) == ["nope"]
    assert samples.problems.of("nope")[0].kind == "gone"
    with pytest.raises(IdError, match="nope"):
        samples.show("nope")
    with pytest.raises(IdError, match=r"1 of 4 .*nope"):
        samples.features([*ids, "nope"])


def test_something_is_shown(opened):
    samples, _ = opened
    for sample in samples.scan():
        shown = samples.show(sample.id)
        assert isinstance(shown, Shown)
        assert shown.path is not None or shown.text or shown.columns


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["t.csv", "t.tsv", "t.jsonl", "t.txt", "t.npy", "t.parquet"]),
    st.binary(max_size=200)
    | st.text('",\n\r\t{}[]:x1\ud800\0', max_size=60).map(
        lambda text: b'id,text\n{"id": 1, "text": "\\ud800"}\n' + text.encode("utf-8", "ignore")
    )
    | st.binary(max_size=40).map(lambda data: b"\x93NUMPY\x01\x00" + data)
    | st.binary(max_size=40).map(lambda data: b"PAR1" + data + b"PAR1"),
)
def test_any_bytes_are_read_or_refused_with_an_error_of_ours(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    try:
        samples = open_source(tmp_path / name)
        ids = [sample.id for sample in samples.scan()]
        samples.features(ids).read(np.arange(len(ids)))
        for id in ids:
            id.encode("utf-8")
            samples.show(id)
    except AllyError:
        pass


@pytest.mark.parametrize("ending", ["jpg", "png", "gif", "bmp", "webp", "tif", "ppm"])
def test_damaged_images_are_reported(tmp_path, ending):
    rng = np.random.default_rng(0)
    whole = tmp_path / f"whole.{ending}"
    Image.fromarray(rng.integers(0, 255, size=(40, 40, 3), dtype=np.uint8)).save(whole)
    data = whole.read_bytes()
    for number in range(30):
        broken = bytearray(data[: rng.integers(1, len(data))] if number % 2 else data)
        for place in rng.integers(0, len(broken), 5):
            broken[place] = rng.integers(256)
        (tmp_path / f"{number}.{ending}").write_bytes(broken)
    samples = open_source(tmp_path)
    ids = [sample.id for sample in samples.scan()]
    assert f"whole.{ending}" in ids
    assert samples.features(ids).read(np.arange(len(ids))).shape == (len(ids), 3, 32, 32)
    assert len(samples.problems) > 0


@pytest.mark.parametrize("name", KINDS)
def test_conformance(name, tmp_path):
    make, options = KINDS[name]
    place = make(tmp_path)
    keep = {key: value for key, value in options.items() if key == "embeddings"}
    check_samples(lambda known: open_source(place, **(options if known is None else keep), known=known))


def test_conformance_behind_an_encoder(tmp_path):
    encoder = Function(lambda texts: [[len(text), text.count("a"), 1.0] for text in texts], "counts-1", "text")
    about = {"name": "counts-1", "identity": encoder.identity, "width": 3}
    check_samples(
        lambda known: EncodedSamples(open_source(TEXTS.splitlines(), known=known), about, lambda: encoder, tmp_path)
    )
