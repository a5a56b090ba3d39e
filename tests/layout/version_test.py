"""One version, that of the CMake project: programs, chart, images and the plain manifest all say it."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin"))
CHART = ROOT / "charts/ringmaster"
IMAGES = ("ringmaster-operator", "ringmaster-worker", "ringmaster-snapshots")


@pytest.fixture(name="version", scope="module")
def fixture_version():
    (found,) = re.findall(r"^project\(ringmaster VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    return found


@pytest.mark.parametrize("program", ["ringmaster", "ringmaster-agent", "ringmaster-operator", "ringmaster-trainer"])
def test_a_program_says_the_version_of_the_project_its_commit_and_its_arithmetic(version, program):
    done = subprocess.run([BIN / program, "--version"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and not done.stderr and done.stdout.startswith(f"{program} {version}\n"), done
    assert re.search(r"^  commit      ([0-9a-f]{12}|unknown)$", done.stdout, re.MULTILINE), done
    computes = program in ("ringmaster", "ringmaster-trainer")
    assert bool(re.search(r"^  arithmetic  .*numerics [0-9a-f]{16}\b", done.stdout, re.MULTILINE)) == computes, done


def test_the_chart_and_its_images_have_the_version_of_the_project(version):
    chart, values = ((CHART / name).read_text() for name in ("Chart.yaml", "values.yaml"))
    assert re.findall(r"^(?:version|appVersion): (\S+)$", chart, re.MULTILINE) == [version, version]
    assert re.findall(r"^  (?:operator|worker|snapshots): (\S+)", values, re.MULTILINE) == [f"{image}:{version}" for image in IMAGES]


def test_the_images_say_in_their_labels_what_they_are(version):
    text = (ROOT / "deploy/Dockerfile").read_text()
    for name in ("title", "version", "revision", "description"):
        assert len(re.findall(rf'org\.opencontainers\.image\.{name}="[^"]+"', text)) == len(IMAGES), name
    assert sorted(re.findall(r'image\.title="([^"]+)"', text)) == sorted(IMAGES)
    assert set(re.findall(r'image\.version="([^"]+)"', text)) == {version}


def test_the_plain_manifest_has_it_too(version):
    text = (ROOT / "deploy/install.yaml").read_text()
    assert set(re.findall(r"app\.kubernetes\.io/version: (.*)", text)) == {f'"{version}"'}
    assert {tuple(found) for found in re.findall(rf"({'|'.join(IMAGES)}):(\S+)", text)} == {(image, version) for image in IMAGES[:2]}


def test_the_images_are_built_of_every_folder_that_a_program_is():
    """What .dockerignore does not let through is missing where the images are built, and there alone."""
    layers = re.findall(r"^rm_(?:library|program)\((?:[\w-]+ )?(\w+)[/ ]", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"), re.M)
    through = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    layers += [name for path in (ROOT / "cmake").glob("*.cmake")
               for name in re.findall(r"\$\{CMAKE_SOURCE_DIR\}/(\w+)", path.read_text(encoding="utf-8")) if name not in ("tests", "docs")]
    assert {"common", "trainer", "python"} <= set(layers), layers
    assert not [f for f in sorted(set(layers)) if f"!{f}" not in through]
