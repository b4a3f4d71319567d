"""What every storage promises. Add a backend to `_BACKENDS`, and all of this runs on it, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.errors import Conflict, NotFound
from holdfast.storage.folder import FolderStore
from holdfast.storage.store import FileKey, Store, StoredFile


def _folder(tmp_path: Path) -> FolderStore:
    # Folders exist before blobs come: a missing one means that its disk is not mounted.
    root = tmp_path.resolve() / "store"
    (root / "a" / "b").mkdir(parents=True)
    return FolderStore(root, lambda: [root], lambda key: NotFound(key))


_BACKENDS: dict[str, Callable[[Path], Store]] = {"folder": _folder}


@pytest.fixture(params=sorted(_BACKENDS))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return _BACKENDS[request.param](tmp_path)


def _read(store: Store, key: str, offset: int = 0, count: int = 1 << 20) -> bytes:
    with closing(store.open(key)) as reader:
        return reader.read(offset, count)


def test_put_blob_is_read_whole_and_by_ranges(store: Store) -> None:
    store.put("a/x.warc.gz", [b"0123", b"", b"456789"])

    assert (store.size("a/x.warc.gz"), _read(store, "a/x.warc.gz")) == (10, b"0123456789")
    assert [_read(store, "a/x.warc.gz", *span) for span in ((0, 1), (3, 4), (8, 9), (10, 1), (99, 1))] == [
        b"0", b"3456", b"89", b"", b"",
    ]  # fmt: skip
    with closing(store.open("a/x.warc.gz")) as reader:
        assert (reader.size, reader.read(9, 1), reader.read(0, 2)) == (10, b"9", b"01")


def test_empty_blob_is_kept(store: Store) -> None:
    store.put("a/none.warc", [])

    assert (store.size("a/none.warc"), _read(store, "a/none.warc")) == (0, b"")


def test_put_never_overwrites(store: Store) -> None:
    store.put("a/x", [b"first"])

    with pytest.raises(Conflict):
        store.put("a/x", [b"second"])
    assert (_read(store, "a/x"), list(store.list())) == (b"first", [("a/x", 5)])


def test_failed_put_leaves_nothing(store: Store) -> None:
    def broken() -> Iterator[bytes]:
        yield b"some"
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match="broke"):
        store.put("a/x", broken())
    assert list(store.list()) == []
    store.put("a/x", [b"again"])


def test_list_yields_sizes_below_a_prefix(store: Store) -> None:
    for key in ("top", "a/2", "a/1", "a/b/3"):
        store.put(key, [key.encode()])

    assert sorted(store.list()) == [("a/1", 3), ("a/2", 3), ("a/b/3", 5), ("top", 3)]
    assert sorted(store.list("a")) == [("a/1", 3), ("a/2", 3), ("a/b/3", 5)]
    assert list(store.list("a/b")) == [("a/b/3", 5)]
    assert list(store.list("gone")) == []


def test_deleted_blob_is_missing_and_its_key_free(store: Store) -> None:
    store.put("a/x", [b"old"])
    store.delete("a/x")
    store.delete("a/x")

    for look in (store.open, store.size):
        with pytest.raises(NotFound):
            look("a/x")
    store.put("a/x", [b"new"])
    assert _read(store, "a/x") == b"new"


def test_folder_is_no_blob(store: Store) -> None:
    store.put("a/b/x", [b"1"])

    for look in (store.open, store.size):
        with pytest.raises(NotFound):
            look("a/b")


@pytest.mark.parametrize("key", ["../out", "a/../../out", "/etc/passwd", "a\0b"])
def test_key_that_leads_out_is_refused(store: Store, key: str) -> None:
    for act in (store.open, store.size, store.delete, lambda one: store.put(one, [b"x"])):
        with pytest.raises(NotFound):
            act(key)


def test_local_path_is_that_of_the_blob_or_none(store: Store) -> None:
    store.put("a/x", [b"content"])

    path = store.local_path("a/x")
    assert path is None or path.read_bytes() == b"content"


def test_stored_file_is_opened_by_its_key(store: Store) -> None:
    store.put("a/x.warc.gz", [b"content"])
    file = StoredFile(store, FileKey("a/x.warc.gz"))

    assert (file.name, file.size(), file.sha256()) == ("x.warc.gz", 7, sha256(b"content").hexdigest())
    with pytest.raises(NotFound):
        file.with_suffix(".open").open()
