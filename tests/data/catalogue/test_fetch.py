"""Fetching from a real web server on this machine."""

import hashlib
import tarfile
import threading
import time

import numpy as np
import pytest

from ally.data.catalogue import Archive, Check, Entry, File, fetch, verify
from ally.data.catalogue.catalogue import DATASETS
from ally.data.catalogue.dataset import Parts
from ally.data.catalogue.fetch import fetch_entry
from ally.data.catalogue.verify import verify_entry
from ally.errors import DataError, InputError, UnknownName

GOOD = bytes(range(256)) * 300


def md5(content):
    return "md5:" + hashlib.md5(content).hexdigest()


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def read_anything(folder):
    return Parts(np.zeros((1, 1)), np.zeros(1), np.zeros((1, 1)), np.zeros(1))


def entry(*files, archives=(), by_hand=""):
    return Entry(
        "classification", "images", "about", "1 + 1", "someone", "none", read_anything, files, archives, by_hand
    )


def one_file(site, *paths, checksum=None):
    return entry(File("set/a.bin", checksum or sha256(GOOD), tuple(site.url + path for path in paths)))


def test_fetched_verified_and_not_fetched_again(site, tmp_path, listing):
    site.files["/a"] = GOOD
    stages = []
    wanted = one_file(site, "/a")
    assert fetch_entry("x", wanted, tmp_path, lambda *step: stages.append(step)) == ("set/a.bin fetched",)
    assert (tmp_path / "set" / "a.bin").read_bytes() == GOOD
    assert (tmp_path / "set" / "a.bin").stat().st_mode & 0o444 == 0o444, "others may read it"
    assert stages[-1] == ("fetching a.bin", len(GOOD), len(GOOD))
    assert fetch_entry("x", wanted, tmp_path) == ("set/a.bin is already here",)
    assert site.asked == ["/a"]
    assert listing(tmp_path) == ["set/a.bin"]


@pytest.mark.parametrize("kind", [md5, sha256])
def test_a_changed_file_never_gets_its_name(site, tmp_path, listing, kind):
    site.files["/a"] = tampered = GOOD[:-1] + b"!"
    with pytest.raises(DataError) as error:
        fetch_entry("x", one_file(site, "/a", checksum=kind(GOOD)), tmp_path)
    text = str(error.value)
    assert f"expected {kind(GOOD)}, found {kind(tampered)}" in text
    assert "Run the command again" in text
    assert str(tmp_path / "set" / "a.bin") in text
    assert listing(tmp_path) == []


def test_a_truncated_answer_never_gets_its_name_and_a_second_run_repairs(site, tmp_path, listing):
    site.files["/a"] = GOOD
    site.cut["/a"] = 1000
    wanted = one_file(site, "/a")
    with pytest.raises(DataError, match="could not be fetched; nothing was put there"):
        fetch_entry("x", wanted, tmp_path)
    assert listing(tmp_path) == []
    site.cut.clear()
    assert fetch_entry("x", wanted, tmp_path) == ("set/a.bin fetched",)


def test_a_short_file_announced_as_short_is_refused_by_its_checksum(site, tmp_path, listing):
    site.files["/a"] = GOOD[:1000]
    with pytest.raises(DataError, match="expected sha256"):
        fetch_entry("x", one_file(site, "/a"), tmp_path)
    assert listing(tmp_path) == []


def test_mirrors_are_tried_in_turn(site, tmp_path):
    site.files.update({"/tampered": b"no", "/good": GOOD, "/never": GOOD})
    fetch_entry("x", one_file(site, "/gone", "/tampered", "/good", "/never"), tmp_path)
    assert site.asked == ["/gone", "/tampered", "/good"]
    assert (tmp_path / "set" / "a.bin").read_bytes() == GOOD


def test_every_mirror_that_failed_is_named(site, tmp_path):
    site.files["/tampered"] = b"no"
    unreachable = "http://127.0.0.1:9/a"
    wanted = entry(File("set/a.bin", md5(GOOD), (unreachable, site.url + "/gone", site.url + "/tampered")))
    with pytest.raises(DataError) as error:
        fetch_entry("x", wanted, tmp_path)
    assert all(part in str(error.value) for part in (unreachable, "404", "/tampered: the file is damaged"))


def test_a_damaged_file_on_disk_is_replaced_only_by_a_good_one(site, tmp_path):
    (tmp_path / "set").mkdir()
    mine = tmp_path / "set" / "a.bin"
    mine.write_bytes(b"half of it")
    site.files["/a"] = b"wrong too"
    with pytest.raises(DataError):
        fetch_entry("x", one_file(site, "/a"), tmp_path)
    assert mine.read_bytes() == b"half of it"
    site.files["/a"] = GOOD
    fetch_entry("x", one_file(site, "/a"), tmp_path)
    assert mine.read_bytes() == GOOD


def test_interrupted_while_it_runs(site, tmp_path, listing):
    site.files["/a"] = GOOD

    def interrupt(stage, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch_entry("x", one_file(site, "/a"), tmp_path, interrupt)
    assert listing(tmp_path) == []
    assert fetch_entry("x", one_file(site, "/a"), tmp_path) == ("set/a.bin fetched",)


def test_only_what_is_missing_of_several_files(site, tmp_path):
    site.files.update({"/a": GOOD, "/b": GOOD[::-1]})
    wanted = entry(
        File("set/a", sha256(GOOD), (site.url + "/a",)),
        File("set/b", sha256(GOOD[::-1]), (site.url + "/b",), (File("set/b.plain"),)),
    )
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "b.plain").write_bytes(b"another form of the same")
    fetch_entry("x", wanted, tmp_path)
    assert site.asked == ["/a"]


def archive(site, content, *holds):
    site.files["/a.tar.gz"] = content
    return entry(
        *(File(path) for path in holds), archives=(Archive("a.tar.gz", md5(content), (site.url + "/a.tar.gz",), holds),)
    )


def test_archives_give_only_what_is_wanted_and_go(site, tmp_path, write, listing):
    wanted = archive(site, write.tar({"set/a": GOOD, "set/huge": b"x" * 1000, "set/b": b"bb"}), "set/a", "set/b")
    assert fetch_entry("x", wanted, tmp_path) == ("a.tar.gz fetched and unpacked",)
    assert listing(tmp_path) == ["set/a", "set/b"]
    assert (tmp_path / "set" / "a").read_bytes() == GOOD
    assert fetch_entry("x", wanted, tmp_path) == ("the content of a.tar.gz is already here",)
    (tmp_path / "set" / "b").unlink()
    fetch_entry("x", wanted, tmp_path)
    assert site.asked == ["/a.tar.gz"] * 2
    assert listing(tmp_path) == ["set/a", "set/b"]


def test_a_file_of_the_wrong_size_is_unpacked_again(site, tmp_path, write):
    site.files["/a.tar.gz"] = content = write.tar({"set/a": GOOD})
    packed = Archive("a.tar.gz", md5(content), (site.url + "/a.tar.gz",), ("set/a",))
    wanted = entry(File("set/a", size=len(GOOD)), archives=(packed,))
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").write_bytes(GOOD[:-1])
    assert verify_entry(wanted, tmp_path) == (
        Check("set/a", "differs", f"expected {len(GOOD)} bytes, found {len(GOOD) - 1}"),
    )
    fetch_entry("x", wanted, tmp_path)
    assert verify_entry(wanted, tmp_path) == (Check("set/a", "readable", "no official checksum is known"),)


def test_an_archive_the_user_put_there_is_used_and_kept(site, tmp_path, write, listing):
    wanted = archive(site, write.tar({"set/a": GOOD}), "set/a")
    (tmp_path / "a.tar.gz").write_bytes(site.files["/a.tar.gz"])
    assert fetch_entry("x", wanted, tmp_path) == ("a.tar.gz unpacked",)
    assert site.asked == []
    assert listing(tmp_path) == ["a.tar.gz", "set/a"]


def link(name, target, kind=tarfile.SYMTYPE):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"../evil": b"x"}, "lies outside its folder"),
        ({"/tmp/evil": b"x"}, "lies outside its folder"),
        ({"set/../../evil": b"x"}, "lies outside its folder"),
        ({"set/link": link("set/link", "/etc")}, "is a link or a device"),
        ({"set/link": link("set/link", "../x", tarfile.LNKTYPE)}, "is a link or a device"),
        ({"set/pipe": link("set/pipe", "", tarfile.FIFOTYPE)}, "is a link or a device"),
        ({}, "lacks set/a"),
    ],
)
def test_hostile_archives(site, tmp_path, write, listing, members, message):
    inside = tmp_path / "inside"
    with pytest.raises(DataError, match=message):
        fetch_entry("x", archive(site, write.tar({**members, "other": b"o"}), "set/a"), inside)
    assert listing(tmp_path) == ["inside/a.tar.gz"]


def test_a_damaged_archive(site, tmp_path, write, listing):
    content = write.tar({"set/a": np.random.default_rng(0).bytes(100_000)})
    with pytest.raises(DataError, match="is damaged"):
        fetch_entry("x", archive(site, content[: len(content) // 2], "set/a"), tmp_path)
    assert listing(tmp_path) == ["a.tar.gz"]


def test_two_fetches_at_once_leave_a_whole_file(site, tmp_path, listing):
    site.files["/a"] = GOOD
    faults = []

    def go():
        try:
            fetch_entry("x", one_file(site, "/a"), tmp_path)
        except Exception as error:
            faults.append(error)

    threads = [threading.Thread(target=go) for _ in range(4)]
    for thread in threads:
        thread.start()
        time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert not faults
    assert (tmp_path / "set" / "a.bin").read_bytes() == GOOD
    assert listing(tmp_path) == ["set/a.bin"]


def test_what_cannot_be_fetched_says_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"concrete cannot be fetched: write its 1030 rows into uci/concrete\.csv\.gz"):
        fetch("concrete", tmp_path)
    assert fetch("digits", tmp_path) == ("digits ships with scikit-learn: there is nothing to fetch",)
    with pytest.raises(UnknownName, match="did you mean 'mnist'"):
        fetch("mnst", tmp_path)
    with pytest.raises(InputError, match="has an address and no checksum"):
        File("a", urls=("http://x",))


def test_verify(mnist_folder):
    checks = {check.path: check for check in verify("mnist", mnist_folder)}
    assert {check.verdict for check in checks.values()} == {"differs"}
    assert "expected md5:f68b3c2d" in checks["mnist/train-images-idx3-ubyte.gz"].detail
    broken = mnist_folder / "mnist" / "train-images-idx3-ubyte.gz"
    broken.write_bytes(b"\x1f\x8bxx")
    assert {check.verdict for check in verify("mnist", mnist_folder)} == {"bad"}
    broken.unlink()
    assert [check.verdict for check in verify("mnist", mnist_folder)] == ["missing", "bad", "bad", "bad"]
    assert verify("digits", mnist_folder) == ()


def test_every_set_with_an_address_can_be_fetched_and_every_other_says_how():
    for name, item in DATASETS.items():
        assert item.fetchable or item.by_hand, name
        for file in item.files:
            assert not file.urls or file.checksum, name
        for packed in item.archives:
            assert set(packed.holds) == {file.path for file in item.files}, name
