"""Trains from a Python program over HTTP: upload, propose, confirm by price, follow, download, verify.

Standard library only. STATIONMASTER_SERVER and STATIONMASTER_TOKEN name the server.
Usage: train.py DATASET MOST_DOLLARS [PARAMETER=VALUE…]. The exit code is 0 if the job completed.
"""

import hashlib
import io
import json
import os
import pathlib
import sys
import tarfile
import time
import urllib.request

SERVER = os.environ["STATIONMASTER_SERVER"].rstrip("/")
TOKEN = os.environ["STATIONMASTER_TOKEN"]
RECIPE = "tiny-lora@1"


def ask(method, path, body=None, *, kind="application/json"):
    """The answer's bytes. Raises urllib.error.HTTPError; its body is a problem document (RFC 9457)."""
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": kind}
    request = urllib.request.Request(SERVER + path, method=method, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=120) as answer:
        return answer.read()


def ask_json(method, path, body=None):
    return json.loads(ask(method, path, body))


def upload(folder):
    """The dataset's name for a request; the server checks it like `stationmaster dataset check`."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.add(folder, arcname=".")
    started = ask_json("POST", "/api/datasets", {"name": folder.name, "recipe": RECIPE})
    place = f"/api/datasets/{started['id']}/files/{folder.name}.tar"
    ask("PUT", place, archive.getvalue(), kind="application/octet-stream")
    return f"upload:{started['id']}"


def confirmed_job(dataset, parameters, most_dollars):
    """Submits exactly what was proposed, if it is cheap enough; else nothing is rented."""
    wanted = {"recipe": RECIPE, "dataset": dataset, "name": "from-python", "parameters": parameters}
    proposal = ask_json("POST", "/api/proposals", wanted)
    quote = proposal["terms"]["quote"]
    print(f"expected: {quote['hours']['expected']:.2f} h, ${quote['cost_usd']['expected']:.2f}", flush=True)
    if quote["cost_usd"]["high"] > most_dollars:
        ask("DELETE", f"/api/proposals/{proposal['id']}")
        sys.exit(f"declined: it may cost ${quote['cost_usd']['high']:.2f}")
    return ask_json("POST", f"/api/proposals/{proposal['id']}/submit")["job"]["id"]


def follow(job):
    """Prints the job's events until it has ended, and returns it."""
    cursor = "0"
    while True:
        now = ask_json("GET", f"/api/jobs/{job}")
        page = ask_json("GET", f"/api/jobs/{job}/events?after={cursor}")
        for event in page["items"]:
            print(event["at"], event["sentence"], flush=True)
        cursor = page["cursor"]
        if now["state"] == "ENDED" and not page["items"]:
            return now
        time.sleep(1)


def download(job, folder):
    """The best checkpoint, verified."""
    files = ask_json("GET", f"/api/jobs/{job}/artifacts")["items"]
    model = max((file for file in files if file["kind"] == "checkpoint"), key=lambda file: file["step"] or float("inf"))
    data = ask("GET", f"/api/jobs/{job}/artifacts/{model['path']}")
    if hashlib.sha256(data).hexdigest() != model["sha256"]:
        sys.exit("the download is damaged; try again")
    target = folder / pathlib.PurePosixPath(model["path"]).name
    target.write_bytes(data)
    return target


def main(dataset, most_dollars, *pairs):
    parameters = {name: json.loads(value) for name, _, value in (pair.partition("=") for pair in pairs)}
    job = confirmed_job(upload(pathlib.Path(dataset)), parameters, float(most_dollars))
    ended = follow(job)
    print(f"{ended['outcome']}: {ended['meaning']}; ${ended['cost_usd']:.2f}")
    if ended["outcome"] != "COMPLETED":
        sys.exit(1)
    print(download(job, pathlib.Path.cwd()))


if __name__ == "__main__":
    main(*sys.argv[1:])
