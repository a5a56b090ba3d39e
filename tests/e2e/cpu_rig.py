"""CPU quotas for processes that are under test, as a container's limit makes them."""

import contextlib
import itertools
import os
import signal
from pathlib import Path

import pytest

import rig

COUNT = itertools.count()


@contextlib.contextmanager
def quota(quota_us, period_us=100000):
    """put(pid): from now on this process and those that it starts have so much of each period between them. Whoever is left at the end is killed."""
    root = Path("/sys/fs/cgroup")
    old = (root / "cpu/cpu.cfs_quota_us").parent.is_dir()
    group = root / ("cpu" if old else "") / f"ringmaster-test-{os.getpid()}-{next(COUNT)}"
    limits = {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)} if old else {"cpu.max": f"{quota_us} {period_us}"}
    try:
        group.mkdir()
        for name, value in limits.items():
            (group / name).write_text(value, encoding="ascii")
    except OSError as why:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"no CPU quota to be had here: {why}")
    members = group / "cgroup.procs"
    try:
        yield lambda pid: members.write_text(str(pid), encoding="ascii")
    finally:
        for pid in members.read_text(encoding="ascii").split():
            os.kill(int(pid), signal.SIGKILL)
        rig.until(lambda: not members.read_text(encoding="ascii"), "nobody is left in the group")
        group.rmdir()
