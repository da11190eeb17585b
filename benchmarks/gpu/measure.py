"""Run a rendered recipe with its real trainer and random weights, and print its peak GPU memory as one JSON line.

    python3 benchmarks/gpu/measure.py plans/flux-lora.json --bundle .bundle --limit-gib 22.5 --timeout 240 --out $OUT

The plan comes from render.py. What the trainer needs and the machine lacks comes from the bundle (bundle.sh). The steps
of the plan run as they are, bootstrap and health left out; the trainer's own code is not changed: `watch/` wraps some
of its methods from outside. Pictures, weights and job folders are under --folder and are created if they are missing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections import deque
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

HERE = Path(__file__).resolve().parent
BEGAN = time.monotonic()
PICTURES = 12
LEAST_SECONDS = 45.0
REPORT_SECONDS = 8.0
TAIL_LINES = 60
MODELS = {"ai-toolkit": "flux", "kohya": "sdxl"}
# imported by ai-toolkit for other models, for video or for sound, and not used on this path; diffusers insists on av
ABSENT = {
    "flux": "av! librosa albumentations controlnet_aux lpips pytorch_wavelets lycoris prodigyopt mutagen torchaudio",
    "sdxl": "",
}
PACKAGES = (
    "torch torchvision torchaudio transformers diffusers accelerate peft huggingface_hub safetensors tokenizers numpy"
    " bitsandbytes optimum-quanto torchao triton"
)
# a rehearsal without GPU runs the same files with these changes
REHEARSED = {
    r"cuda:0": "cpu",
    r"(width|height)(\"?): 1024": r"\1\2: 128",
    r"sample_steps(\"?): \d+": r"sample_steps\1: 2",
    r"(?m)^([- ]+)512(,?)$": r"\g<1>64\2",
    r"(?m)^([- ]+)768(,?)$": r"\g<1>96\2",
    r"(?m)^([- ]+)1024(,?)$": r"\g<1>128\2",
    r"AdamW8bit": "AdamW",
    r"mixed_precision( = \"|=)bf16": r"mixed_precision\1no",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--bundle", type=Path, required=True, help="folder with flux.tar.gz and sdxl.tar.gz")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/measure"))
    parser.add_argument("--out", type=Path, default=Path.cwd(), help="where logs and results.jsonl are written")
    parser.add_argument("--limit-gib", type=float, default=None, help="the most that PyTorch may reserve")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for the steps, weights not counted")
    parser.add_argument("--end", type=float, default=None, help="when all must be over, in seconds since 1970")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="for the trainer")
    parser.add_argument("--rehearse", action="store_true", help="without GPU, with tiny weights")
    parser.add_argument("--first", action="append", default=[], type=Path, help="packages that hide the bundle's")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    return Measurement(arguments).run()


class Measurement:
    """One plan on this machine."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._given = arguments
        self._plan: dict[str, Any] = json.loads(arguments.plan.read_text())
        self._model = MODELS[self._plan["framework"]]
        limit = "" if arguments.limit_gib is None else f"-{arguments.limit_gib:g}gib"
        self._name = f"{self._plan['name']}{limit}"
        self._bundle: Path = arguments.folder / "bundle"
        self._weights: Path = arguments.folder / self._model
        self._root = Path(self._plan["root"])
        self._log: Path = arguments.out / f"{self._name}.log"
        self._report: Path = arguments.folder / f"{self._name}.report.json"
        self._environment = self._environment_of_steps()

    def run(self) -> int:
        show(f"{self._name}: {self._plan['recipe']}, {self._plan['given']}")
        if self._left() < LEAST_SECONDS:
            show(f"{self._name}: skipped, {self._left():.0f} s are left")
            return 1
        self._report.unlink(missing_ok=True)
        with self._log.open("wb") as log:
            self._unpack()
            there = (self._weights / ".complete").exists()  # saves the time of importing diffusers
            if code := 0 if there else self._step_fails(self._weights_step(), log):
                return self._end("weights", code, 0.0)
            self._lay_out()
            return self._train(log)

    def _left(self) -> float:
        """Seconds until the end of the whole call, minus some for the reports."""
        return float("inf") if self._given.end is None else self._given.end - time.time() - REPORT_SECONDS

    def _train(self, log: IO[bytes]) -> int:
        began = time.monotonic()
        with DeviceMemory() as memory:
            for step in self._plan["steps"]:
                if step["name"] in self._plan["skip"]:
                    continue
                left = min(self._given.timeout - (time.monotonic() - began), self._left())
                if code := self._step_fails({**step, "timeout_seconds": min(left, step["timeout_seconds"])}, log):
                    return self._end(step["name"], code, time.monotonic() - began, memory)
        return self._end(None, 0, time.monotonic() - began, memory)

    def _environment_of_steps(self) -> dict[str, str]:
        given = self._given
        paths = [HERE / "watch", *given.first, self._bundle / f"{self._model}-site"]
        ours = {
            "PYTHONPATH": os.pathsep.join(str(path.absolute()) for path in paths),
            "PYTHONUNBUFFERED": "1",
            "HF_HOME": str(given.folder / "hf"),
            "HF_HUB_CACHE": str(self._weights / "hub"),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "GPU_WATCH_ABSENT": ABSENT[self._model],
            "GPU_WATCH_REPORT": str(self._report),
            "TOKENIZERS_PARALLELISM": "false",
        }
        if given.limit_gib is not None:
            ours["GPU_WATCH_LIMIT_GIB"] = str(given.limit_gib)
        return {**os.environ, **ours, **dict(one.split("=", 1) for one in given.env)}

    def _unpack(self) -> None:
        done = self._bundle / f".{self._model}"
        if not done.exists():
            self._bundle.mkdir(parents=True, exist_ok=True)
            with tarfile.open(self._given.bundle / f"{self._model}.tar.gz") as archive:
                archive.extractall(self._bundle, filter="data")
            done.touch()
            show(f"unpacked {self._model}.tar.gz")

    def _weights_step(self) -> dict[str, Any]:
        size = "tiny" if self._given.rehearse else "full"
        return {
            "name": "weights",
            "argv": [self._plan["python"], str(HERE / "weights.py"), self._model, str(self._weights), "--size", size],
            "env": {},
            "cwd": str(self._given.folder),
            "timeout_seconds": min(200.0, self._left()),
        }

    def _lay_out(self) -> None:
        """Create the job folder as trackside has it before the first step."""
        shutil.rmtree(self._root, ignore_errors=True)
        for name in ("dataset", "output", "recipe", "config", "work"):
            (self._root / name).mkdir(parents=True)
        for name, text in self._plan["recipe_files"].items():
            (self._root / "recipe" / name).write_text(text)
        for path, text in self._plan["configs"].items():
            (self._root / path).parent.mkdir(parents=True, exist_ok=True)
            (self._root / path).write_text(self._changed(text))
        from pictures import make_pictures  # type: ignore[import-not-found, unused-ignore]

        make_pictures(self._root / "dataset", PICTURES, control=self._plan["control"])

    def _changed(self, text: str) -> str:
        if not self._given.rehearse:
            return text
        for real, rehearsed in REHEARSED.items():
            text = re.sub(real, rehearsed, text)
        return text

    def _step_fails(self, step: Mapping[str, Any], log: IO[bytes]) -> int:
        """Run the step. Returns its exit code, 0 for success, 124 for a timeout."""
        argv = [self._changed(one) for one in step["argv"]]
        show(f"step {step['name']}: {shlex.join(argv)[:300]}")
        Path(step["cwd"]).mkdir(parents=True, exist_ok=True)
        process = subprocess.Popen(
            argv,
            env={**self._environment, **step["env"]},
            cwd=step["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        output = Output(process, log)
        try:
            code = process.wait(timeout=max(1.0, step["timeout_seconds"]))
        except subprocess.TimeoutExpired:
            code = 124
        _end_group(process)
        output.join()
        if code:
            show(f"step {step['name']} failed with exit code {code}; the end of its output:")
            print("\n".join(output.tail), flush=True)
        return code

    def _end(self, failed: str | None, code: int, seconds: float, memory: DeviceMemory | None = None) -> int:
        report = json.loads(self._report.read_text()) if self._report.exists() else {}
        result = {
            "name": self._name,
            "recipe": self._plan["recipe"],
            "given": self._plan["given"],
            "limit_gib": self._given.limit_gib,
            "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "failed": failed,
            "exit_code": code,
            "seconds": round(seconds, 1),
            "nvidia_smi_peak_gib": memory and memory.peak_gib,
            "card": _nvidia_smi("name,driver_version,memory.total"),
            "versions": self._versions(),
            "files": self._files(),
            "command": shlex.join(sys.argv),
            **report,
        }
        with (self._given.out / "results.jsonl").open("a") as results:
            results.write(json.dumps(result) + "\n")
        print(json.dumps(_short(result)), flush=True)
        show(f"{self._name}: {'failed in ' + failed if failed else 'done'} after {seconds:.0f} s")
        return 0 if failed is None else 1

    def _files(self) -> dict[str, int]:
        """The files that the training left, with sizes: the proof that it saved and made samples."""
        output = self._root / "output"
        return {
            str(file.relative_to(output)): file.stat().st_size for file in sorted(output.rglob("*")) if file.is_file()
        }

    def _versions(self) -> Any:
        """Package versions as the trainer sees them, including those of the bundle."""
        script = (
            "import sys, json, importlib.metadata as m\n"
            "def v(n):\n"
            "    try: return m.version(n)\n"
            "    except m.PackageNotFoundError: return None\n"
            "print(json.dumps({'python': sys.version.split()[0], **{n: v(n) for n in sys.argv[1:]}}))"
        )
        asked = subprocess.run(
            [self._plan["python"], "-c", script, *PACKAGES.split()],
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(asked.stdout) if asked.returncode == 0 else asked.stderr[-300:]


class Output:
    """Copies a process's output to the log, shows the lines about its progress, and keeps the end."""

    # the watch's lines may stand behind a progress bar
    SHOWN = re.compile(r"\[watch .*|.*(Error|error:|OOM|Traceback|out of memory|billion parameters|Failed).*")

    def __init__(self, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
        self.tail: deque[str] = deque(maxlen=TAIL_LINES)
        assert process.stdout is not None
        self._thread = threading.Thread(target=self._copy, args=(process.stdout, log), daemon=True)
        self._thread.start()

    def join(self) -> None:
        # a process that left our group may hold the pipe open
        self._thread.join(timeout=10)

    def _copy(self, source: IO[bytes], log: IO[bytes]) -> None:
        rest = b""
        while chunk := os.read(source.fileno(), 65536):
            log.write(chunk)
            log.flush()
            *lines, rest = re.split(rb"[\r\n]", rest + chunk)
            for line in lines:
                self._take(line.decode(errors="replace").rstrip())
        self._take(rest.decode(errors="replace"))

    def _take(self, line: str) -> None:
        if not line.strip():
            return
        self.tail.append(line)
        if shown := self.SHOWN.search(line):
            show(shown.group()[:400])


class DeviceMemory:
    """Peak memory use of the card by nvidia-smi, polled twice a second."""

    def __init__(self) -> None:
        self.peak_gib: float | None = None

    def __enter__(self) -> DeviceMemory:
        asked = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "500"]
        try:
            self._process: subprocess.Popen[str] | None = subprocess.Popen(
                asked, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
        except FileNotFoundError:
            self._process = None
        else:
            threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip().isdigit():
                self.peak_gib = max(self.peak_gib or 0.0, round(int(line) / 1024, 3))


def _short(result: Mapping[str, Any]) -> dict[str, Any]:
    """What is printed; results.jsonl has the rest."""
    left_out = {"steps", "files", "command", "given"} | (set() if result["failed"] else {"versions"})
    phases = {
        name: [peak["allocated_gib"], peak["reserved_gib"], peak["device_gib"], peak["seconds"]]
        for name, peak in result.get("phases", {}).items()
    }
    shown = {name: value for name, value in result.items() if name not in left_out}
    return {**shown, "phases": phases, "files": len(result["files"])}


def _end_group(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue


def _nvidia_smi(fields: str) -> str | None:
    try:
        return subprocess.run(
            ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout.strip()
    except FileNotFoundError:
        return None


def show(text: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')} +{time.monotonic() - BEGAN:.0f}s] {text}", flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
