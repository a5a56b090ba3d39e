"""A real Prometheus for tests, promtool, and what docs/metrics.md says of metrics.

The programs are Debian's, unpacked into the tests' cache and not installed: a service would start. A server scrapes each
second, listens on a free port of 127.0.0.1 (in the network namespace that it is started in), keeps its data in the test's
folder, and ends with the process that started it. Nobody sleeps here for a sample: whoever waits has a condition.
"""

import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/cluster"))  # behind the user's own folder: each has a module `rig`

import processes  # noqa: E402  (its folder is on the path only now)
from cluster import BIN  # noqa: E402

BUILD = ROOT / "tests/cluster/build"
DOC = ROOT / "docs/metrics.md"
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
DEADLINE_S = 300
OFFLINE = 77  # an exit code


class Offline(Exception):
    """The programs can't be fetched, for there is no network."""


def install():
    """Puts Prometheus and promtool into the cache where they are not there yet."""
    done = subprocess.run([str(BUILD), "--prometheus"], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise (Offline if done.returncode == OFFLINE else RuntimeError)(f"no Prometheus: {done.stderr.strip()[-1000:]}")


def complaints(page):
    """What `promtool check metrics` has against a page of the older format; "" is nothing."""
    done = subprocess.run([str(BIN / "promtool"), "check", "metrics"], input=page, capture_output=True, text=True, timeout=60, check=False)
    said = (done.stdout + done.stderr).strip()
    return said or (f"exit {done.returncode}" if done.returncode else "")


def families(page):
    """Of a page in OpenMetrics: {name as in queries: (kind, names of its labels)}."""
    assert page.endswith("\n# EOF\n"), page[-200:]
    kinds, found = {}, {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, f"{name} is there twice"
            kinds[name] = kind
            name += {"counter": "_total", "info": "_info"}.get(kind, "")
            found[name] = (kind, ())
        elif not line.startswith("#"):
            assert line.startswith(name), f"{line} is among those of {name}"
            labels = tuple(re.findall(r'(?:\{|",)([a-z_]+)="', line))
            found[name] = (kind, tuple(label for label in labels if label != "le"))
    return found


def documented(section):
    """The same of docs/metrics.md, of the table under this heading."""
    found = {}
    text = DOC.read_text(encoding="utf-8").partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")]
        if len(cells) > 3 and cells[1].startswith("`"):
            for name, labels in re.findall(r"`([a-z_]+)(?:\{([a-z_,]+)\})?`", cells[1]):
                assert name not in found, f"{name} is told twice"
                found[name] = (cells[2], tuple(labels.split(",")) if labels else ())
    assert found, f"no table under {section}"
    return found


def questions():
    """The queries of docs/metrics.md, in order."""
    blocks = re.findall(r"```promql\n(.*?)```", DOC.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line]


class Prometheus:
    """A server under way. scrapes: scrape_configs as dictionaries; enter: the beginning of a command line that runs elsewhere."""

    def __init__(self, folder, scrapes, enter=()):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.enter = list(enter)
        config = self.folder / "prometheus.yml"  # JSON is YAML
        config.write_text(json.dumps({"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": scrapes}))
        checked = subprocess.run([str(BIN / "promtool"), "check", "config", str(config)], capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        self.log = self.folder / "prometheus.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*self.enter, str(BIN / "prometheus"), f"--config.file={config}", f"--storage.tsdb.path={self.folder}/data",
                 "--web.listen-address=127.0.0.1:0"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=processes.die_with_parent)
        self.address = self.until(self._address, "its address")

    def _address(self):
        assert self.process.poll() is None, self.tail()
        text = self.log.read_text(encoding="utf-8", errors="replace")
        found = re.search(r'msg="Listening on" address=(\S+)', text)
        return found and "Server is ready" in text and found.group(1)

    def tail(self):
        return self.log.read_text(encoding="utf-8", errors="replace")[-3000:]

    def get(self, path, **parameters):
        url = f"http://{self.address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        if self.enter:
            text = subprocess.run([*self.enter, "curl", "-s", "-m", "30", url], capture_output=True, text=True, check=True).stdout
        else:
            try:
                with urllib.request.urlopen(url, timeout=30) as answer:
                    text = answer.read().decode()
            except urllib.error.HTTPError as error:
                text = error.read().decode()
        answer = json.loads(text)
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression):
        """[(labels, value)] of now."""
        found = self.get("query", query=expression)
        assert found["resultType"] == "vector", found
        return [(series["metric"], float(series["value"][1])) for series in found["result"]]

    def until(self, condition, what):
        """Waits until condition() gives something true, and returns that."""
        try:
            return processes.until(condition, what, DEADLINE_S)
        except TimeoutError as late:
            raise AssertionError(f"{late}\n{self.tail()}") from late

    def until_one(self, expression, condition=lambda value: True):
        """Waits until the query has one sample of which the condition holds; returns its value."""
        def holds():
            found = self.query(expression)
            return found if len(found) == 1 and condition(found[0][1]) else None
        return self.until(holds, expression)[0][1]

    def targets(self):
        """Those that are scraped, as Prometheus tells of them."""
        return self.get("targets", state="active")["activeTargets"]

    def until_targets(self, count):
        """Waits until so many are scraped well, and no other is there."""
        def well():
            found = self.targets()
            return found if len(found) == count and all(target["health"] == "up" for target in found) else None
        try:
            return self.until(well, f"{count} targets")
        except AssertionError as late:
            raise AssertionError(f"{late}\n{[(t['scrapeUrl'], t['health'], t['lastError']) for t in self.targets()]}") from None

    def kinds(self):
        """{family: kind} as it was scraped: those of OpenMetrics where that was spoken."""
        return {name: entries[0]["type"] for name, entries in self.get("metadata").items()}

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
