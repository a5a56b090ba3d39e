"""The list of an image's packages, as SPDX: from dpkg's own, of a status file and of both kinds of archives."""

import hashlib
import io
import json
import os
import re
import subprocess
import tarfile

import pytest

import rig

TOOL = rig.ROOT / "tools/sbom"
STATUS = """Package: zlib1g
Status: install ok installed
Maintainer: Mark Brown <broonie@debian.org>
Architecture: amd64
Multi-Arch: same
Source: zlib (1:1.3.dfsg+really1.3.1-1)
Version: 1:1.3.dfsg+really1.3.1-1+b1
Description: compression library - runtime
 Version: 9 of this line is none of the package's.

Package: gone
Status: deinstall ok config-files
Architecture: amd64
Version: 1

Package: libstdc++6
Status: install ok installed
Maintainer: Debian GCC Maintainers <debian-gcc@lists.debian.org>
Architecture: amd64
Version: 14.2.0-19
"""


def sbom(*arguments, **more):
    environment = {**os.environ, "SOURCE_DATE_EPOCH": "0"}
    return subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=rig.DEADLINE_S, env=environment, **more)


def check_document(document):
    """What SPDX 2.3 asks of each document and package, and that no reference leads nowhere."""
    assert (document["spdxVersion"], document["dataLicense"], document["SPDXID"]) == ("SPDX-2.3", "CC0-1.0", "SPDXRef-DOCUMENT")
    assert document["documentNamespace"].startswith("urn:") and "#" not in document["documentNamespace"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", document["creationInfo"]["created"]) and document["creationInfo"]["creators"]
    names = [one["SPDXID"] for one in document["packages"]]
    assert len(set(names)) == len(names) and all(re.fullmatch(r"SPDXRef-[A-Za-z0-9.-]+", name) for name in names)
    assert all(one["name"] and one["versionInfo"] and one["downloadLocation"] and one["filesAnalyzed"] is False for one in document["packages"])
    ends = {(entry["spdxElementId"], entry["relatedSpdxElement"]) for entry in document["relationships"]}
    assert ends == {("SPDXRef-DOCUMENT", names[0])} | {(names[0], name) for name in names[1:]}


def test_what_dpkg_says_is_installed_is_in_it_and_nothing_else():
    done = sbom("--name", "ringmaster-worker", "-", input=STATUS)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check_document(document)
    found = [(one["name"], one["versionInfo"]) for one in document["packages"]]
    assert [name for name, _ in found] == ["ringmaster-worker", "ringmaster", "libstdc++6", "zlib1g"]
    assert found[-1] == ("zlib1g", "1:1.3.dfsg+really1.3.1-1+b1")
    (purl,) = document["packages"][-1]["externalRefs"]
    assert purl["referenceLocator"] == "pkg:deb/debian/zlib1g@1%3A1.3.dfsg%2Breally1.3.1-1%2Bb1?arch=amd64"
    assert document["packages"][-1]["sourceInfo"].endswith(" zlib")
    assert sbom("--name", "ringmaster-worker", "-", input=STATUS).stdout == done.stdout


def test_this_machines_own_packages_are_all_there():
    known = subprocess.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package} ${Version}\n"], capture_output=True, text=True, check=True).stdout
    wanted = sorted(line.split()[1:] for line in known.splitlines() if line.startswith("installed "))
    document = json.loads(sbom("--name", "here", "/var/lib/dpkg/status").stdout)
    check_document(document)
    assert sorted([one["name"], one["versionInfo"]] for one in document["packages"][2:]) == wanted


def add(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))


def layer(files):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            add(archive, name, content.encode())
    return made.getvalue()


def write_archive(path, kind, layers):
    """As `docker save` writes one, or as an OCI layout."""
    blobs = {f"blobs/sha256/{hashlib.sha256(content).hexdigest()}": content for content in layers}
    with tarfile.open(path, "w") as archive:
        if kind == "docker":
            add(archive, "manifest.json", json.dumps([{"Layers": list(blobs)}]).encode())
        else:
            digests = [{"digest": name[6:].replace("/", ":")} for name in blobs]
            manifest = json.dumps({"layers": digests}).encode()
            digest = hashlib.sha256(manifest).hexdigest()
            blobs[f"blobs/sha256/{digest}"] = manifest
            add(archive, "index.json", json.dumps({"manifests": [{"digest": f"sha256:{digest}"}]}).encode())
        for name, content in blobs.items():
            add(archive, name, content)


@pytest.mark.parametrize("kind", ["docker", "oci"])
def test_an_archives_list_is_that_of_its_highest_layer(tmp_path, kind):
    path = tmp_path / "worker.tar"
    older = STATUS.replace("14.2.0-19", "13.0.0-1")
    write_archive(path, kind, [layer({"./var/lib/dpkg/status": older}), layer({"var/lib/dpkg/status": STATUS}), layer({"usr/bin/x": "x"})])
    done = sbom(path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == json.loads(sbom("--name", "worker", "-", input=STATUS).stdout)


def test_what_is_no_list_is_a_sentence(tmp_path):
    write_archive(tmp_path / "empty.tar", "oci", [layer({"usr/bin/x": "x"})])
    for arguments, text, part in (((tmp_path / "empty.tar",), None, "no layer has var/lib/dpkg/status"), (("-",), STATUS, "--name"),
                                  (("--name", "x", "-"), "hello\n", "nothing is installed by this list")):
        done = sbom(*arguments, input=text)
        assert done.returncode != 0 and part in done.stderr and not done.stdout, done
