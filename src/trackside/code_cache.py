"""Unpack our own modules beside the job: Python caches no compiled code for an archive, and home calls often.

An archive with code compiled for this Python version needs no cache.
"""

from __future__ import annotations

import os
import sys

import trackside


def use_code_cache(own_folder: str) -> None:
    """Import further modules from this archive's cache, if any. Call it before importing a folder of ours."""
    archive = archive_path()
    if archive is not None and not _is_compiled():
        cached = os.path.join(_cache_folder(own_folder, archive), "trackside")
        if os.path.isdir(cached):
            trackside.__path__.insert(0, cached)
            sys.dont_write_bytecode = False  # many images disable it; here the next call uses what this one compiles


def fill_code_cache(own_folder: str) -> None:
    """Create this archive's cache, whole or not at all. Without it everything works, only slower."""
    archive = archive_path()
    if archive is None or _is_compiled() or os.path.isdir(_cache_folder(own_folder, archive)):
        return
    import zipfile  # slow to import, needed once per archive

    folder = _cache_folder(own_folder, archive)
    staged = "%s.%d" % (folder, os.getpid())
    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(staged, [name for name in file.namelist() if _is_module(name)])
        os.rename(staged, folder)
    except OSError:
        import shutil

        shutil.rmtree(staged, ignore_errors=True)


def archive_path() -> str | None:
    """Return the archive that trackside runs from; None where it is installed as a package."""
    archive = getattr(trackside.__loader__, "archive", None)
    return os.path.abspath(archive) if archive is not None else None


def _is_compiled() -> bool:
    return str(trackside.__file__).endswith(".pyc")


def _is_module(name: str) -> bool:
    return name.startswith("trackside/") and name.endswith(".py")


def _cache_folder(own_folder: str, archive: str) -> str:
    seen = os.stat(archive)
    return os.path.join(own_folder, "code-%x-%x" % (seen.st_size, seen.st_mtime_ns))
