"""The programs that a monitor runs on a training's machine: Python 3 with nothing else, JSON lines as answers."""

from __future__ import annotations

_ALIVE = r"""
def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    try:  # a process that has ended and only waits for its parent is not alive
        return open("/proc/%d/stat" % pid).read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return not os.path.isdir("/proc/self")
"""

_LOOK = r"""
log, pid_file, output, pattern, inode, offset, pause = sys.argv[1:]
inode, offset, pause = int(inode), int(offset), float(pause)
def read_log(inode, offset):
    data = b""
    try:
        with open(log, "rb") as file:
            seen = os.fstat(file.fileno())
            if offset < 0:
                start = max(0, seen.st_size - 65536)
                file.seek(start)
                data = b"\n".join(file.read(seen.st_size - start).split(b"\n")[-101:])
                offset = seen.st_size
            else:
                if seen.st_ino != inode or seen.st_size < offset:
                    offset = 0
                file.seek(offset)
                data = file.read(1 << 20)
                offset += len(data)
            inode = seen.st_ino
    except OSError:
        pass
    return inode, offset, data
def is_alive():
    try:
        return alive(int(open(pid_file).read().split()[0]))
    except (OSError, ValueError, IndexError):
        return False
def checkpoints():
    rows = []
    for path in sorted(glob.glob(os.path.join(glob.escape(output), "**", pattern), recursive=True)):
        try:
            seen = os.stat(path)
        except OSError:
            continue
        rows.append({"path": path, "size": seen.st_size, "mtime": seen.st_mtime})
    return rows
def is_over():
    readable, _, _ = select.select([0], [], [], pause)
    return bool(readable) and not os.read(0, 4096)
told, told_at = None, 0.0
while True:
    inode, offset, data = read_log(inode, offset)
    facts = {"alive": is_alive(), "checkpoints": checkpoints()}
    if data or facts != told or time.monotonic() - told_at >= 10.0:
        told, told_at = facts, time.monotonic()
        answer = {"wall": time.time(), "inode": inode, "offset": offset, "data": base64.b64encode(data).decode()}
        answer.update(facts)
        print(json.dumps(answer), flush=True)
    if pause <= 0 or is_over():
        break
"""

_STOP = r"""
def send(pid, number):
    try:
        group = os.getpgid(pid)
        os.killpg(group, number) if group != os.getpgid(0) else os.kill(pid, number)
    except ProcessLookupError:
        pass
try:
    pid = int(open(sys.argv[1]).read().split()[0])
except (OSError, ValueError, IndexError):
    print(json.dumps({"dead": True, "known": False}))
    sys.exit()
if alive(pid):
    send(pid, signal.SIGTERM)
    ends = time.monotonic() + float(sys.argv[2])
    while alive(pid) and time.monotonic() < ends:
        time.sleep(0.1)
if alive(pid):
    send(pid, signal.SIGKILL)
    ends = time.monotonic() + 5
    while alive(pid) and time.monotonic() < ends:
        time.sleep(0.1)
print(json.dumps({"dead": not alive(pid), "known": True}))
"""

#: Arguments: log, pid file, output folder, pattern of checkpoints, inode and offset of what was read, seconds between
#: two looks. With 0 it looks once, otherwise until its standard input is closed; it prints what changed, at least every
#: ten seconds.
LOOK = "import base64, glob, json, os, select, sys, time\n" + _ALIVE + _LOOK

#: Arguments: pid file, seconds between TERM and KILL.
STOP = "import json, os, signal, sys, time\n" + _ALIVE + _STOP
