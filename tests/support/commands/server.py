"""The server of `stationmaster` commands. Run as a program, with the folder of its socket."""

from __future__ import annotations

import importlib
import io
import os
import pkgutil
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel

import stationmaster
from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.main import main
from stationmaster.remote.pyz import pyz_bytes
from stationmaster.trusted_certificates import trusted_certificates
from tests.support.commands.forker import serve
from tests.support.commands.server_folder import COMMAND

#: What commands import only when they come to it, and what takes long.
_WANTED_SOON = (
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
    "alembic.command",
    "alembic.config",
    "anyio._backends._asyncio",
    "boto3",
    "certifi",
    "httpcore",
    "huggingface_hub",
    "psycopg",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "typer._adapters",
    "typer._click.decorators",
    "uvicorn.lifespan.off",
    "uvicorn.lifespan.on",
    "uvicorn.loops.asyncio",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
    "uvicorn.protocols.websockets.auto",
)


def _import_everything() -> None:
    for module in pkgutil.walk_packages(stationmaster.__path__, "stationmaster."):
        if not any(part in module.name for part in (".builtin.", ".migrations.", "__main__")):
            importlib.import_module(module.name)
    for name in _WANTED_SOON:
        importlib.import_module(name)
    _build_deferred_models()
    pyz_bytes()
    trusted_certificates()
    _run_once()


def _run_once() -> None:
    """List jobs and recipes of an empty home: what is compiled, checked or made on first use is there from then on."""
    with TemporaryDirectory() as home, redirect_stdout(io.StringIO()):
        os.environ["STATIONMASTER_HOME"] = home
        for words in (["jobs"], ["recipes", "list", "--all"]):
            loaded_tree()(words, standalone_mode=False, obj=[sys.executable])


def _build_deferred_models() -> None:
    """Settings build their validators when they are first read, which takes longer than the rest of most commands."""
    kinds = [BaseModel]
    while kinds:
        kind = kinds.pop()
        kinds += kind.__subclasses__()
        if kind.__module__.partition(".")[0] == "stationmaster":
            kind.model_rebuild()


def run_command(words: list[str], own_command: str) -> None:
    sys.argv = ["stationmaster", *words]
    sys.modules["__main__"].__package__ = None  # a script that was installed, which hints are to name
    main(own_command=[own_command])


if __name__ == "__main__":
    _import_everything()
    served_from = Path(sys.argv[1])
    serve(served_from, partial(run_command, own_command=str(served_from / COMMAND)))
