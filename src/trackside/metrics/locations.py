"""Where the journals in front of a database are."""

from __future__ import annotations

import os
import zlib

_SHARED_MEMORY = "/dev/shm"
#: File systems where a write to mapped memory may fail although its room was allocated, which would end the process.
_UNSAFE_TO_MAP = ("btrfs", "zfs", "nfs", "cifs", "smb", "9p", "fuse", "lustre", "ceph", "gluster", "virtiofs")


def journal_folder(database: str) -> str:
    """Return the folder of the journals in front of a database: beside it, or in shared memory where it must be."""
    beside = os.path.realpath(database) + ".journals"
    if _file_system(os.path.dirname(beside)).startswith(_UNSAFE_TO_MAP) and os.path.isdir(_SHARED_MEMORY):
        return os.path.join(_SHARED_MEMORY, "trackside-%d-%08x" % (os.getuid(), zlib.crc32(os.fsencode(beside))))
    return beside


def _file_system(folder: str) -> str:
    """Return the type of the file system of a folder; empty if it is not known."""
    device = _device(folder)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                fields, _, rest = line.partition(" - ")
                if fields.split()[2] == device:
                    return rest.split()[0]
    except (OSError, IndexError):
        pass
    return ""


def _device(folder: str) -> str:
    try:
        number = os.stat(folder).st_dev
    except OSError:
        return ""
    return "%d:%d" % (os.major(number), os.minor(number))
