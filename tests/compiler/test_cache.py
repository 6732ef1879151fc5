"""The disk cache: what was put is got back, whatever happens to the files in between."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import functrans as ft
from functrans.machine import cache
from functrans.machine.cache import ObjectCache, cache_key, default_directory

ROOT = Path(__file__).parent.parent.parent
DATA = bytes(range(256)) * 40


def entry_file(directory: Path) -> Path:
    (path,) = directory.glob("*.object")
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def test_what_was_put_is_got_back(directory: Path) -> None:
    first = ObjectCache(directory)
    assert first.get("a") is None
    first.put("a", DATA)
    first.put("b", b"")
    assert first.get("a") == DATA
    assert ObjectCache(directory).get("b") == b""
    statistics = first.statistics()
    assert (statistics.entries, statistics.hits, statistics.misses) == (2, 1, 1)
    assert statistics.size_bytes > len(DATA)
    assert statistics.damaged == 0


def test_the_directory_is_private(directory: Path) -> None:
    ObjectCache(directory)
    assert directory.stat().st_mode & 0o777 == 0o700


def test_clear_removes_all_entries(directory: Path) -> None:
    objects = ObjectCache(directory)
    objects.put("a", DATA)
    objects.clear()
    assert objects.get("a") is None
    assert not list(directory.iterdir())


def test_a_later_put_replaces_an_earlier_one(directory: Path) -> None:
    objects = ObjectCache(directory)
    objects.put("a", DATA)
    objects.put("a", b"new")
    assert objects.get("a") == b"new"
    assert objects.statistics().entries == 1


@pytest.mark.parametrize("size", [0, 1, 15, 16, 40, 91, 92, 93, 500, -1])
def test_truncated_entries_count_as_absent_and_are_removed(directory: Path, size: int) -> None:
    objects = ObjectCache(directory)
    objects.put("a", DATA)
    path = entry_file(directory)
    path.write_bytes(path.read_bytes()[:size])
    assert objects.get("a") is None
    assert not path.exists()
    assert objects.statistics().damaged == 1
    objects.put("a", DATA)
    assert objects.get("a") == DATA


def test_no_flipped_bit_goes_unnoticed(directory: Path) -> None:
    objects = ObjectCache(directory)
    data = DATA[:150]
    objects.put("a", data)
    path = entry_file(directory)
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        assert objects.get("a") is None, position
        assert not path.exists()
    path.write_bytes(whole + b"\0")
    assert objects.get("a") is None
    path.write_bytes(whole)
    assert objects.get("a") == data
    assert objects.statistics().damaged == len(whole) + 1


def test_an_entry_under_a_foreign_key_counts_as_absent(directory: Path) -> None:
    objects = ObjectCache(directory)
    objects.put("a", DATA)
    a = entry_file(directory)
    objects.put("b", b"other")
    (b,) = set(directory.glob("*.object")) - {a}
    b.replace(a)
    assert objects.get("a") is None
    assert objects.get("b") is None


def test_keys_name_no_files(directory: Path) -> None:
    objects = ObjectCache(directory)
    for key in ("../../x", "a/b", "\0", "ä" * 5000, ""):
        objects.put(key, key.encode())
        assert objects.get(key) == key.encode()
    assert {p.parent for p in directory.rglob("*.object")} == {directory}


def test_the_least_recently_used_are_evicted(directory: Path) -> None:
    objects = ObjectCache(directory, limit_bytes=12_000)
    for i in range(10):
        objects.put(str(i), bytes(1000))
        os.utime(objects._path(str(i)), (i + 1, i + 1))  # type: ignore[arg-type]  # there is one
    assert objects.get("0") is not None  # touches it
    objects.put("new", bytes(3000))
    left = [i for i in range(10) if objects.get(str(i)) is not None]
    assert left[0] == 0
    assert left[1:] == list(range(10 - len(left) + 1, 10))
    assert objects.get("new") is not None
    assert objects.statistics().size_bytes <= 12_000


def test_the_bound_holds_over_many_writes(directory: Path) -> None:
    objects = ObjectCache(directory, limit_bytes=20_000)
    for i in range(100):
        objects.put(str(i), bytes(900))
        assert objects.statistics().size_bytes <= 20_000
    objects.put("too much", bytes(20_001))
    assert objects.get("too much") is None


def test_a_new_process_counts_no_entries_to_write_one(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = ObjectCache(directory)
    for i in range(5):
        first.put(str(i), bytes(900))
    size_bytes = first.statistics().size_bytes
    second = ObjectCache(directory)
    monkeypatch.setattr(ObjectCache, "_entries", lambda self: pytest.fail("entries were counted"))
    second.put("5", bytes(900))
    assert second._written_bytes == size_bytes * 6 // 5


@pytest.mark.parametrize("content", [None, b"", b"abc", (-8).to_bytes(8, "little", signed=True)])
def test_a_bound_holds_without_the_file_of_sizes(directory: Path, content: bytes | None) -> None:
    first = ObjectCache(directory, limit_bytes=20_000)
    for i in range(18):
        first.put(str(i), bytes(900))
    sizes = directory / "sizes"
    sizes.unlink()
    if content is not None:
        sizes.write_bytes(content)
    second = ObjectCache(directory, limit_bytes=20_000)
    for i in range(18):
        second.put(str(-i), bytes(900))
    assert second.statistics().size_bytes <= 20_000


def test_files_left_by_killed_writers_are_removed_when_old(directory: Path) -> None:
    ObjectCache(directory)
    old, young = directory / "old.unfinished", directory / "young.unfinished"
    for path in (old, young):
        path.write_bytes(b"x")
    os.utime(old, (1, 1))
    ObjectCache(directory).put("a", DATA)
    assert not old.exists()
    assert young.exists()


def test_without_a_directory_nothing_is_kept() -> None:
    objects = ObjectCache(None)
    objects.put("a", DATA)
    assert objects.get("a") is None
    objects.clear()
    assert objects.statistics().entries == 0


def test_a_directory_that_cannot_be_made_means_no_cache(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "file" / "cache", tmp_path / "file"):
        with pytest.warns(RuntimeWarning, match="is no directory, so compiled programs are not"):
            objects = ObjectCache(path)
        objects.put("a", DATA)
        assert objects.get("a") is None


def test_a_directory_that_cannot_be_written_is_read(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ObjectCache(directory).put("a", DATA)

    def refuse(*args: object, **kwargs: object) -> None:
        raise PermissionError(13, "Permission denied")

    # Permissions do not bind the superuser, who may run these tests.
    for name in ("utime", "replace"):
        monkeypatch.setattr(os, name, refuse)
    monkeypatch.setattr(cache.tempfile, "mkstemp", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    objects = ObjectCache(directory)
    assert objects.get("a") == DATA
    objects.put("b", DATA)
    assert objects.get("b") is None
    entry_file(directory).write_bytes(b"damaged")
    assert objects.get("a") is None
    objects.clear()


def test_a_full_disk_leaves_nothing_behind(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = ObjectCache(directory)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    objects.put("a", DATA)
    assert objects.get("a") is None
    assert not list(directory.iterdir())


@pytest.mark.skipif(os.name != "posix", reason="permissions")
@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_refused_with_one_warning(
    directory: Path, mode: int
) -> None:
    directory.mkdir()
    directory.chmod(mode)
    with pytest.warns(RuntimeWarning, match="can be written by other users"):
        objects = ObjectCache(directory)
    assert objects.directory is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ObjectCache(directory)


@pytest.mark.skipif(os.name != "posix", reason="owners")
def test_a_directory_of_another_user_is_refused(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)
    with pytest.warns(RuntimeWarning, match="belongs to another user"):
        assert ObjectCache(directory).directory is None


def _others_write(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o666)


def _group_writes(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.chmod(0o620)


def _is_foreign(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(path, 65534, -1)
    else:  # only the superuser can give files away; the directory was checked before
        other = os.geteuid() + 1
        monkeypatch.setattr(os, "geteuid", lambda: other)


def _is_link(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def _has_two_names(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.rename(elsewhere)
    path.hardlink_to(elsewhere)


def _is_pipe(path: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.unlink()
    os.mkfifo(path)


FOREIGN = {
    "can be written by other users": _others_write,
    "by other users": _group_writes,
    "belongs to another user": _is_foreign,
    "is a symbolic link": _is_link,
    "has a second name": _has_two_names,
    "is no file": _is_pipe,
}


@pytest.mark.skipif(os.name != "posix", reason="owners and permissions")
@pytest.mark.parametrize("reason", FOREIGN)
def test_files_that_may_be_of_others_are_not_read_but_replaced(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    objects = ObjectCache(directory)
    for key in ("a", "b"):
        objects.put(key, DATA)
    with monkeypatch.context() as patch:
        for i, path in enumerate(directory.glob("*.object")):
            FOREIGN[reason](path, tmp_path / f"elsewhere{i}", patch)
        with pytest.warns(RuntimeWarning, match=rf"{reason}.*rm -r .*chmod 700") as caught:
            found = [objects.get(key) for key in "ab"]
        assert found == [None, None]
        assert len(caught) == 1
    objects.put("a", b"own")
    assert objects.get("a") == b"own"
    assert all(path.read_bytes()[-9:] == DATA[-9:] for path in tmp_path.glob("elsewhere*"))
    objects.clear()
    assert objects.statistics().entries == 0


@pytest.mark.skipif(os.name != "posix", reason="owners and permissions")
@pytest.mark.parametrize("reason", FOREIGN)
def test_a_file_of_sizes_that_may_be_of_others_is_neither_believed_nor_written_to(
    directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    ObjectCache(directory).put("a", DATA)
    sizes, elsewhere = directory / "sizes", tmp_path / "elsewhere"
    sizes.write_bytes((10**12).to_bytes(8, "little"))
    with monkeypatch.context() as patch:
        FOREIGN[reason](sizes, elsewhere, patch)
        assert cache._recorded(sizes) is None
        cache._record(sizes, 1)
        if elsewhere.exists():
            assert elsewhere.read_bytes() == (10**12).to_bytes(8, "little")
    second = ObjectCache(directory)
    second.put("b", DATA)
    assert second._written_bytes == second.statistics().size_bytes
    assert not sizes.is_symlink()
    assert sizes.stat().st_uid == os.geteuid()
    if elsewhere.exists():
        assert elsewhere.read_bytes() == (10**12).to_bytes(8, "little")


def test_the_environment_chooses_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for off in ("", "off"):
        monkeypatch.setenv("FUNCTRANS_CACHE_DIR", off)
        assert default_directory() is None
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path))
    assert default_directory() == tmp_path


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="the XDG specification")
def test_the_platform_chooses_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNCTRANS_CACHE_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert default_directory() == tmp_path / "xdg" / "functrans"
    for invalid in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", invalid)
        assert default_directory() == tmp_path / "home" / ".cache" / "functrans"


def test_the_environment_chooses_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUNCTRANS_CACHE_SIZE_MB", raising=False)
    assert ObjectCache(None).limit_bytes == 256 * 2**20
    monkeypatch.setenv("FUNCTRANS_CACHE_SIZE_MB", "0.5")
    assert ObjectCache(None).limit_bytes == 2**19
    for text in ("much", "nan", "inf", "-inf", "-1", " "):
        monkeypatch.setenv("FUNCTRANS_CACHE_SIZE_MB", text)
        with pytest.raises(ValueError, match=f"FUNCTRANS_CACHE_SIZE_MB is '{text}', expected a"):
            ObjectCache(None)


def test_keys_tell_parts_apart() -> None:
    keys = [cache_key("a", "b"), cache_key("ab"), cache_key("a", 1), cache_key("a", "1")]
    assert len(set(keys)) == 4
    assert cache_key("a", 1) == cache_key("a", 1)


def test_keys_are_the_same_in_another_process() -> None:
    code = "from functrans.machine.cache import cache_key; print(cache_key('a', 1, (2.5, None)))"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    out = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment
    )
    assert out.stdout.strip() == cache_key("a", 1, (2.5, None))


def test_the_source_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "functrans"
    (package / "compiler").mkdir(parents=True)
    (package / "ir" / "inner").mkdir(parents=True)
    source = package / "ir" / "inner" / "a.py"
    source.write_text("x = 1\n")
    monkeypatch.setattr(cache, "__file__", str(package / "compiler" / "cache.py"))
    before = cache._source_digest()
    assert cache._source_digest() == before
    source.write_text("x = 22\n")
    edited = cache._source_digest()
    assert edited != before
    source.rename(source.with_name("b.py"))
    assert cache._source_digest() not in (before, edited)


WRITER = """
import sys
from pathlib import Path
from functrans.machine.cache import ObjectCache
objects = ObjectCache(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    for i in range(5):
        objects.put(str(i), bytes([i]) * 2_000_000)
"""


def start_writer(directory: Path) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)], stdout=subprocess.PIPE, env=environment
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == b"ready\n"
    return writer


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_writer_that_is_killed_leaves_whole_entries_or_none(directory: Path) -> None:
    pauses = random.Random(0)
    for _ in range(8):
        writer = start_writer(directory)
        time.sleep(pauses.uniform(0, 0.03))
        writer.send_signal(signal.SIGKILL)
        writer.communicate()
        objects = ObjectCache(directory)
        for i in range(5):
            assert objects.get(str(i)) in (None, bytes([i]) * 2_000_000)
        assert objects.statistics().damaged == 0


def test_two_processes_and_eight_threads_share_a_directory(directory: Path) -> None:
    writers = [start_writer(directory) for _ in range(2)]
    objects = ObjectCache(directory)
    wrong: list[str] = []

    def work() -> None:
        for turn in range(30):
            i = turn % 5
            if objects.get(str(i)) not in (None, bytes([i]) * 2_000_000):
                wrong.append("get")
            objects.put(str(i), bytes([i]) * 2_000_000)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.kill()
        writer.communicate()
    assert not wrong
    assert objects.statistics().damaged == 0
    assert all(objects.get(str(i)) == bytes([i]) * 2_000_000 for i in range(5))


def test_settings_that_make_no_sense_are_reported_by_jit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "file"))
    with pytest.warns(RuntimeWarning, match="file is no directory, so compiled programs are not"):
        ft.jit(lambda x: x * 3.5 + 1)(np.ones(3))
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setenv("FUNCTRANS_CACHE_SIZE_MB", "much")
    with pytest.raises(ValueError, match="FUNCTRANS_CACHE_SIZE_MB is 'much', expected a number"):
        ft.jit(lambda x: x * 4.5 + 1)(np.ones(3))
