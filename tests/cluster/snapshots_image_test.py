"""The image that has CRIU: what a pod would copy out of it freezes and revives processes here, by the stories that the stand-in for CRIU is held to. It is
made with --all and by hand alone."""

import os
import subprocess
import sys

import images
import pytest
from cluster import ROOT

pytestmark = pytest.mark.turns("all")
STORIES = ("tests/e2e/snapshot_test.py", "tests/e2e/pod_frozen_test.py")
TOOL = "/opt/ringmaster/libexec/ringmaster-snapshot"


@pytest.fixture(name="inside", scope="module")
def fixture_inside():
    """inside(words): runs them where the image's bundle lies at /opt/ringmaster, and nothing else of it is there."""
    images.make_snapshots()
    made = images.buildah_says("from", "--pull-never", images.SNAPSHOTS)
    root = images.buildah_says("mount", made)
    mounts = 'mount -t tmpfs none /opt && mkdir /opt/ringmaster && mount --bind "$1/opt/ringmaster" /opt/ringmaster && shift && exec "$@"'
    yield lambda *words, **how: subprocess.run(["unshare", "--mount", "sh", "-c", mounts, "sh", root, *words], check=False, text=True, **how)
    images.buildah_says("rm", made)


def test_processes_are_frozen_and_live_again_by_what_is_in_the_image(inside):
    checked = inside(TOOL, "check", capture_output=True)
    assert checked.returncode == 0 and checked.stdout.startswith("a process was frozen and lives again: snapshots work here (criu 4."), checked


def test_the_stories_of_the_standin_are_those_of_criu_itself(inside):
    done = inside(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *STORIES, "-k", "criu", cwd=ROOT, capture_output=True,
                  env={**os.environ, "RINGMASTER_TRIED_SNAPSHOT": TOOL, "PYTHONPATH": str(ROOT / "tests")})
    assert done.returncode == 0 and " passed" in done.stdout, done.stdout[-6000:]
