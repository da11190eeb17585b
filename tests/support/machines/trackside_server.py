"""The server of trackside's verbs. Run as a program, with the folder of its socket and of its archive."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from pathlib import Path

from tests.support.commands.forker import serve
from tests.support.commands.server_folder import ARCHIVE

#: What a verb imports only when it comes to it.
_WANTED_SOON = ("base64", "pwd", "shutil", "sqlite3", "subprocess", "zipfile")


def run_verb(words: list[str]) -> int:
    """What `python ARCHIVE --root ROOT VERB …` does where the archive is the one that this process has imported."""
    import trackside
    from trackside.__main__ import main

    archive = words[0]
    if not Path(archive).is_file():
        print(f"can't open file {archive!r}", file=sys.stderr)
        return 2
    trackside.__loader__.archive = archive  # as if it came from there
    sys.argv = words
    return main()


def _import_everything(archive: Path) -> None:
    """From the archive, as on a machine. What a training imports is never imported by a verb."""
    sys.path.insert(0, str(archive))
    import trackside

    assert trackside.__file__ is not None
    assert trackside.__file__.startswith(str(archive))
    for module in pkgutil.walk_packages(trackside.__path__, "trackside."):
        if not module.name.startswith(("trackside.collector", "trackside.integrations")):
            importlib.import_module(module.name)
    for name in _WANTED_SOON:
        importlib.import_module(name)


if __name__ == "__main__":
    served_from = Path(sys.argv[1])
    _import_everything(served_from / ARCHIVE)
    serve(served_from, run_verb)
