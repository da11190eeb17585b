from __future__ import annotations

import tarfile

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.datasets.tar_header import file_header, folder_header

PARTS = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=80)
PATHS = st.lists(PARTS, min_size=1, max_size=5).map("/".join)


def read_back(header: bytes) -> tarfile.TarInfo:
    """As Python's own reader understands it, extended records included."""
    block = tarfile.TarInfo.frombuf(header[-512:], "utf-8", "strict")
    if len(header) > 512:
        extended = tarfile.TarInfo.frombuf(header[:512], "utf-8", "strict")
        assert extended.type == tarfile.XHDTYPE
        records = header[512 : 512 + extended.size]
        while records:
            length = int(records.split(b" ", 1)[0])
            key, _, value = records[:length].split(b" ", 1)[1].partition(b"=")
            assert value.endswith(b"\n")
            if key == b"path":
                block.name = value[:-1].decode().rstrip("/")
            else:
                assert key == b"size"
                block.size = int(value)
            records = records[length:]
    return block


@given(path=PATHS, size=st.integers(min_value=0, max_value=1 << 45))
def test_any_name_and_size_is_read_back_as_it_was(path: str, size: int) -> None:
    info = read_back(file_header(path, size))
    assert (info.name, info.size) == (path, size)
    assert (info.mode, info.uid, info.gid, info.mtime, info.uname, info.gname) == (0o644, 0, 0, 0, "", "")
    assert info.isreg()


@given(path=PATHS)
def test_a_folder_is_read_back_as_a_folder(path: str) -> None:
    info = read_back(folder_header(path))
    assert info.isdir()
    assert (info.name, info.mode, info.size) == (path, 0o755, 0)


@given(path=PATHS, size=st.integers(min_value=0, max_value=1 << 45))
def test_headers_fill_whole_blocks(path: str, size: int) -> None:
    assert len(file_header(path, size)) % 512 == 0


def test_an_ordinary_file_needs_a_single_block() -> None:
    assert len(file_header("cats/one.png", 1_000_000)) == 512
