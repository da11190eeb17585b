"""Limits of control groups, in both versions, as containers see them."""

from __future__ import annotations

from pathlib import Path

import pytest

from trackside.sampler.cgroups import ControlGroups, control_groups
from trackside.sampler.cpu import CpuMeter
from trackside.sampler.linux import LinuxMachine

GIB = 1 << 30


def groups_of(folder: Path, *, cgroup: str, mounts: str, files: dict[str, str]) -> ControlGroups:
    (folder / "proc/self").mkdir(parents=True)
    (folder / "proc/self/cgroup").write_text(cgroup)
    (folder / "proc/self/mountinfo").write_text(mounts.replace("SYS", str(folder / "sys")))
    for name, text in files.items():
        path = folder / "sys" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return control_groups(proc=str(folder / "proc"))


VERSION_2 = "30 20 0:26 / SYS rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
VERSION_1 = (
    "31 20 0:27 /docker/abc SYS/memory ro - cgroup cgroup rw,memory\n"
    "32 20 0:28 /docker/abc SYS/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n"
)


def test_the_lowest_limit_of_all_groups_above_counts(tmp_path: Path) -> None:
    groups = groups_of(
        tmp_path,
        cgroup="0::/pods/job/step\n",
        mounts=VERSION_2,
        files={
            "pods/job/step/memory.max": "max",
            "pods/job/memory.max": str(16 * GIB),
            "pods/memory.max": str(64 * GIB),
            "pods/job/step/cpu.max": "max 100000",
            "pods/job/cpu.max": "400000 100000",
            "pods/job/cpu.stat": "usage_usec 2500000\nuser_usec 1",
        },
    )
    assert groups.memory_limit_gb() == 16.0
    quota = groups.cpu_quota()
    assert quota is not None
    assert (quota.cores, quota.used_seconds()) == (4.0, 2.5)


def test_a_container_with_version_1_sees_its_group_as_the_root(tmp_path: Path) -> None:
    groups = groups_of(
        tmp_path,
        cgroup="5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n1:name=systemd:/docker/abc\n",
        mounts=VERSION_1,
        files={
            "memory/memory.limit_in_bytes": str(8 * GIB),
            "cpu,cpuacct/cpu.cfs_quota_us": "150000",
            "cpu,cpuacct/cpu.cfs_period_us": "100000",
            "cpu,cpuacct/cpuacct.usage": "3000000000",
        },
    )
    assert groups.memory_limit_gb() == 8.0
    quota = groups.cpu_quota()
    assert quota is not None
    assert (quota.cores, quota.used_seconds()) == (1.5, 3.0)


@pytest.mark.parametrize(
    ("cgroup", "mounts", "name", "text"),
    [
        ("0::/job\n", VERSION_2, "job/memory.events", "low 0\nhigh 0\nmax 91\noom 3\noom_kill 2\noom_group_kill 0"),
        (
            "5:memory:/docker/abc\n",
            VERSION_1,
            "memory/memory.oom_control",
            "under_oom 0\noom_kill 2",
        ),
    ],
)
def test_the_kernel_s_kills_for_lack_of_memory_are_counted(
    tmp_path: Path, cgroup: str, mounts: str, name: str, text: str
) -> None:
    groups = groups_of(tmp_path, cgroup=cgroup, mounts=mounts, files={name: text})
    assert groups.memory_kills() == 2
    (tmp_path / "sys" / name).write_text("oom 1\n")
    assert groups.memory_kills() is None, "older kernels do not count"


@pytest.mark.parametrize(
    ("cgroup", "mounts", "files"),
    [
        ("0::/job\n", VERSION_2, {"job/memory.max": str(8 * GIB), "job/memory.swap.current": str(GIB // 2)}),
        (
            "5:memory:/docker/abc\n",
            VERSION_1,
            {
                "memory/memory.limit_in_bytes": str(8 * GIB),
                "memory/memory.stat": f"cache 1\nswap {GIB // 2}\ntotal_swap 7",
            },
        ),
    ],
)
def test_a_container_s_swap_is_its_own(tmp_path: Path, cgroup: str, mounts: str, files: dict[str, str]) -> None:
    groups = groups_of(tmp_path, cgroup=cgroup, mounts=mounts, files=files)
    assert groups.swap_used_gb() == 0.5
    machine = tmp_path / "proc"
    (machine / "meminfo").write_text("MemTotal: 99 kB\nMemFree: 9 kB\nSwapTotal: 33554432 kB\nSwapFree: 0 kB\n")
    assert LinuxMachine(None, folder=str(tmp_path), now=lambda: 0.0, proc=str(machine)).memory().swap_used_gb == 0.5


def test_an_absurdly_high_limit_is_none(tmp_path: Path) -> None:
    groups = groups_of(
        tmp_path,
        cgroup="5:memory:/\n4:cpu,cpuacct:/\n",
        mounts=VERSION_1.replace("/docker/abc", "/"),
        files={"memory/memory.limit_in_bytes": "9223372036854771712", "cpu,cpuacct/cpu.cfs_quota_us": "-1"},
    )
    assert groups.memory_limit_gb() is None
    assert groups.cpu_quota() is None


def test_a_system_without_control_groups_has_no_limits(tmp_path: Path) -> None:
    assert control_groups(proc=str(tmp_path)) == ControlGroups()


def test_a_group_is_as_busy_as_it_uses_its_quota(tmp_path: Path) -> None:
    files = {"job/cpu.max": "200000 100000", "job/cpu.stat": "usage_usec 1000000"}
    quota = groups_of(tmp_path, cgroup="0::/job\n", mounts=VERSION_2, files=files).cpu_quota()
    now = [10.0]
    meter = CpuMeter(now=lambda: now[0], quota=quota, allowed=set())
    assert meter.read() is None
    (tmp_path / "sys/job/cpu.stat").write_text("usage_usec 6000000\n")
    now[0] = 15.0
    assert meter.read() == 50.0
