"""Vectors are made once, in batches, found again by content, and checked."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ally.data.encoders import Function, encode
from ally.data.encoders.cache import Stamps, VectorCache, content_key, kept_vectors, keys_of, vectors_file
from ally.data.encoders.pictures import as_picture, read_pictures
from ally.data.encoders.records import HEADER
from ally.errors import BrokenPart, DataError, InputError
from ally.testing.encoder import check_encoder

pytestmark = pytest.mark.xdist_group("encoders")
TEXTS = ["a", "bb", "abc", "dd d", "a"]


def letters(texts):
    return [[text.count(letter) for letter in "abcd"] for text in texts]


def test_vectors_come_in_the_order_of_the_samples(counting):
    call, encoder = counting
    found = encode(encoder, TEXTS, batch=2)
    np.testing.assert_array_equal(found, np.asarray(letters(TEXTS), np.float32))
    assert found.dtype == np.float32
    assert sorted(call.given) == sorted(TEXTS)


def test_a_second_call_reads_the_cache(counting, tmp_path):
    call, encoder = counting
    first = encode(encoder, TEXTS[:3], cache=tmp_path, batch=2)
    call.given.clear()
    again = encode(encoder, TEXTS, cache=tmp_path, batch=2)
    assert call.given == ["dd d"]
    np.testing.assert_array_equal(again[:3], first)
    assert kept_vectors(tmp_path, encoder.identity, 4) == 4


def test_another_encoder_finds_nothing_of_the_first(counting, tmp_path):
    _, encoder = counting
    encode(encoder, TEXTS, cache=tmp_path)
    other = Function(lambda texts: np.ones((len(texts), 2)), "other-1", "text", width=2)
    np.testing.assert_array_equal(encode(other, TEXTS, cache=tmp_path), np.ones((5, 2)))
    assert len(list(tmp_path.glob("*.vectors"))) == 2


def test_progress_and_nothing_to_do(counting):
    told = []
    assert encode(counting[1], [], progress=lambda *args: told.append(args)).shape == (0, 4)
    encode(counting[1], TEXTS, progress=lambda *args: told.append(args))
    assert told == [("encoding", 5, 5)]


def test_an_interrupted_call_goes_on(tmp_path):
    def failing(texts):
        if any("d" in text for text in texts):
            raise KeyboardInterrupt
        return letters(texts)

    texts = [*"abc", "d", "ab"]
    with pytest.raises(KeyboardInterrupt):
        encode(Function(failing, "letters-1", "text", width=4), texts, cache=tmp_path, batch=1)
    asked = []

    def call(texts):
        asked.extend(texts)
        return letters(texts)

    encode(Function(call, "letters-1", "text", width=4), texts, cache=tmp_path, batch=1)
    assert asked == ["d", "ab"]


def test_a_torn_tail_is_cut_and_a_damaged_record_made_anew(counting, tmp_path):
    call, encoder = counting
    expected = encode(encoder, TEXTS, cache=tmp_path, batch=1)
    path = vectors_file(tmp_path, encoder.identity)
    whole = path.read_bytes()
    size = 8 + 4 * 4 + 4
    assert len(whole) == HEADER + 4 * size
    for content, lost in (
        (whole[:-5], 1),
        (whole + b"xyz", 0),
        (whole[: HEADER + 10] + bytes([whole[HEADER + 10] ^ 1]) + whole[HEADER + 11 :], 1),
        (whole[:-size] + bytes(size), 1),
        (whole[:100], 4),
        (b"", 4),
        (b"something else entirely" + whole[23:], 4),
    ):
        path.write_bytes(content)
        call.given.clear()
        np.testing.assert_array_equal(encode(encoder, TEXTS, cache=tmp_path, batch=1), expected)
        assert len(set(call.given)) == lost
        call.given.clear()
        encode(encoder, TEXTS, cache=tmp_path, batch=1)
        assert not call.given


def _add(folder: str, start: int, n: int) -> None:
    cache = VectorCache(Path(folder), "shared", 8)
    for number in range(start, start + n):
        cache.add(keys_of([number]), np.full((1, 8), number, np.float32))


def _add_forever(folder: str) -> None:
    cache = VectorCache(Path(folder), "shared", 8)
    number = 10_000
    while True:
        cache.add(keys_of(range(number, number + 7)), np.full((7, 8), number, np.float32))
        number += 7


def test_two_processes_at_once_and_one_killed(tmp_path):
    fork = multiprocessing.get_context("fork")
    workers = [fork.Process(target=_add, args=(str(tmp_path), 1000 * number, 300)) for number in range(2)]
    victim = fork.Process(target=_add_forever, args=(str(tmp_path),))
    for process in (victim, *workers):
        process.start()
    cache = VectorCache(tmp_path, "shared", 8)
    for process in workers:
        process.join()
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    wanted = keys_of([*range(300), *range(1000, 1300)])
    rows = cache.find(wanted)
    assert (rows >= 0).all()
    np.testing.assert_array_equal(cache.read(rows)[:, 3], wanted.astype(np.float32))
    cache.add(keys_of([7]), np.zeros((1, 8), np.float32))
    assert not cache.read(cache.find(keys_of([7]))).any()


def test_many_keys_are_sorted_in(tmp_path, monkeypatch):
    monkeypatch.setattr("ally.data.encoders.cache.MERGED", 10)
    cache = VectorCache(tmp_path, "many", 1)
    keys = np.random.default_rng(0).permutation(100).astype(np.uint64)
    for start in range(0, 100, 7):
        some = keys[start : start + 7]
        cache.add(some, some[:, None].astype(np.float32))
        assert (cache.find(keys[: start + 7]) >= 0).all()
    np.testing.assert_array_equal(cache.read(cache.find(keys))[:, 0], keys)
    assert (cache.find(keys_of([100, 2**63])) == -1).all()


def test_stamps_remember_the_content_of_a_file(tmp_path):
    stamps = Stamps(tmp_path)
    stamps.add(keys_of([1, 2]), keys_of([10, 20]), keys_of([100, 200]))
    stamps.add(keys_of([2]), keys_of([21]), keys_of([201]))
    keys, known = Stamps(tmp_path).find_contents(keys_of([1, 2, 2, 3]), keys_of([10, 21, 20, 10]))
    assert known.tolist() == [True, True, False, False]
    assert keys[:2].tolist() == [100, 201]


def test_a_folder_that_cannot_be_written(tmp_path, counting):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(DataError, match=r"cannot be written.*check the disk"):
        encode(counting[1], TEXTS, cache=tmp_path / "file")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda texts: np.full((len(texts), 4), np.nan), "gave nan in column 0 for sample 0"),
        (lambda texts: np.zeros((len(texts) + 1, 4)), "gave 5 vectors for 4 samples"),
        (lambda texts: np.zeros((len(texts), 3)), "gave vectors of width 3; before they had 4"),
        (lambda texts: np.zeros(len(texts)), r"shape \(4,\) for 4 samples"),
        (lambda texts: ["no numbers"] * len(texts), "not an array of numbers"),
    ],
)
def test_bad_encoder_outputs_are_refused(call, message, tmp_path):
    encoder = Function(call, "broken-1", "text", width=4)
    with pytest.raises(BrokenPart, match=message):
        encode(encoder, TEXTS, cache=tmp_path)
    assert kept_vectors(tmp_path, encoder.identity, 4) == 0


def test_the_sample_with_nan_is_named_though_texts_are_sorted():
    def call(texts):
        return [[np.nan if text == "dd d" else 1.0] for text in texts]

    with pytest.raises(BrokenPart, match="nan in column 0 for sample 3"):
        encode(Function(call, "broken-2", "text"), TEXTS)


def test_another_width_later_is_refused(tmp_path):
    widths = iter((4, 4, 5))
    encoder = Function(lambda texts: np.zeros((len(texts), next(widths))), "growing-1", "text")
    with pytest.raises(BrokenPart, match="width 5; before they had 4"):
        encode(encoder, TEXTS, batch=3)


def test_empty_texts_and_other_things_are_named(counting):
    with pytest.raises(InputError, match="sample 1 cannot be encoded: the text is empty"):
        encode(counting[1], ["a", " \n"])
    with pytest.raises(InputError, match="sample 0 cannot be encoded: it is 3, not a text"):
        encode(counting[1], [3])
    told = []
    found = encode(counting[1], ["a", "", "b"], report=lambda place, why: told.append((place, why)))
    assert told == [(1, "the text is empty; write something, or leave it out")]
    assert found[1].tolist() == [0, 0, 0, 0]


def test_names_and_kinds_of_functions():
    for arguments, message in (
        ((len, "", "text"), "name=''"),
        ((len, "x", "sound"), "kind='sound'"),
        ((3, "x", "text"), "call=3"),
    ):
        with pytest.raises(InputError, match=message):
            Function(*arguments)


def test_conformance_finds_an_encoder_that_depends_on_the_batch():
    check_encoder(Function(lambda texts: np.asarray([[len(text), 1.0] for text in texts]), "fine-1", "text"))
    check_encoder(Function(lambda batch: [picture.mean((1, 2)) for picture in batch], "mean-1", "image"))
    looking = Function(lambda texts: np.full((len(texts), 2), float(len(texts))), "looks-1", "text")
    with pytest.raises(AssertionError, match="alone and among others"):
        check_encoder(looking)


# Pictures


def read_picture(path, side):
    (found,) = read_pictures([path], side)
    assert not isinstance(found, DataError), found
    return found


def mean_encoder(side=16):
    return Function(lambda batch: [picture.mean((1, 2)) for picture in batch], "mean-1", "image", side=side)


def test_photos_and_arrays(tmp_path):
    pixels = np.zeros((3, 40, 60), np.uint8)
    pixels[0, :, :30] = 200
    Image.fromarray(pixels.transpose(1, 2, 0)).save(tmp_path / "a.png")
    from_file = encode(mean_encoder(), [tmp_path / "a.png", str(tmp_path / "a.png")], cache=tmp_path / "kept")
    from_array = encode(mean_encoder(), pixels[None].astype(np.float64))
    np.testing.assert_allclose(from_file, [[100, 0, 0], [100, 0, 0]])
    np.testing.assert_allclose(from_array, [[100, 0, 0]])


def test_a_photo_is_read_upright_and_small(tmp_path):
    pixels = np.zeros((300, 900, 3), np.uint8)
    pixels[:, :450, 0] = 250
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees: left is up
    for name in ("a.jpg", "a.png"):
        Image.fromarray(pixels).save(tmp_path / name, exif=exif)
        found = read_picture(tmp_path / name, 16)
        height, width = found.shape[1:]
        assert (height > width, 32 <= width < 64) == (True, True)
        assert found[0, : height // 3].min() > 230
        assert found[0, -height // 3 :].max() < 20


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA", "CMYK", "I;16", "I", "F"])
def test_every_mode_becomes_three_channels(tmp_path, mode):
    image = Image.new(mode, (50, 40))
    image.save(tmp_path / "a.tif")
    assert read_picture(tmp_path / "a.tif", 8).shape[0] == 3


def _grown(path: Path, told) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    shape = read_picture(path, 160).shape
    told.send((shape, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024))


@pytest.mark.parametrize(
    ("name", "shape", "most"), [("large.jpg", (3, 444, 444), 60), ("large.png", (3, 323, 323), 260)]
)
def test_fifty_megapixels_stay_small(tmp_path, name, shape, most):
    """A JPEG is decoded at a fraction; anything else once, and made smaller before it is copied."""
    Image.new("RGB", (7100, 7100), (90, 80, 70)).save(
        tmp_path / name, **({"compress_level": 1} if "png" in name else {})
    )
    # In a process of its own: what this one took before must not hide what is taken now.
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    process = fork.Process(target=_grown, args=(tmp_path / name, theirs))
    process.start()
    theirs.close()
    found, mebibytes = ours.recv()
    process.join()
    assert found == shape
    assert mebibytes < most


def test_things_that_are_not_pictures_are_refused(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8 nothing")
    told = []
    encode(
        mean_encoder(), [tmp_path / "a.jpg", tmp_path / "gone.png"], report=lambda place, why: told.append((place, why))
    )
    assert [place for place, _ in told] == [0, 1]
    assert all("cannot be read" in why for _, why in told)
    for odd, message in (
        (np.zeros((4, 3)), "shape"),
        (np.full((3, 2, 2), -1.0), "0 to 255"),
        (np.full((3, 2, 2), np.nan), "0 to 255"),
    ):
        with pytest.raises(DataError, match=message):
            as_picture(odd)


def test_content_keys_differ():
    assert content_key(b"a") != content_key(b"b")
