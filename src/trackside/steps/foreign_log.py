"""Copy the log of a training that somebody else started into the step's own log, so that all else reads that.

The first copy is the log's beginning and its end, not all of a log that may be long. Later copies go on by offset, also
when the log is rotated, truncated, or followed by a newer one. Nothing but regular files is ever opened for reading.
"""

from __future__ import annotations

import glob
import os
import stat
from typing import Any, NamedTuple

from trackside.records import read_record, write_record
from trackside.root import TryFolder
from trackside.steps.time_marks import Mark, write_marks

_HEAD_BYTES = 1 << 16  # trainers print their settings there
_TAIL_BYTES = 1 << 18
_PIECE_BYTES = 1 << 20
_MOST_BEHIND = 1 << 23  # of one look: a flood beyond that is left out, as nobody could read it
_LARGEST_COPY = 1 << 28  # the copy must not fill the training's disk
_MOST_MATCHES = 10_000
_MOST_SOURCES = 16
_ESTIMATED_MARKS = 100


class Source(NamedTuple):
    path: str
    device: int
    inode: int
    offset: int


class LogFile(NamedTuple):
    path: str
    size: int
    mtime: float


def matching_logs(pattern: str) -> list[LogFile]:
    """Return the regular files of the pattern, newest first. Links are not followed: they may lead anywhere."""
    found = []
    for index, path in enumerate(glob.iglob(pattern)):
        if index >= _MOST_MATCHES:
            break
        try:
            seen = os.lstat(path)
        except OSError:
            continue
        if stat.S_ISREG(seen.st_mode):
            found.append((seen.st_mtime_ns, LogFile(path=path, size=seen.st_size, mtime=seen.st_mtime)))
    return [log for _, log in sorted(found, reverse=True)]


def copy_so_far(pattern: str, folder: TryFolder, *, begun: float | None) -> None:
    """Copy what there is of the log, and estimate when it was written: evenly from `begun` to the last write.

    Only for a folder that nobody else sees yet: marks and log must appear together. Without `begun`, all of it counts
    as written when it is first read.
    """
    copy = LogCopy(pattern, folder)
    copy.copy(look_for_newer=True)
    ended = copy.modified()
    if begun is not None and ended is not None and ended > begun:
        write_marks(folder.time_marks, copy.estimated_marks(begun, ended))


class LogCopy:
    """Copies what is new. What it has read is on disk, so that a copy that was killed is continued."""

    def __init__(self, pattern: str, folder: TryFolder) -> None:
        self._pattern = pattern
        self._folder = folder
        sources = _sources_from_record(read_record(folder.source))
        self._source = sources[-1] if sources else None
        self._known = {(source.device, source.inode): source for source in sources}  # in the order of their use
        self._descriptor: int | None = None
        self._left_out = 0  # bytes of a long log that were not copied
        self._head_bytes = 0  # and the bytes before them

    def copy(self, *, look_for_newer: bool) -> None:
        """Append what was written since the last call; `look_for_newer` also looks for a newer log. Never raises for
        a file that is gone or a disk that is full: the next call tries again."""
        try:
            self._copy_new()
            if (look_for_newer or self._descriptor is None) and self._change_over():
                self._copy_new()
        except OSError:
            pass

    def modified(self) -> float | None:
        """Return when the log that is being read was last written."""
        descriptor = self._opened()
        return None if descriptor is None else os.fstat(descriptor).st_mtime

    def estimated_marks(self, begun: float, ended: float) -> list[Mark]:
        """Return marks for the copy, as if the log had been written evenly between two times."""
        if self._source is None or not self._source.offset:
            return []
        length, whole = os.stat(self._folder.log).st_size, self._source.offset
        marks = []
        for part in range(1, _ESTIMATED_MARKS + 1):
            place = length * part // _ESTIMATED_MARKS
            written = place + (self._left_out if place > self._head_bytes else 0)
            marks.append(Mark(length=place, wall=begun + (ended - begun) * min(1.0, written / whole)))
        return [mark for mark in marks if mark.length]

    def _copy_new(self) -> None:
        descriptor = self._opened()
        if descriptor is None or self._source is None:
            return
        size = os.fstat(descriptor).st_size
        if size < self._source.offset:
            self._append(b"\ntrackside: the log was truncated; it goes on from its new beginning\n")
            self._note(0)
        begin = self._source.offset
        if size - begin > _MOST_BEHIND:
            self._append(b"\ntrackside: %d bytes of the log are left out\n" % (size - begin - _TAIL_BYTES))
            begin = size - _TAIL_BYTES
        while begin < size:
            piece = os.pread(descriptor, min(_PIECE_BYTES, size - begin), begin)
            if not piece:
                return
            self._append(piece)
            begin += len(piece)
            self._note(begin)

    def _change_over(self) -> bool:
        """Go on with the newest log, if that is another file than the one that is being read."""
        newest = next(iter(matching_logs(self._pattern)), None)
        if newest is None:
            return False
        descriptor = _open_regular(newest.path)
        if descriptor is None:
            return False
        seen = os.fstat(descriptor)
        known = self._source
        if known is not None and (known.device, known.inode) == (seen.st_dev, seen.st_ino):
            os.close(descriptor)
            return False
        self._close()
        self._descriptor = descriptor
        earlier = self._known.pop((seen.st_dev, seen.st_ino), None)
        self._source = Source(path=newest.path, device=seen.st_dev, inode=seen.st_ino, offset=0)
        if known is not None:
            name = os.path.basename(newest.path).encode("utf-8", "replace")
            self._append(b"\ntrackside: the log goes on in %s\n" % name)
        if earlier is not None:  # two logs that are written in turn: each goes on where it was
            self._note(earlier.offset)
        else:
            self._begin(descriptor, seen.st_size)
        return True

    def _begin(self, descriptor: int, size: int) -> None:
        """Copy the beginning of a long log; the rest up to its last part is left out."""
        if size <= _HEAD_BYTES + _TAIL_BYTES:
            return self._note(0)
        head = os.pread(descriptor, _HEAD_BYTES, 0)
        head = head[: head.rfind(b"\n") + 1]
        tail_begin = size - _TAIL_BYTES
        tail = os.pread(descriptor, _TAIL_BYTES, tail_begin)
        tail_begin += tail.find(b"\n") + 1
        self._head_bytes, self._left_out = len(head), tail_begin - len(head)
        self._append(head + b"trackside: %d bytes of the log before the adoption are left out\n" % self._left_out)
        return self._note(tail_begin)

    def _opened(self) -> int | None:
        """Return the descriptor of the log that is being read; it stays open, so that a rotated one is read to its
        end."""
        if self._descriptor is None and self._source is not None:
            descriptor = _open_regular(self._source.path)
            if descriptor is not None:
                seen = os.fstat(descriptor)
                if (seen.st_dev, seen.st_ino) == (self._source.device, self._source.inode):
                    self._descriptor = descriptor
                else:
                    os.close(descriptor)
        return self._descriptor

    def _append(self, data: bytes) -> None:
        log = self._folder.log
        if os.stat(log).st_size + len(data) > _LARGEST_COPY:
            fresh = log + ".fresh"
            os.close(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
            os.replace(fresh, log)  # another inode: home sees that the copy starts over
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND)
        try:
            while data:
                data = data[os.write(descriptor, data) :]
        finally:
            os.close(descriptor)

    def _note(self, offset: int) -> None:
        assert self._source is not None
        self._source = self._source._replace(offset=offset)
        self._known[self._source.device, self._source.inode] = self._source
        while len(self._known) > _MOST_SOURCES:
            del self._known[next(iter(self._known))]
        write_record(self._folder.source, {"sources": [source._asdict() for source in self._known.values()]})

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _open_regular(path: str) -> int | None:
    """Open a regular file for reading, and nothing else: opening a FIFO would wait for its writer."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _sources_from_record(record: Any) -> list[Source]:
    """Return the sources in the record, the one in use last; none if it cannot be read."""
    try:
        return [
            Source(path=str(one["path"]), device=int(one["device"]), inode=int(one["inode"]), offset=int(one["offset"]))
            for one in record["sources"]
        ]
    except (KeyError, TypeError, ValueError):
        return []
