"""A child process that uploads with the Hub's own client: reads an order from stdin, prints one line of JSON."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Mapping
from typing import Any


def main() -> None:
    order = json.loads(sys.stdin.buffer.read())
    try:
        answer = _upload(order)
    except ImportError:
        missing = "uploads from this computer need the extra `hub`: pip install 'stationmaster[hub]'"
        answer = {"ok": False, "refused": True, "problem": missing}
    except Exception as problem:  # noqa: BLE001 (top of the process; the client also raises its HTTP library's errors)
        answer = {"ok": False, "refused": False, "problem": _line(problem)}
    sys.stdout.write(json.dumps(answer) + "\n")


def _upload(order: Mapping[str, Any]) -> dict[str, Any]:
    from huggingface_hub import CommitOperationAdd, HfApi
    from huggingface_hub.errors import HfHubHTTPError

    api = HfApi(endpoint=order["endpoint"], token=order["token"])
    files = [
        CommitOperationAdd(
            path_in_repo=one["name"],
            path_or_fileobj=base64.b64decode(one["content"]) if "content" in one else one["path"],
        )
        for one in order["files"]
    ]
    try:
        done = api.create_commit(order["repo"], files, commit_message=order["message"])
    except HfHubHTTPError as problem:
        return _refusal(problem)
    return {"ok": True, "commit": done.oid}


def _refusal(problem: Any) -> dict[str, Any]:
    answer = problem.response
    status = answer.status_code if answer is not None else 0
    after = answer.headers.get("retry-after", "") if answer is not None else ""
    return {
        "ok": False,
        "refused": 400 <= status < 500 and status not in (408, 425, 429),
        "problem": _line(problem),
        "retry_after": float(after) if after.isdigit() else None,
    }


def _line(problem: BaseException) -> str:
    return f"the Hub: {' '.join(str(problem).split())[:300] or type(problem).__name__}"


if __name__ == "__main__":
    main()
