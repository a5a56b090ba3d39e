"""A stand-in for Cloud Storage's XML API and the metadata server of a machine or pod that has a Google service account, on 127.0.0.1.

It takes nobody but who brings a token that it gave out and that is not over, and is strict about the words: names of Amazon's kind, a
condition where Google takes none, or one that it would pass over, are refused or told in `wrongs`. What it knows of that is from Google's
own pages (cloud.google.com/storage/docs/xml-api, .../request-preconditions, .../migrating; kubernetes-engine/docs/concepts/workload-identity).
Objects are in memory. `lifetime` is how long tokens are valid; `outlives` may say of a request that its answer comes when its token is over.
"""

import base64
import hashlib
import http.server
import json
import secrets
import threading
import time
import urllib.parse
from email.utils import formatdate
from xml.sax.saxutils import escape

TOKEN_PATH = "/computeMetadata/v1/instance/service-accounts/default/token"
PAGE = 1000  # keys of one answer
CRC32C = [0] * 256
for _byte in range(256):
    _crc = _byte
    for _ in range(8):
        _crc = _crc >> 1 ^ (0x82F63B78 if _crc & 1 else 0)
    CRC32C[_byte] = _crc


def crc32c(body):
    crc = 0xFFFFFFFF
    for byte in body:
        crc = CRC32C[(crc ^ byte) & 0xFF] ^ crc >> 8
    return base64.b64encode((crc ^ 0xFFFFFFFF).to_bytes(4, "big")).decode()


class Refused(Exception):
    def __init__(self, status, code, why=""):
        super().__init__(code)
        self.status, self.code, self.why = status, code, why


class Object:
    def __init__(self, body, tag):
        self.body, self.tag, self.made = body, tag, time.time()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    google = None

    def log_message(self, *_):
        pass

    def say(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(headers.pop("length", len(body))))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Metadata(Handler):
    def do_GET(self):
        status, body = self.google.token(self.path, self.headers.get("Metadata-Flavor"))
        self.say(status, body.encode(), Metadata_Flavor="Google", Content_Type="application/json")


class Door(Handler):
    def answer(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        _, bucket, key = (urllib.parse.unquote(path) + "/").split("/", 2)
        key = key.removesuffix("/")
        words = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
        try:
            self.google.check(self.command, bucket, key, words, self.headers)
            status, body, headers = self.google.serve(self.command, key, words, self.headers, body)
        except Refused as no:
            text = f"<?xml version='1.0'?><Error><Code>{no.code}</Code><Message>{escape(no.why)}</Message></Error>"
            status, body, headers = no.status, text.encode(), {}
        self.say(status, body, x_guploader_uploadid=secrets.token_hex(8), **headers)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = answer


def listen(handler, google):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Of" + handler.__name__, (handler,), {"google": google}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


class Google:
    bucket = "checkpoints"

    def __init__(self, lifetime=3600):
        self.lifetime, self.outlives = lifetime, lambda method, key: False
        self.grants = True      # whether the account may use the bucket
        self.metadata_says = 0  # a status instead of a token
        self.objects, self.uploads, self.lock = {}, {}, threading.RLock()
        self.ends = {}          # of each token that was given out
        self.came = {}          # requests with each token that were taken
        self.denied, self.wrongs = 0, []
        self.door, self.metadata = listen(Door, self), listen(Metadata, self)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.door.server_port}"

    @property
    def environment(self):
        """Of a client that has this store and this account, and nothing else. In clear it has to be named."""
        return {"AWS_ENDPOINT_URL_S3": self.endpoint, "RINGMASTER_GOOGLE_ENDPOINT": self.endpoint, "AWS_REGION": "auto",
                "GCE_METADATA_HOST": f"127.0.0.1:{self.metadata.server_port}", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}

    def stop(self):
        for server in (self.door, self.metadata):
            server.shutdown()
            server.server_close()

    # --- who it is ---

    def token(self, path, flavor):
        if flavor != "Google":
            return 403, "missing Metadata-Flavor"
        if self.metadata_says or path != TOKEN_PATH:
            return self.metadata_says or 404, "not found"
        token = "ya29.c." + secrets.token_urlsafe(60) + "...."
        with self.lock:
            self.ends[token] = time.time() + self.lifetime
        return 200, json.dumps({"access_token": token, "expires_in": self.lifetime, "token_type": "Bearer"})

    def revoke(self):
        """No token that was given out so far is any longer."""
        with self.lock:
            self.ends = {token: 0 for token in self.ends}

    def check(self, method, bucket, key, words, headers):
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or time.time() > self.ends.get(token, 0):
            with self.lock:
                self.denied += 1
            raise Refused(401, "AuthenticationRequired", "Authentication required.")
        if self.outlives(method, key):
            threading.Event().wait(max(0, self.ends[token] - time.time()) + 0.01)
        with self.lock:
            self.came[token] = self.came.get(token, 0) + 1
        if bucket != self.bucket:
            raise Refused(404, "NoSuchBucket")
        if not self.grants:
            raise Refused(403, "AccessDenied", "the account does not have storage.objects access")
        for name in headers:
            if name.lower().startswith("x-amz-"):
                self.wrong(400, "ExcessHeaderValues", f"{method} {key}: {name}")
        if method in ("PUT", "POST") and headers.get("If-None-Match"):
            self.wrong(400, "InvalidArgument", f"{method} {key}: If-None-Match is passed over where something is written")
        if "uploadId" in words and headers.get("x-goog-if-generation-match"):
            self.wrong(400, "NotImplemented", f"{method} {key}: a condition in an upload")

    def wrong(self, status, code, why):
        with self.lock:
            self.wrongs.append(why)
        raise Refused(status, code, why)

    # --- what it does ---

    def serve(self, method, key, words, headers, body):
        """(status, body, headers) of a request that may be."""
        with self.lock:
            if not key:
                return (200, (self.list_uploads(words) if "uploads" in words else self.list_objects(words)).encode(), {})
            if "uploadId" in words:
                return self.upload(method, key, words, headers, body)
            if method == "POST":
                ident = secrets.token_urlsafe(20)
                self.uploads[ident] = (key, {})
                return 200, f"<InitiateMultipartUploadResult><UploadId>{ident}</UploadId></InitiateMultipartUploadResult>".encode(), {}
            if method == "PUT":
                return self.put(key, headers, body)
            found = self.objects.get(key)
            if not found:
                raise Refused(404, "NoSuchKey")
            if method == "DELETE":
                del self.objects[key]
                return 204, b"", {}
            return self.read(found, headers)

    def sum_of(self, headers, body):
        """A part or an object has to have come as it was sent."""
        told = headers.get("x-goog-hash", "")
        if not told.startswith("crc32c="):
            self.wrong(400, "InvalidArgument", "bytes without a checksum, in clear")
        if told.removeprefix("crc32c=") != crc32c(body):
            raise Refused(400, "BadDigest")
        return told

    def put(self, key, headers, body):
        told = self.sum_of(headers, body)
        condition = headers.get("x-goog-if-generation-match")
        if condition == "0" and key in self.objects:
            raise Refused(412, "PreconditionFailed")
        self.objects[key] = Object(body, f'"{hashlib.md5(body).hexdigest()}"')
        return 200, b"", {"ETag": self.objects[key].tag, "x_goog_hash": told}

    @staticmethod
    def read(found, headers):
        if headers.get("If-Match", found.tag) != found.tag:
            raise Refused(412, "PreconditionFailed")
        said = {"ETag": found.tag, "Last_Modified": formatdate(found.made, usegmt=True)}
        if not headers.get("Range"):
            return 200, found.body, said
        first, last = map(int, headers["Range"].removeprefix("bytes=").split("-"))
        if first >= len(found.body):
            raise Refused(416, "InvalidRange")
        body = found.body[first:last + 1]
        return 206, body, {**said, "Content_Range": f"bytes {first}-{first + len(body) - 1}/{len(found.body)}"}

    def upload(self, method, key, words, headers, body):
        name, parts = self.uploads.get(words["uploadId"], (None, None))
        if name != key:
            raise Refused(404, "NoSuchUpload")
        if method == "PUT":
            told = self.sum_of(headers, body)
            tag = f'"{hashlib.md5(body).hexdigest()}"'
            parts[int(words["partNumber"])] = (body, tag)
            return 200, b"", {"ETag": tag, "x_goog_hash": told}
        if method == "GET":
            rows = "".join(f"<Part><PartNumber>{number}</PartNumber><ETag>{escape(tag)}</ETag><Size>{len(part)}</Size></Part>"
                           for number, (part, tag) in sorted(parts.items()))
            return 200, f"<ListPartsResult>{rows}<IsTruncated>false</IsTruncated></ListPartsResult>".encode(), {}
        del self.uploads[words["uploadId"]]
        if method == "DELETE":
            return 204, b"", {}
        # Google's tag of a whole is no MD5 of anything, and does not tell the number of its parts.
        self.objects[key] = Object(b"".join(part for _, (part, _) in sorted(parts.items())), f'"-{secrets.token_urlsafe(9)}="')
        return 200, f"<CompleteMultipartUploadResult><ETag>{self.objects[key].tag}</ETag></CompleteMultipartUploadResult>".encode(), {}

    def list_objects(self, words):
        prefix, after = words.get("prefix", ""), words.get("continuation-token", "")
        rows, more, last = [], "", ""
        for key in sorted(self.objects):
            tail = key.removeprefix(prefix)
            if not key.startswith(prefix) or (after and key <= after):
                continue
            folder = prefix + tail.partition("/")[0] + "/" if words.get("delimiter") and "/" in tail else ""
            row = f"<CommonPrefixes><Prefix>{urllib.parse.quote(folder)}</Prefix></CommonPrefixes>" if folder else self.row_of(key)
            if len(rows) == PAGE:
                more = f"<NextContinuationToken>{escape(last)}</NextContinuationToken>"
                break
            last = key
            if row not in rows:
                rows.append(row)
        return (f"<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>{str(bool(more)).lower()}</IsTruncated>{more}"
                f"{''.join(rows)}</ListBucketResult>")

    def row_of(self, key):
        found = self.objects[key]
        when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(found.made))
        return (f"<Contents><Key>{urllib.parse.quote(key)}</Key><LastModified>{when}</LastModified><ETag>{escape(found.tag)}</ETag>"
                f"<Size>{len(found.body)}</Size></Contents>")

    def list_uploads(self, words):
        rows = "".join(f"<Upload><Key>{urllib.parse.quote(key)}</Key><UploadId>{ident}</UploadId></Upload>"
                       for ident, (key, _) in sorted(self.uploads.items(), key=lambda each: each[1][0]) if key.startswith(words.get("prefix", "")))
        return f"<ListMultipartUploadsResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>{rows}</ListMultipartUploadsResult>"
