"""A store that takes nobody's keys but those of a role, as IAM roles for service accounts have it: an STS and a door, for tests.

    role_store.py FILE        serves what the JSON file describes (`Settings`) until it is killed

The STS hands out keys for the token of one ServiceAccount: it asks the API server whose token it is, and whether it was made for this
audience (TokenReview). The door takes requests that are signed with such keys, with their session token and before they are old, and passes
them on to versitygw, which knows no session tokens, under that one's own keys. Each answer of both is a line of JSON in a log.
Keys are old at the door before the end that the STS tells: who renews them only then, or not at all, is found out without waiting for that.
"""

import dataclasses
import datetime
import hashlib
import http.client
import http.server
import json
import secrets
import ssl
import sys
import threading
import time
import urllib.parse
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "object_rig"))

import client  # noqa: E402  (its folder is on the path only now)

GRANTED = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{access}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken>{token}</SessionToken><Expiration>{end}</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
STS_REFUSAL = "<ErrorResponse><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>{why}</Message></Error></ErrorResponse>"
DOOR_REFUSAL = "<Error><Code>{code}</Code><Message>this door is for the role alone</Message></Error>"
NOT_PASSED_ON = ("authorization", "connection", "content-length", "expect", "host", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token")
POD_NAME = "authentication.kubernetes.io/pod-name"


@dataclasses.dataclass
class Settings:
    """Who may have the keys, and where all lies."""

    address: str  # where STS and door listen
    sts_port: int
    door_port: int
    server: str   # the API server's address
    pki: str      # folder with ca.crt, admin.crt, admin.key
    role: str
    audience: str
    subject: str  # system:serviceaccount:NAMESPACE:NAME
    told_s: int   # how long keys are valid as the STS tells it
    old_s: int    # how long the door takes them
    store: str    # HOST:PORT of versitygw
    access: str
    secret: str
    log: str


@dataclasses.dataclass
class Session:
    access: str
    secret: str
    token: str
    pod: str
    made: float


class Stand:
    """What both sides share: the sessions, and the log."""

    def __init__(self, settings):
        self.settings, self.sessions, self.lock = settings, {}, threading.Lock()
        self.trust = ssl.create_default_context(cafile=f"{settings.pki}/ca.crt")
        self.trust.load_cert_chain(f"{settings.pki}/admin.crt", f"{settings.pki}/admin.key")

    def tell(self, **line):
        with self.lock, open(self.settings.log, "a", encoding="utf-8") as log:
            log.write(json.dumps(line) + "\n")

    def whose(self, token):
        """What the API server says of a token."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token, "audiences": [self.settings.audience]}}
        connection = http.client.HTTPSConnection(self.settings.server, timeout=30, context=self.trust)
        try:
            connection.request("POST", "/apis/authentication.k8s.io/v1/tokenreviews", json.dumps(review), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())["status"]
        finally:
            connection.close()

    def assume(self, form):
        """(status, body) of AssumeRoleWithWebIdentity."""
        found = self.whose(form.get("WebIdentityToken", ""))
        user = found.get("user", {})
        name, pod = user.get("username", ""), (user.get("extra", {}).get(POD_NAME) or [""])[0]
        asked = (form.get("Action"), form.get("RoleArn"), name)
        granted = asked == ("AssumeRoleWithWebIdentity", self.settings.role, self.settings.subject) and found.get("authenticated") is True
        self.tell(sts=name, pod=pod, granted=granted, why=found.get("error", ""))
        if not granted:
            return 403, STS_REFUSAL.format(why=f"not for {name or 'who has that token'}")
        made = Session("ASIA" + secrets.token_hex(8).upper(), secrets.token_urlsafe(30), secrets.token_urlsafe(60), pod, time.time())
        with self.lock:
            self.sessions[made.access] = made
        end = datetime.datetime.fromtimestamp(made.made + self.settings.told_s, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        return 200, GRANTED.format(access=made.access, secret=made.secret, token=made.token, end=end)

    def judge(self, method, path, query, headers):
        """(session, "") of a request, or (None or its session, the code of the refusal)."""
        try:
            words = dict(word.strip().split("=", 1) for word in headers["authorization"].partition(" ")[2].split(","))
            access, *scope = words["Credential"].split("/")
            names, given = words["SignedHeaders"].split(";"), words["Signature"]
        except (KeyError, ValueError):
            return None, "AccessDenied"
        session = self.sessions.get(access)
        if not session:
            return None, "InvalidAccessKeyId"
        canonical = "\n".join([method, path, "&".join(sorted(filter(None, query.split("&")))),
                               *(f"{name}:{headers.get(name, '')}" for name in names), "", ";".join(names), headers["x-amz-content-sha256"]])
        text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], "/".join(scope), hashlib.sha256(canonical.encode()).hexdigest()])
        if given != client.signature(session.secret, scope[1], scope[0], text):
            return session, "SignatureDoesNotMatch"
        if headers.get("x-amz-security-token") != session.token or "x-amz-security-token" not in names:
            return session, "InvalidToken"
        return session, "ExpiredToken" if self.is_old(session) else ""

    def is_old(self, session):
        return time.time() > session.made + self.settings.old_s

    def first_is_old(self, pod):
        """Whether a pod goes on although the first keys that it was given are old."""
        with self.lock:
            return any(self.is_old(each) for each in self.sessions.values() if each.pod == pod)

    def pass_on(self, method, path, query, headers, body):
        """(status, headers, body) of versitygw."""
        kept = {name: value for name, value in headers.items() if name not in NOT_PASSED_ON}
        signed = client.signed_headers(self.settings, method, path, "&".join(sorted(filter(None, query.split("&")))), body, kept,
                                       self.settings.store, "us-east-1", client.now())
        connection = http.client.HTTPConnection(self.settings.store, timeout=60)
        try:
            connection.request(method, f"{path}?{query}" if query else path, body=body, headers=signed)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class Handler(http.server.BaseHTTPRequestHandler):
    """What both sides have in common; `stand` is set in subclasses."""

    protocol_version = "HTTP/1.1"
    stand = None

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, body, headers=()):
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                self.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length", "0") if self.command == "HEAD" else str(len(body))
        if status not in (204, 304):
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Sts(Handler):
    def do_POST(self):
        status, text = self.stand.assume(dict(urllib.parse.parse_qsl(self.body().decode())))
        self.answer(status, text.encode())


class Door(Handler):
    def serve(self):
        body, (path, _, query) = self.body(), self.path.partition("?")
        headers = {name.lower(): value.strip() for name, value in self.headers.items()}
        session, refused = self.stand.judge(self.command, path, query, headers)
        pod = session.pod if session else ""
        if refused:
            self.stand.tell(door=self.command, pod=pod, refused=refused)
            self.answer(403, DOOR_REFUSAL.format(code=refused).encode())
            return
        status, given, answer = self.stand.pass_on(self.command, path, query, headers, body)
        self.stand.tell(door=self.command, pod=pod, status=status, renewed=self.stand.first_is_old(pod))
        self.answer(status, answer, given)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve


def main():
    settings = Settings(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    stand = Stand(settings)
    for kind, port in ((Sts, settings.sts_port), (Door, settings.door_port)):
        server = http.server.ThreadingHTTPServer((settings.address, port), type(kind.__name__, (kind,), {"stand": stand}))
        threading.Thread(target=server.serve_forever).start()


if __name__ == "__main__":
    main()
