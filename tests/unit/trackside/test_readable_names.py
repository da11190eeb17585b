"""Files whose names are no text are told by one that is, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path

from trackside.report.outputs import readable_name


def test_a_name_that_is_text_stays(tmp_path: Path) -> None:
    path = tmp_path / "snow☃ man\n.safetensors"
    path.write_bytes(b"x")
    assert readable_name(str(path)) == str(path)
    assert list(tmp_path.iterdir()) == [path]


def test_another_name_leads_to_the_same_file_also_after_it_was_replaced(tmp_path: Path) -> None:
    odd, readable = tmp_path / "caf\udce9.safetensors", tmp_path / "caf%e9.safetensors"
    for content in (b"one", b"two"):
        (tmp_path / "new").write_bytes(content)
        (tmp_path / "new").replace(odd)
        assert readable_name(str(odd)) == str(readable)
        assert readable.read_bytes() == content
    assert sorted(tmp_path.iterdir()) == sorted([odd, readable])


def test_a_folder_may_have_such_a_name(tmp_path: Path) -> None:
    odd = tmp_path / "\udcff" / "a.txt"
    odd.parent.mkdir()
    odd.write_bytes(b"x")
    assert readable_name(str(odd)) == str(tmp_path / "%ff" / "a.txt")
    assert (tmp_path / "%ff" / "a.txt").read_bytes() == b"x"


def test_a_file_that_is_gone_is_no_error(tmp_path: Path) -> None:
    assert readable_name(str(tmp_path / "gone\udcff")) == str(tmp_path / "gone%ff")
    assert list(tmp_path.iterdir()) == []
