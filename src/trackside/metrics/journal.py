"""A journal in mapped memory: what was appended survives the process, and appending takes no system call.

A journal is a row of segments, files of a fixed size whose room is allocated before they are mapped: a write to mapped
memory without room on the disk would end the process. Where no file can be had, a segment is plain memory, so that the
training continues without that safety. Each record ends with a mark that is written last; a record without it was cut
off when its process died, and is ignored.
"""

from __future__ import annotations

import fcntl
import mmap
import operator
import os
import struct
import threading
import time

from trackside.machine.locks import try_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Iterator

SEGMENT_BYTES = 1 << 20
_MOST_SEGMENTS = 64  # on disk: about a million steps that could not be written to the database
_MOST_IN_MEMORY = 8

STEP, RECORD, VOID = 1, 2, 3  # void: the place of a step that was none
#: Type, batch size, step, timestamp, loss, learning rate, gradient norm, step time, mark. NaN: not known.
STEP_LAYOUT = struct.Struct("<B3xiqdddddI4x")
MARK = 0x5AA55AA5
_MARK_END = 59  # offset of the mark's last byte in a step
_FIRST_STEP_BYTE, _LAST_MARK_BYTE = bytes([STEP]), bytes([MARK >> 24])
_RECORD_HEAD = struct.Struct("<B3xI")  # type, length; then the text, padded, and the mark
_RECORD_END = struct.Struct("<I4x")
_MAGIC = b"TRKSIDE1"
HEADER_BYTES = 2048
_LONGEST_JOB = 128  # letters
_SUFFIX = ".journal"
_PAUSE_SECONDS, _MOST_PAUSES = 0.02, 100  # for the lock of a process that has just died
_PAGE_BYTES = mmap.PAGESIZE


class Steps:
    """Steps that follow each other: their bytes, and where the journal continues."""

    def __init__(self, data: bytes, end: int) -> None:
        self.data = data
        self.end = end


class Record:
    """Anything else: a JSON object with its `kind`, and where the journal continues."""

    def __init__(self, value: dict[str, Any], end: int) -> None:
        self.value = value
        self.end = end


class Segment:
    """One mapped file, or plain memory if `path` is None; `end` is where a further record goes."""

    def __init__(self, mapped: mmap.mmap, *, name: str, job: str, path: str | None, descriptor: int | None) -> None:
        self.mapped = mapped
        self.name = name
        self.job = job
        self.path = path
        self.end = HEADER_BYTES
        self.is_full = False
        self._descriptor = descriptor

    def read(self, position: int, *, most_steps: int) -> Steps | Record | None:
        """Return what was recorded at `position`, where 0 is the beginning; None if there is nothing more."""
        at = max(position, HEADER_BYTES)
        if at + STEP_LAYOUT.size > len(self.mapped):
            return None
        kind = self.mapped[at]
        if kind == STEP:
            return self._read_steps(at, most_steps)
        if kind == VOID:
            return Steps(b"", at + STEP_LAYOUT.size)
        return self._read_record(at) if kind == RECORD else None

    def _read_steps(self, at: int, most: int) -> Steps | None:
        size = STEP_LAYOUT.size
        limit = at + min(most, (len(self.mapped) - at) // size) * size
        # Slices with the length of a step as their stride: every step's type, and the end of every step's mark.
        types, marks = self.mapped[at:limit:size], self.mapped[at + _MARK_END : limit : size]
        count = min(_leading(types, _FIRST_STEP_BYTE), _leading(marks, _LAST_MARK_BYTE))
        return Steps(self.mapped[at : at + count * size], at + count * size) if count else None

    def _read_record(self, at: int) -> Record | None:
        _, length = _RECORD_HEAD.unpack_from(self.mapped, at)
        text_at = at + _RECORD_HEAD.size
        mark_at = text_at + _padded(length)
        if mark_at + _RECORD_END.size > len(self.mapped) or _RECORD_END.unpack_from(self.mapped, mark_at)[0] != MARK:
            return None
        try:
            import json

            value = json.loads(self.mapped[text_at : text_at + length])
        except ValueError:
            value = {}
        return Record(value if isinstance(value, dict) else {}, mark_at + _RECORD_END.size)

    def discard(self) -> bool:
        """Remove the file, since everything in it is in the database; False if it stays."""
        try:
            if self.path is not None:
                os.unlink(self.path)
        except FileNotFoundError:
            pass
        except OSError:
            return False
        finally:
            self.release()
        return True

    def release(self) -> None:
        """Close the segment; its file stays for the next who opens the database."""
        self.mapped.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Journal:
    """The journal of one process. Appending is safe from several threads.

    Steps and other records have segments of their own: steps are all of one size, so that a thread gets the place of
    its step by taking the next number, which needs no lock.
    """

    def __init__(self, folder: str, job: str) -> None:
        self._folder = folder
        self._job = job
        self._lock = threading.Lock()
        self._made = 0
        self._earlier_bytes = 0
        self._steps: list[Segment] = []  # the last one grows
        self._records: list[Segment] = []
        self._spare: Segment | None = None
        self._is_closed = False
        self.step_room: tuple[Any, Iterator[int]] = (None, iter(()))
        """The memory of the current segment for steps, and the offsets that are free in it: taken together."""
        self.dropped = 0
        """Steps and records that found no room."""
        self.is_safe = True
        """Whether the journal survives the process."""

    @property
    def appended_bytes(self) -> int:
        """How far the journal has grown since it was opened."""
        free = operator.length_hint(self.step_room[1]) * STEP_LAYOUT.size
        records = self._records[-1].end if self._records else 0
        return self._earlier_bytes + records + (SEGMENT_BYTES - free if self._steps else 0)

    def open_for_steps(self) -> None:
        """Make the first segment for steps now, so that the first step does not wait for it."""
        with self._lock:
            if not self._steps:
                self._next_step_segment()

    def more_step_room(self) -> tuple[Any, int | None]:
        """Return memory and offset for one step once the current segment is full; no offset if there is no room."""
        with self._lock:
            mapped, free = self.step_room
            place = next(free, None)  # another thread may have continued already
            if place is None and self._next_step_segment():
                mapped, free = self.step_room
                place = next(free)
        if place is None:
            self.dropped += 1
        return mapped, place

    def append(self, value: dict[str, Any]) -> None:
        """Append a JSON object; one that does not fit into a segment is dropped."""
        import json

        text = json.dumps(value, separators=(",", ":"), default=str).encode()
        needed = _RECORD_HEAD.size + _padded(len(text)) + _RECORD_END.size
        with self._lock:
            segment = self._records[-1] if self._records else None
            if segment is None or segment.end + needed > SEGMENT_BYTES:
                segment = self._next_record_segment() if needed <= SEGMENT_BYTES - HEADER_BYTES else None
            if segment is None:
                self.dropped += 1
                return
            text_at = segment.end + _RECORD_HEAD.size
            segment.mapped[text_at : text_at + len(text)] = text
            _RECORD_END.pack_into(segment.mapped, text_at + _padded(len(text)), MARK)
            _RECORD_HEAD.pack_into(segment.mapped, segment.end, RECORD, len(text))
            segment.end += needed

    def segments(self) -> list[Segment]:
        """Return all segments; those with `is_full` grow no more."""
        with self._lock:
            return [*self._records, *self._steps]

    def prepare(self) -> None:
        """Make the next segment for steps before it is needed, so that no step has to wait for it."""
        free = operator.length_hint(self.step_room[1]) * STEP_LAYOUT.size
        if self._steps and self._spare is None and free < SEGMENT_BYTES // 2 and not self._is_closed:
            self._spare = self._make_segment()

    def discard(self, segment: Segment) -> bool:
        """Remove a full segment whose content is in the database; False if its file stays."""
        with self._lock:
            (self._steps if segment in self._steps else self._records).remove(segment)
        return segment.discard()

    def close(self) -> list[Segment]:
        """Take no more appends, and return the segments, for the caller to discard or release."""
        with self._lock:
            self._is_closed = True
            self.step_room = (None, iter(()))
            segments = [*self._records, *self._steps]
            self._records, self._steps = [], []
        if self._spare is not None:
            self._spare.discard()
            self._spare = None
        return segments

    def abandon(self) -> None:
        """Close the copies in a forked child: the parent goes on with them, and nothing here may touch them."""
        for segment in (*self._records, *self._steps, *([self._spare] if self._spare else ())):
            segment.release()

    def _next_step_segment(self) -> bool:
        if not self._has_room():
            return False
        if self._steps:
            self._earlier_bytes += SEGMENT_BYTES
            self._steps[-1].is_full = True
        segment, self._spare = self._spare or self._make_segment(), None
        self._steps.append(segment)
        places = range(HEADER_BYTES, SEGMENT_BYTES - STEP_LAYOUT.size + 1, STEP_LAYOUT.size)
        self.step_room = (segment.mapped, iter(places))
        return True

    def _next_record_segment(self) -> Segment | None:
        if not self._has_room():
            return None
        if self._records:
            self._earlier_bytes += self._records[-1].end
            self._records[-1].is_full = True
        self._records.append(self._make_segment())
        return self._records[-1]

    def _has_room(self) -> bool:
        """Whether there may be a further segment: too many mean that the database cannot be written."""
        most = _MOST_SEGMENTS if self.is_safe else _MOST_IN_MEMORY
        return not self._is_closed and len(self._records) + len(self._steps) < most

    def _make_segment(self) -> Segment:
        self._made += 1
        name = "%d-%06d-%s" % (os.getpid(), self._made, os.urandom(4).hex())
        try:
            segment = _make_file(self._folder, name, self._job)
            self.is_safe = True
        except (OSError, ValueError):
            segment = Segment(mmap.mmap(-1, SEGMENT_BYTES), name=name, job=self._job, path=None, descriptor=None)
            self.is_safe = False
        return segment


def leftover_segments(folder: str, *, pause: Callable[[float], None] = time.sleep) -> list[Segment]:
    """Open and lock the segments whose processes have died, in the order in which they were written."""
    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(_SUFFIX))
    except OSError:
        return []
    pauses = iter([_PAUSE_SECONDS] * _MOST_PAUSES)  # for all of them together
    found = (_open_leftover(os.path.join(folder, name), pauses, pause) for name in names)
    return [segment for segment in found if segment is not None]


def _open_leftover(path: str, pauses: Iterator[float], pause: Callable[[float], None]) -> Segment | None:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Too short: its process died before it was made. Without a name for its job nothing in it has an owner.
        is_ours = try_lock(descriptor)
        while not is_ours and _is_dead(path) and (seconds := next(pauses, None)) is not None:
            pause(seconds)
            is_ours = try_lock(descriptor)
        if is_ours and os.path.exists(path):
            is_whole = os.fstat(descriptor).st_size == SEGMENT_BYTES
            mapped = mmap.mmap(descriptor, SEGMENT_BYTES) if is_whole else None
            header = _read_header(mapped) if mapped is not None else None
            if mapped is not None and header is not None:
                name = os.path.basename(path)[: -len(_SUFFIX)]
                return Segment(mapped, name=name, job=header, path=path, descriptor=descriptor)
            os.unlink(path)
    except (OSError, ValueError):
        pass  # the next look finds it again
    os.close(descriptor)
    return None


def _is_dead(path: str) -> bool:
    """Whether no process has the number in the name of this segment.

    The lock may last a little longer: until nobody reads the dead process's memory under /proc any more, as `ps` does.
    """
    try:
        os.kill(int(os.path.basename(path).partition("-")[0]), 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, OverflowError):
        pass
    return False


def _make_file(folder: str, name: str, job: str) -> Segment:
    """Make a segment's file, with all its room allocated, locked for as long as this process lives."""
    import json  # not at the top: slow to import, and a training's own imports must not wait for it

    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, name + _SUFFIX)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _allocate(descriptor)
        mapped = mmap.mmap(descriptor, SEGMENT_BYTES)
        _keep_from_children(mapped)
        text = json.dumps({"job": job[:_LONGEST_JOB]}).encode()
        mapped[8 : 12 + len(text)] = struct.pack("<I", len(text)) + text
        for page in range(0, SEGMENT_BYTES, _PAGE_BYTES):
            mapped[page] = 0  # a page's first write is slow
        mapped[:8] = _MAGIC
    except BaseException:
        os.close(descriptor)
        os.unlink(path)
        raise
    return Segment(mapped, name=name, job=job, path=path, descriptor=descriptor)


def _allocate(descriptor: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, SEGMENT_BYTES)
    else:
        os.write(descriptor, bytes(SEGMENT_BYTES))


def _keep_from_children(mapped: mmap.mmap) -> None:
    """Leave the mapping out of forked children: they could write to it, and would keep its lock after our end."""
    if hasattr(mmap, "MADV_DONTFORK"):
        mapped.madvise(mmap.MADV_DONTFORK)


def _read_header(mapped: mmap.mmap) -> str | None:
    """Return the job of a segment; None if the segment was not finished."""
    import json

    if mapped[:8] != _MAGIC:
        return None
    (length,) = struct.unpack_from("<I", mapped, 8)
    try:
        return str(json.loads(mapped[12 : 12 + min(length, HEADER_BYTES)])["job"])
    except (ValueError, KeyError, TypeError):
        return None


def _leading(data: bytes, byte: bytes) -> int:
    return len(data) - len(data.lstrip(byte))


def _padded(length: int) -> int:
    return (length + 7) // 8 * 8
