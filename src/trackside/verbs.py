"""The verbs: parse the command line, call, print JSON."""

from __future__ import annotations

import getopt
import json
import os
import sys
from typing import Any, Callable, Dict, List, NamedTuple

from trackside.errors import Misuse, TracksideError
from trackside.records import unless_unwritable
from trackside.root import Root
from trackside.steps.plan import read_plan

_USAGE = """usage: trackside --root ROOT [--part cleanup] VERB
  start [--secrets-stdin]                    start the plan, once; secrets as JSON on stdin
  status [--since JSON] [--max-bytes N] [--alone S]   print the job's status; S as in visit
  follow [--since JSON] [--interval S]       print a status on every change
  stop [--grace S]                           stop the running step and start no other
  save --id ID [--wait S]                    request a checkpoint, once per ID, and wait for it
  sample --id ID [--wait S]                  request samples in the same way
  check                                      run the recipe's health check now
  cleanup [--grace S]                        stop everything, then run the recipe's cleanup, once
  logs [--step N] [--tail N]                 print the logs of all steps, or of step N
  hash [--chunks N] [--end-writers] PATH...  print the SHA-256 of files, or of each N bytes;
                                             --end-writers first ends every rsync that writes to them
  take ARCHIVE --sha256 HEX [--room N]       take an archive from the cache; else make N bytes free
  keep ARCHIVE --sha256 HEX --most-bytes N --most-age S   add an archive to the cache for later jobs
  unpack ARCHIVE DIR --sha256 HEX            verify an archive and unpack it
  inventory                                  print all outputs with their SHA-256
  visit --alone S                            allow a training to run S seconds without a visit
  acknowledge                                record that all results are safe: the machine may be destroyed
  read [--bytes N] PATH                      print the first N bytes of a file (default 512)
  upload                                     upload a file to a bucket or the Hub; reads signed requests from stdin
  download                                   download files from a bucket; reads their addresses from stdin
  preflight [--no-allocation]                check disk, GPUs and driver
  look                                       print what is known of a training that was started by hand; asked on stdin
  serve [--token TEXT] [--idle S]            answer verbs from stdin until it ends or is silent for S seconds
"""

_LARGEST_CHUNK_BYTES = 1 << 26  # read into memory at once
_LARGEST_READ_BYTES = 1 << 20  # larger files need rsync or a signed request

Options = Dict[str, str]


def run_verb(argv: list[str]) -> int:
    """Run one verb and return its exit status. An error is printed as one line on stderr."""
    try:
        return _run(argv)
    except BrokenPipeError:
        # The reader is gone; without this Python reports the error again when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 1
    except TracksideError as error:
        print("trackside: %s" % error, file=sys.stderr)
        return error.exit_status
    except OSError as error:
        print("trackside: %s" % error, file=sys.stderr)
        return 1


# getopt, because importing and setting up argparse takes as long as all the rest of a status.
def _run(argv: list[str]) -> int:
    try:
        given, rest = getopt.getopt(argv, "", ["root=", "part=", "help"])
        if ("--help", "") in given:
            sys.stdout.write(_USAGE)
            return 0
        root = dict(given).get("--root")
        if root is None or not rest or rest[0] not in _VERBS:
            raise Misuse("expected --root ROOT and one of: %s" % ", ".join(_VERBS))
        verb = _VERBS[rest[0]]
        options, arguments = getopt.gnu_getopt(rest[1:], "", verb.options)
    except getopt.GetoptError as error:
        raise Misuse(str(error)) from error
    if not verb.fewest <= len(arguments) <= verb.most:
        raise Misuse("wrong number of arguments for %s: %d" % (rest[0], len(arguments)))
    chosen = Root(root, part=dict(given).get("--part", ""))
    return verb.run(chosen, {name[2:]: value for name, value in options}, arguments)


def _start(root: Root, options: Options, arguments: list[str]) -> int:
    # Each verb imports what it needs when it runs, so that no other verb pays for it.
    from trackside.report.status import build_status
    from trackside.steps.handover import parse_secrets
    from trackside.steps.start import start

    plan = read_plan(root)
    secrets = parse_secrets(sys.stdin.buffer.read()) if "secrets-stdin" in options else {}
    start(root, plan, secrets=secrets)
    return _print(build_status(root, plan, since=None))


def _status(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.report.status import DEFAULT_MAX_BYTES, build_status, parse_since

    problems: list[str] = []
    if "alone" in options:
        with unless_unwritable(problems):
            _visit(root, options, arguments)
    since = parse_since(options.get("since"))
    max_bytes = _count(options, "max-bytes", DEFAULT_MAX_BYTES)
    return _print({**build_status(root, read_plan(root), since=since, max_bytes=max_bytes), **_unwritten(problems)})


def _follow(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.report.follow import follow
    from trackside.report.status import parse_since

    since = parse_since(options.get("since"))
    interval = _seconds(options, "interval", 0.1)
    follow(root, read_plan(root), since, interval_seconds=interval, source=0, sink=1)
    return 0


def _stop(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.report.status import build_status
    from trackside.steps.stop import stop

    grace = _seconds(options, "grace", -1.0)
    plan = read_plan(root)
    problems = stop(root, plan, grace_seconds=plan.stop_grace_seconds if grace < 0 else grace)
    return _print({**build_status(root, plan, since=None), **_unwritten(problems)})


def _save(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.steps.training_requests import save

    return _print(save(root, read_plan(root), request=_id(options), wait_seconds=_seconds(options, "wait", 0.0)))


def _sample(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.steps.training_requests import sample

    return _print(sample(root, read_plan(root), request=_id(options), wait_seconds=_seconds(options, "wait", 0.0)))


def _check(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.steps.health import check_health

    root.make_folders()
    return _print(check_health(root, read_plan(root)))


def _cleanup(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.cleanup import clean_up

    return _print(clean_up(root, read_plan(root), grace_seconds=_seconds(options, "grace", 10.0)))


def _logs(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.report.logs import write_logs

    step = _count(options, "step", 0) if "step" in options else None
    tail = _count(options, "tail", 0) if "tail" in options else None
    write_logs(root, sys.stdout.buffer, step=step, tail_lines=tail)
    return 0


def _hash(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.transfer.hashing import hash_chunks, hash_files

    if "end-writers" in options:
        from trackside.transfer.writers import end_writers

        for path in arguments:
            end_writers(os.path.join(root.path, path))
    if "chunks" not in options:
        return _print({"files": hash_files(root.path, arguments)})
    chunk_bytes = _count(options, "chunks", 0)
    if not 1 <= chunk_bytes <= _LARGEST_CHUNK_BYTES:
        raise Misuse("--chunks %d is not between 1 and %d" % (chunk_bytes, _LARGEST_CHUNK_BYTES))
    return _print({"files": hash_chunks(root.path, arguments, chunk_bytes)})


def _take(root: Root, options: Options, arguments: list[str]) -> int:
    import time

    from trackside.transfer.cache import take

    sha256, room_bytes = options.get("sha256", ""), _count(options, "room", 0)
    return _print({"taken": take(root, sha256, arguments[0], room_bytes=room_bytes, now=time.time())})


def _keep(root: Root, options: Options, arguments: list[str]) -> int:
    import time

    from trackside.transfer.cache import keep

    most_bytes, most_seconds = _count(options, "most-bytes", 0), _seconds(options, "most-age", 0.0)
    sha256, now = options.get("sha256", ""), time.time()
    return _print({"kept": keep(root, sha256, arguments[0], most_bytes=most_bytes, most_seconds=most_seconds, now=now)})


def _unpack(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.transfer.unpack import unpack

    if "sha256" not in options:
        raise Misuse("--sha256 is missing")
    answer = unpack(root, arguments[0], arguments[1], sha256=options["sha256"])
    _print(answer)
    return 0 if answer["ok"] else 1


def _inventory(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.report.outputs import take_inventory

    return _print(take_inventory(root, read_plan(root)))


def _visit(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.machine.guard import visit

    visit(root, alone_seconds=_seconds(options, "alone", 0.0))
    return 0


def _acknowledge(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.machine.guard import acknowledge

    acknowledge(root)
    return 0


def _read(root: Root, options: Options, arguments: list[str]) -> int:
    import base64

    count = _count(options, "bytes", 512)
    if count > _LARGEST_READ_BYTES:
        raise Misuse("--bytes %d is more than %d" % (count, _LARGEST_READ_BYTES))
    with open(root.inside(arguments[0]), "rb") as file:
        return _print({"data": base64.b64encode(file.read(count)).decode()})


def _upload(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.transfer.signed_upload import upload

    return _print(upload(root, sys.stdin.buffer.read()))


def _download(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.transfer.bucket_download import download

    return _print(download(root, sys.stdin.buffer.read()))


def _preflight(root: Root, options: Options, arguments: list[str]) -> int:
    import time

    from trackside.report.preflight import preflight

    return _print(preflight(root, wall=time.time(), allocate="no-allocation" not in options))


def _look(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.report.adoptable import look

    return _print(look(sys.stdin.buffer.read()))


def _serve(root: Root, options: Options, arguments: list[str]) -> int:
    from trackside.serve import serve

    serve(run_verb, root.path, token=options.get("token", ""), idle_seconds=_seconds(options, "idle", 60.0))
    return 0


def _unwritten(problems: list[str]) -> dict[str, Any]:
    """Return the part of an answer that says why something could not be written, although the verb did its work."""
    return {"unwritten": problems[0]} if problems else {}


def _id(options: Options) -> str:
    if not options.get("id"):
        raise Misuse("--id is missing")
    return options["id"]


def _count(options: Options, name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdigit():
        raise Misuse("--%s %s is not a number" % (name, text))
    return int(text)


def _seconds(options: Options, name: str, default: float) -> float:
    if name not in options:
        return default
    text = options[name]
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise Misuse("--%s %s is not a number of seconds" % (name, text))
    return seconds


def _print(answer: dict[str, Any]) -> int:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return 0


class _Verb(NamedTuple):
    run: Callable[[Root, Options, List[str]], int]
    options: List[str]
    fewest: int = 0
    most: int = 0


_VERBS = {
    "start": _Verb(_start, ["secrets-stdin"]),
    "status": _Verb(_status, ["since=", "max-bytes=", "alone="]),
    "follow": _Verb(_follow, ["since=", "interval="]),
    "stop": _Verb(_stop, ["grace="]),
    "save": _Verb(_save, ["id=", "wait="]),
    "sample": _Verb(_sample, ["id=", "wait="]),
    "check": _Verb(_check, []),
    "cleanup": _Verb(_cleanup, ["grace="]),
    "logs": _Verb(_logs, ["step=", "tail="]),
    "hash": _Verb(_hash, ["chunks=", "end-writers"], fewest=1, most=100_000),
    "take": _Verb(_take, ["sha256=", "room="], fewest=1, most=1),
    "keep": _Verb(_keep, ["sha256=", "most-bytes=", "most-age="], fewest=1, most=1),
    "unpack": _Verb(_unpack, ["sha256="], fewest=2, most=2),
    "inventory": _Verb(_inventory, []),
    "visit": _Verb(_visit, ["alone="]),
    "acknowledge": _Verb(_acknowledge, []),
    "read": _Verb(_read, ["bytes="], fewest=1, most=1),
    "upload": _Verb(_upload, []),
    "download": _Verb(_download, []),
    "preflight": _Verb(_preflight, ["no-allocation"]),
    "look": _Verb(_look, []),
    "serve": _Verb(_serve, ["token=", "idle="]),
}
