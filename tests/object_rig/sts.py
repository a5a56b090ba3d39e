"""A stand-in for STS on 127.0.0.1: gives the keys of a server for one token, in a thread of its own."""

import http.server
import threading
import urllib.parse

ANSWER = """<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
<AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>{access}</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>
<SessionToken>{session}</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"""
REFUSAL = "<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>as the test wants it</Message></Error></ErrorResponse>"


class Sts:
    """`says` is a code with which everybody is refused, "" where whoever brings `token` for `role` gets the server's keys."""

    role = "arn:aws:iam::123456789012:role/trainer"

    def __init__(self, server, token):
        self.server, self.token, self.says, self.asked = server, token, "", []
        stand = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                status, text = stand.answer(form)
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def answer(self, form):
        self.asked.append(form)
        if self.says:
            return 400, REFUSAL.format(code=self.says)
        if (form.get("Action"), form.get("RoleArn"), form.get("WebIdentityToken")) != ("AssumeRoleWithWebIdentity", self.role, self.token):
            return 403, REFUSAL.format(code="AccessDenied")
        return 200, ANSWER.format(access=self.server.access, secret=self.server.secret, session="a-session")

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.http.server_port}"

    def stop(self):
        self.http.shutdown()
        self.http.server_close()
