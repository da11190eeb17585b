"""Files whose names are no text get a second name that is: home keeps files by their names in a database."""

from __future__ import annotations

import os


def readable_name(path: str) -> str:
    """The path itself where its name is text, else one that is, hard-linked to the same file.

    Where no link can be made, the file is still told by that name, and fetching it fails for all to see.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        readable = path.encode(errors="surrogateescape").decode(errors="backslashreplace").replace("\\x", "%")
        _link(path, readable)
        return readable
    return path


def _link(path: str, readable: str) -> None:
    if os.path.exists(readable) and os.path.samefile(path, readable):
        return
    fresh = f"{readable}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(readable), exist_ok=True)
        os.link(path, fresh)
        os.replace(fresh, readable)  # at once, also over the link to a file that has been replaced since
    except OSError:
        return
