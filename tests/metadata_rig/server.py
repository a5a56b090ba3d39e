"""A machine's metadata server as the three clouds have it, for tests: their paths, headers, tokens, statuses and waits,
and faults by script. It listens on an address of the test's own."""

import http.server
import json
import secrets
import socket
import threading
import time
from email.utils import formatdate
from urllib.parse import parse_qs, urlsplit

LINK_LOCAL = "169.254.169.254"
TOKEN_HOPS = 1  # AWS's own: who is behind a router of the machine gets no token. All that follows on that connection goes no further either


# What stands there from the beginning.
PAGES = {"aws": {"instance-type": "p3.2xlarge", "placement/availability-zone": "us-east-1a"},
         "gce": {"preempted": "FALSE", "maintenance-event": "NONE", "machine-type": "projects/4520/machineTypes/n1-standard-8", "zone": "projects/4520/zones/us-central1-a"},
         "azure": {"vmSize": "Standard_NC6s_v3", "zone": "1"}}


def somebody_answers(address=LINK_LOCAL, port=80, within=1.0):
    """Whether a server is there already: no rig is to be set up over it."""
    try:
        with socket.create_connection((address, port), timeout=within):
            return True
    except OSError:
        return False


class Metadata:
    """cloud: "aws", "gce" or "azure". What stands there is in `pages` (of Azure: of its machine); `faults` are (path part, function of the handler) that
    go before all else while they are there. `asked` are the (method, path) that came. Of Azure: `started` are the events that somebody had begin, each
    time that it was said; `starting` is called with an event's name before it is answered; its first answer about events takes `switched_on_in`
    seconds, up to two minutes by Azure's own word, as that is what switches its service on."""

    def __init__(self, cloud, address="127.0.0.1", port=0, clock=time.time, switched_on_in=0):
        if port and somebody_answers(address, port):
            raise RuntimeError(f"somebody answers on {address} already, perhaps as this machine has metadata of its own: no test may stand in its way")
        self.cloud, self.clock = cloud, clock
        self.tokens, self.asked, self.faults = set(), [], []
        self.news = threading.Condition()
        self.pages = dict(PAGES[cloud])
        self.etags = {name: secrets.token_hex(8) for name in self.pages}
        self.incarnation, self.events, self.name = 1, [], "gpu_3"
        self.started, self.starting = [], lambda ident: None
        self.switched_on_in = switched_on_in
        self.stopping = False
        rig = self

        class Handler(_Handler):
            metadata = rig
        self.server = http.server.ThreadingHTTPServer((address, port), Handler)
        self.server.daemon_threads = True
        self.url = f"http://{address}:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with self.news:
            self.stopping = True
            self.news.notify_all()
        self.server.shutdown()
        self.server.server_close()

    def put(self, name, value):
        """A page of AWS or GCE from now on; None: it is gone."""
        with self.news:
            if value is None:
                self.pages.pop(name, None)
            else:
                self.pages[name] = value
            self.etags[name] = secrets.token_hex(8)
            self.news.notify_all()

    def tell(self, *events):
        """Azure's scheduled events from now on."""
        with self.news:
            self.events, self.incarnation = list(events), self.incarnation + 1
            self.news.notify_all()

    def start(self, idents):
        """What Azure does when it is told that events may begin; False: there is none such."""
        with self.news:
            known = {e["EventId"]: e for e in self.events}
            if not idents or any(ident not in known for ident in idents):
                return False
            for ident in idents:
                self.started.append(ident)
                if known[ident]["EventStatus"] == "Scheduled":
                    known[ident].update(EventStatus="Started", NotBefore="")
            self.incarnation += 1
            self.news.notify_all()
            return True

    def forget_tokens(self):
        self.tokens.clear()

    def reclaim(self, seconds=120):
        """As each cloud says that the machine goes; seconds are GCE's own there."""
        at = self.clock() + seconds
        if self.cloud == "aws":
            self.put("spot/instance-action", json.dumps({"action": "terminate", "time": iso(at)}))
        elif self.cloud == "gce":
            self.put("preempted", "TRUE")
        else:
            self.tell(event(at, [self.name]))

    def spare(self):
        """It takes back what reclaim() said."""
        if self.cloud == "aws":
            self.put("spot/instance-action", None)
        elif self.cloud == "gce":
            self.put("preempted", "FALSE")
        else:
            self.tell()

    def until_asked(self, part, times=1, within=30):
        """Waits until so many questions of which the path holds that part have come since now."""
        with self.news:
            before = sum(part in path for _, path in self.asked)
            assert self.news.wait_for(lambda: sum(part in path for _, path in self.asked) >= before + times, within), self.asked[-20:]


def iso(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def event(at, names, kind="Preempt", status="Scheduled", ident="E-1"):
    return {"EventId": ident, "EventType": kind, "ResourceType": "VirtualMachine", "Resources": names, "EventStatus": status,
            "NotBefore": formatdate(at, usegmt=True) if at else "", "EventSource": "Platform", "DurationInSeconds": -1}


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else an answer's body waits for its head's acknowledgement, which Linux may hold back for 40 ms
    metadata = None

    def log_message(self, *_):
        pass

    def date_time_string(self, timestamp=None):
        return formatdate(self.metadata.clock() if timestamp is None else timestamp, usegmt=True)

    def say(self, status, body="", **headers):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        try:
            self.end_headers()
            self.wfile.write(body)
        except ConnectionError:  # who waited has gone
            self.close_connection = True

    def handle_one(self):
        m = self.metadata
        with m.news:
            m.asked.append((self.command, self.path))
            m.news.notify_all()
        for part, act in list(m.faults):
            if part in self.path:
                act(self)
                return
        getattr(self, m.cloud)(urlsplit(self.path))

    do_GET = do_PUT = do_POST = handle_one

    def aws(self, url):
        m = self.metadata
        if url.path == "/latest/api/token":
            if self.command != "PUT":
                self.say(405)
            elif not 0 < int(self.headers.get("X-aws-ec2-metadata-token-ttl-seconds", 0)) <= 21600:
                self.say(400)
            else:
                token = secrets.token_urlsafe(40)
                m.tokens.add(token)
                self.connection.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, TOKEN_HOPS)
                self.say(200, token)
            return
        if self.headers.get("X-aws-ec2-metadata-token") not in m.tokens:
            self.say(401)
            return
        page = m.pages.get(url.path.replace("/latest/meta-data/", ""))
        self.say(404 if page is None else 200, page or "")

    def gce(self, url):
        m = self.metadata
        if self.headers.get("Metadata-Flavor") != "Google":
            self.say(403)
            return
        if self.command != "GET":
            self.say(405, Metadata_Flavor="Google")
            return
        name = url.path.replace("/computeMetadata/v1/instance/", "")
        if name == "id":
            self.say(200, "4520031799277581759", Metadata_Flavor="Google", ETag="0")
            return
        if name not in m.pages:
            self.say(404, Metadata_Flavor="Google")
            return
        query = parse_qs(url.query)
        if query.get("wait_for_change") == ["true"]:
            last = query.get("last_etag", [""])[0]
            with m.news:
                m.news.wait_for(lambda: m.stopping or m.etags[name] != last, float(query.get("timeout_sec", ["60"])[0]))
        self.say(200, m.pages[name], Metadata_Flavor="Google", ETag=m.etags[name])

    def azure(self, url):
        m = self.metadata
        if self.headers.get("Metadata") != "true" or "api-version" not in url.query:
            self.say(400, json.dumps({"error": "Bad request. Required metadata header not specified"}))
        elif self.command == "POST" and url.path == "/metadata/scheduledevents":
            self.start_events()
        elif self.command != "GET":
            self.say(405)
        elif url.path == "/metadata/instance/compute/name":
            self.say(200, m.name)
        elif url.path.startswith("/metadata/instance/compute/") and url.path.rpartition("/")[2] in m.pages:
            self.say(200, m.pages[url.path.rpartition("/")[2]])
        elif url.path == "/metadata/scheduledevents":
            self.switch_on()
            self.say(200, json.dumps({"DocumentIncarnation": m.incarnation, "Events": m.events}))
        else:
            self.say(404)

    def switch_on(self):
        """Only the first one waits: who asks meanwhile, too, would be answered at once."""
        m = self.metadata
        with m.news:
            seconds, m.switched_on_in = m.switched_on_in, 0
            m.news.wait_for(lambda: m.stopping, seconds)

    def start_events(self):
        """{"StartRequests": [{"EventId": "..."}]}, and no word else."""
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            idents = [request["EventId"] for request in body["StartRequests"]]
            whole = body == {"StartRequests": [{"EventId": ident} for ident in idents]}
        except (TypeError, ValueError, KeyError):
            whole, idents = False, []
        for ident in idents:
            self.metadata.starting(ident)
        self.say(*((200, "") if whole and self.metadata.start(idents) else (400, json.dumps({"error": "Bad request. Invalid body"}))))
