"""External metrics from Prometheus by prometheus-adapter's own configuration, for tests: as much of that program as an HPA meets.

    adapter.py FILE        serves what the JSON file describes (`Settings`) until it is killed

It speaks external.metrics.k8s.io/v1beta1 behind the API server, which it knows by the certificate of the front proxy, as every
aggregated API does. What a rule means is as prometheus-adapter 0.12 has it: `<<.Series>>` and `<<.LabelMatchers>>` of a query, matchers of the
selector and then of the namespace, whose label `overrides` name; numbers to a thousandth; no sample is an empty list. Of the rest of
its configuration (patterns of names, other templates) a rule that has it is refused. Each answer is a line of JSON in a log.
"""

import dataclasses
import http.server
import json
import re
import ssl
import sys
import threading
import time
import urllib.parse
import urllib.request
from pathlib import Path

GROUP = "external.metrics.k8s.io"
PREFIX = f"/apis/{GROUP}/v1beta1"


@dataclasses.dataclass
class Settings:
    """Where it listens, by which certificate, whom it asks, by which rules."""

    address: str
    port: int
    pki: str         # folder with adapter.crt, adapter.key, front-proxy-ca.crt
    prometheus: str  # HOST:PORT
    rules: list      # externalRules
    log: str


@dataclasses.dataclass
class Rule:
    series: str
    query: str
    namespace: str  # the label that has it

    @classmethod
    def read(cls, rule):
        series = re.fullmatch(r'\{__name__="([a-z_]+)"\}', rule["seriesQuery"])
        (namespace, of), = rule["resources"]["overrides"].items()
        assert series and of == {"resource": "namespace"} and rule.keys() == {"seriesQuery", "resources", "metricsQuery"}, rule
        return cls(series[1], rule["metricsQuery"], namespace)

    def expression(self, namespace, selector):
        """selector: NAME=VALUE,... as a labelSelector comes."""
        pairs = [pair.partition("=")[::2] for pair in selector.split(",") if pair] + [(self.namespace, namespace)]
        matchers = ",".join(f'{name}="{value}"' for name, value in pairs)
        text = self.query.replace("<<.Series>>", self.series).replace("<<.LabelMatchers>>", matchers)
        assert "<<" not in text, text
        return text


def quantity(number):
    thousandths = int(number * 1000)
    return f"{thousandths}m" if thousandths % 1000 else str(thousandths // 1000)


class Adapter(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    settings, rules, lock = None, {}, threading.Lock()

    def values(self, namespace, metric, selector):
        expression = self.rules[metric].expression(namespace, selector)
        url = f"http://{self.settings.prometheus}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            found = json.loads(answer.read())["data"]["result"]
        items = [{"metricName": metric, "metricLabels": sample["metric"], "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                  "value": quantity(float(sample["value"][1]))} for sample in found]
        self.tell(user=self.headers["X-Remote-User"], query=expression, values=[item["value"] for item in items])
        return {"kind": "ExternalMetricValueList", "apiVersion": f"{GROUP}/v1beta1", "metadata": {}, "items": items}

    def resources(self):
        return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/v1beta1", "resources": [
            {"name": name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList", "verbs": ["get"]} for name in self.rules]}

    def tell(self, **line):
        with self.lock, open(self.settings.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def do_GET(self):
        path, _, query = self.path.partition("?")
        asked = re.fullmatch(f"{PREFIX}/namespaces/([^/]+)/([^/]+)", path)
        if asked and asked[2] in self.rules:
            self.answer(200, self.values(*asked.groups(), dict(urllib.parse.parse_qsl(query)).get("labelSelector", "")))
        elif path == PREFIX:
            self.answer(200, self.resources())
        else:  # also to the newer discovery and to OpenAPI: who asks goes on without
            self.answer(404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404})

    def answer(self, status, said):
        body = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def main():
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=f"{settings.pki}/front-proxy-ca.crt")
    trust.verify_mode = ssl.CERT_REQUIRED
    trust.load_cert_chain(f"{settings.pki}/adapter.crt", f"{settings.pki}/adapter.key")
    Adapter.settings, Adapter.rules = settings, {rule.series: rule for rule in map(Rule.read, settings.rules)}
    server = http.server.ThreadingHTTPServer((settings.address, settings.port), Adapter)
    server.socket = trust.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    server.serve_forever()


if __name__ == "__main__":
    main()
