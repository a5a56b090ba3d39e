"""The smallest S3 client that tests need beside the one under test: signed requests, one at a time.

Signed here by hand, so that a test owes nothing to the code under test and the system's Python is enough.
"""

import datetime
import hashlib
import hmac
import http.client
import ssl
import urllib.parse
import xml.etree.ElementTree as ElementTree

import servers


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def signature(secret, region, date, text):
    key = ("AWS4" + secret).encode()
    for word in (date, region, "s3", "aws4_request"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def signed_headers(server, method, path, query, body, headers, host, region, moment):
    stamp = moment.strftime("%Y%m%dT%H%M%SZ")
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    digest = hashlib.sha256(body).hexdigest()
    every = {**{k.lower(): v for k, v in headers.items()}, "host": host, "x-amz-date": stamp, "x-amz-content-sha256": digest}
    names = ";".join(sorted(every))
    canonical = "\n".join([method, path, query, *(f"{k}:{every[k]}" for k in sorted(every)), "", names, digest])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signed = signature(server.secret, region, stamp[:8], text)
    every["authorization"] = f"AWS4-HMAC-SHA256 Credential={server.access}/{scope}, SignedHeaders={names}, Signature={signed}"
    return every


def request(server, method, key="", query=None, body=b"", headers=None, region=servers.REGION, moment=None,
            bucket=servers.BUCKET):
    """One request on the bucket; returns (status, headers, body)."""
    path = urllib.parse.quote(f"/{bucket}/{key}" if key else f"/{bucket}", safe="/-_.~")
    pairs = sorted((urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~")) for k, v in (query or {}).items())
    text = "&".join(f"{k}={v}" for k, v in pairs)
    host = f"127.0.0.1:{server.port}"
    every = signed_headers(server, method, path, text, body, headers or {}, host, region, moment or now())
    authority = getattr(server, "authority", None)
    connection = http.client.HTTPSConnection(host, timeout=60, context=ssl.create_default_context(cafile=authority)) if authority \
        else http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request(method, path + ("?" + text if text else ""), body=body, headers=every)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def ok(answer):
    status, headers, body = answer
    assert 200 <= status < 300, f"{status} {body[:500]!r}"
    return headers, body


def make_bucket(server, name=servers.BUCKET):
    place = f"<CreateBucketConfiguration><LocationConstraint>{servers.REGION}</LocationConstraint></CreateBucketConfiguration>"
    ok(request(server, "PUT", body=place.encode(), bucket=name))


def put(server, key, body, **headers):
    return ok(request(server, "PUT", key, body=body, headers=headers))


def get(server, key):
    return ok(request(server, "GET", key))[1]


def delete(server, key):
    ok(request(server, "DELETE", key))


def tag(element):
    return element.tag.rsplit("}", 1)[-1]


def texts(body, wanted):
    return [element.text or "" for element in ElementTree.fromstring(body).iter() if tag(element) == wanted]


def names(server, prefix=""):
    """Every key of the bucket below a prefix, in the server's order."""
    found, token = [], None
    while True:
        query = {"list-type": "2", "prefix": prefix, **({"continuation-token": token} if token else {})}
        body = ok(request(server, "GET", query=query))[1]
        found += texts(body, "Key")
        token = (texts(body, "NextContinuationToken") or [None])[0]
        if not token:
            return found


def begin_upload(server, key):
    ok(request(server, "POST", key, {"uploads": ""}))


def uploads(server):
    """(key, id) of the multipart uploads under way."""
    body = ok(request(server, "GET", query={"uploads": ""}))[1]
    return list(zip(texts(body, "Key"), texts(body, "UploadId")))
