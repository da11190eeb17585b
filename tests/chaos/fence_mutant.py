"""Takes the fence out of a copy of the code and shows that the crash tests notice.

Run it as `python tests/chaos/fence_mutant.py [TEST…]`: exit code 0 when every test named fails without the token check.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ', jobs.c.lease_token == sa.bindparam("b_token")'
TESTS = [
    "tests/chaos/test_every_point.py::test_a_machine_rented_by_a_sleeper_is_surplus_and_its_late_answer_is_dropped",
]


def without_the_fence(folder: Path) -> Path:
    """A copy of the source in which a worker's writes no longer ask whether the lease is still its own."""
    source = folder / "src"
    shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("leases.py", "leased_writes.py"):
        file = source / "stationmaster" / "store" / name
        text = file.read_text(encoding="utf-8")
        assert text.count(CHECK) == 1, "the token check has moved: this mutant no longer removes it"
        file.write_text(text.replace(CHECK, ""), encoding="utf-8")
    return source


def failing(tests: list[str], source: Path) -> list[str]:
    """Which of the tests fail on that source; all of them should be able to."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-x", "--tb=line"]
    red = []
    for test in tests:
        environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run([*command, test], cwd=ROOT, env=environment, capture_output=True, text=True)
        print(_told(done.stdout), file=sys.stderr)
        if done.returncode == 1:  # tests failed; anything else is no verdict
            red.append(test)
    return red


def _told(output: str) -> str:
    """The line that says which test failed, and why."""
    return "\n".join(line for line in output.splitlines() if line.startswith(("FAILED", "ERROR", "E   ")))


def main(arguments: list[str]) -> int:
    tests = arguments or TESTS
    with tempfile.TemporaryDirectory() as folder:
        red = failing(tests, without_the_fence(Path(folder)))
    green = [test for test in tests if test not in red]
    print(f"without the fence {len(red)} of {len(tests)} fail" + (f"; these do not notice: {green}" if green else ""))
    return 1 if green else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
