"""Unpack our own modules beside the job: for the training's Python, and as a cache.

Python caches no compiled code for an archive, and home calls often. An archive with code compiled for this Python
version needs no cache.
"""

from __future__ import annotations

import os
import sys

import trackside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import FileFinder
    from typing import Any, Callable


def use_code_cache(own_folder: str) -> None:
    """Import further modules from this archive's cache, if any. Call it before importing a folder of ours."""
    archive = archive_path()
    if archive is not None and not _is_compiled():
        cached = os.path.join(_cache_folder(own_folder, archive), "trackside")
        if os.path.isdir(cached):
            trackside.__path__.insert(0, cached)
            sys.path_hooks.insert(0, _finder_below(cached))
            sys.dont_write_bytecode = False  # many images disable it; here the next call uses what this one compiles


def fill_code_cache(own_folder: str) -> None:
    """Create this archive's cache, whole or not at all. Without it everything works, only slower."""
    if archive_path() is not None and not _is_compiled():
        try:
            importable_folder(own_folder)
        except OSError:
            pass


def importable_folder(own_folder: str) -> str:
    """Return a folder that holds the package as source and nothing else, so that every Python can import it.

    It is created once per archive or installed version. Raises OSError where that is impossible.
    """
    archive = archive_path()
    folder = _cache_folder(own_folder, archive) if archive is not None else _copy_folder(own_folder)
    if os.path.isdir(folder):
        return folder
    import shutil  # slow to import, needed once per archive

    staged = "%s.%d" % (folder, os.getpid())
    try:
        if archive is not None:
            _unpack(archive, staged)
        else:
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(_package_folder(), os.path.join(staged, "trackside"), ignore=ignored)
        os.rename(staged, folder)
    except OSError:
        shutil.rmtree(staged, ignore_errors=True)
        if not os.path.isdir(folder):  # another process may have been faster
            raise
    return folder


def archive_path() -> str | None:
    """Return the archive that trackside runs from; None where it is installed as a package."""
    archive = getattr(trackside.__loader__, "archive", None)
    return os.path.abspath(archive) if archive is not None else None


def _finder_below(folder: str) -> Callable[[str], FileFinder]:
    """Return the hook of the import system that finds our modules below this folder, and no others.

    It keeps compiled code whole or not at all. Python itself does not notice when a disk is full after half of it, and
    then no further call could import the module.
    """
    from importlib.machinery import FileFinder, SourceFileLoader  # not needed for an archive with compiled code

    class WholeCode(SourceFileLoader):
        def set_data(self, path: str, data: Any, *, _mode: int = 0o666) -> None:
            temporary = "%s.%d" % (path, os.getpid())
            try:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with open(temporary, "wb") as file:
                    file.write(data)
                os.replace(temporary, path)
            except OSError:
                _remove(temporary)  # without it everything works, only slower

    def find(path: str) -> FileFinder:
        if path != folder and not path.startswith(folder + os.sep):
            raise ImportError(path)
        return FileFinder(path, (WholeCode, [".py"]))

    return find


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def _unpack(archive: str, folder: str) -> None:
    import zipfile

    try:
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder, [name for name in file.namelist() if _is_module(name)])
    except zipfile.BadZipFile as error:
        raise OSError(str(error)) from error


def _is_compiled() -> bool:
    return str(trackside.__file__).endswith(".pyc")


def _is_module(name: str) -> bool:
    return name.startswith("trackside/") and name.endswith(".py")


def _cache_folder(own_folder: str, archive: str) -> str:
    seen = os.stat(archive)
    return os.path.join(own_folder, "code-%x-%x" % (seen.st_size, seen.st_mtime_ns))


def _copy_folder(own_folder: str) -> str:
    """Name the copy of an installed package after its files, so that an upgrade makes a new one."""
    found = [os.stat(os.path.join(path, name)) for path, _, names in os.walk(_package_folder()) for name in names]
    newest = max(seen.st_mtime_ns for seen in found)
    return os.path.join(own_folder, "code-%x-%x" % (sum(seen.st_size for seen in found), newest))


def _package_folder() -> str:
    return os.path.dirname(os.path.abspath(str(trackside.__file__)))
