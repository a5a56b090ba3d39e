"""What the other tests take for granted of the object stores they run against, held by requests made by hand."""

import copy
import datetime

import pytest

from s3_rig import client

PART = 5 << 20


@pytest.fixture(name="server", params=["s3_server", "moto_server"])
def each_server(request):
    return request.getfixturevalue(request.param)


def code(answer):
    return (client.texts(answer[2], "Code") or [None])[0]


def altered(server, **fields):
    other = copy.copy(server)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def test_a_wrong_signature_is_refused(s3_server):
    old = client.now() - datetime.timedelta(minutes=20)
    assert code(client.request(altered(s3_server, secret="wrong"), "PUT", "x")) == "SignatureDoesNotMatch"
    assert code(client.request(altered(s3_server, access="AKNOBODY"), "PUT", "x")) == "InvalidAccessKeyId"
    assert code(client.request(s3_server, "PUT", "x", region="us-west-2")) == "AuthorizationHeaderMalformed"
    assert code(client.request(s3_server, "PUT", "x", moment=old)) == "RequestTimeTooSkewed"
    assert code(client.request(s3_server, "PUT", "x", headers={"x-amz-security-token": "t"})) == "InvalidToken"
    assert "x" not in client.names(s3_server)


def test_bytes_that_do_not_fit_their_checksum_are_refused(s3_server):
    answer = client.request(s3_server, "PUT", "sum", body=b"hello", headers={"x-amz-checksum-crc32c": "AAAAAA=="})
    assert code(answer) == "BadDigest"
    client.put(s3_server, "sum", b"hello", **{"x-amz-checksum-crc32c": "mnG7TA=="})
    assert client.get(s3_server, "sum") == b"hello"


def test_a_conditional_put_wins_once(server):
    only = {"If-None-Match": "*"}
    client.put(server, "once", b"first", **only)
    status, _, _ = answer = client.request(server, "PUT", "once", body=b"second", headers=only)
    assert (status, code(answer)) == (412, "PreconditionFailed")
    assert client.get(server, "once") == b"first"


def test_a_range_is_those_bytes_of_that_content_only(server):
    headers, _ = client.put(server, "range", b"0123456789")
    tag = {k.lower(): v for k, v in headers.items()}["etag"]
    status, _, body = client.request(server, "GET", "range", headers={"Range": "bytes=2-5", "If-Match": tag})
    assert (status, body) == (206, b"2345")
    assert client.request(server, "GET", "range", headers={"Range": "bytes=2-5", "If-Match": '"other"'})[0] == 412
    assert client.request(server, "GET", "range", headers={"Range": "bytes=10-"})[0] == 416


def test_a_listing_comes_in_pages_and_in_byte_order(server):
    keys = sorted([f"list/{i:04d}" for i in range(1005)] + ["list/A", "list/a", "list/Z-", "list/Z/1", "list/\u00fc+ =&%"],
                  key=str.encode)
    for key in keys:
        client.put(server, key, b"")
    assert client.names(server, "list/") == keys


def upload(server, key, parts):
    """Opens an upload and sends the parts; returns its id and the body that completes it."""
    _, body = client.ok(client.request(server, "POST", key, query={"uploads": ""}))
    (upload_id,) = client.texts(body, "UploadId")
    rows = ""
    for number, content in parts.items():
        headers, _ = client.ok(client.request(server, "PUT", key, body=content,
                                              query={"partNumber": str(number), "uploadId": upload_id}))
        tag = {k.lower(): v for k, v in headers.items()}["etag"]
        rows += f"<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>"
    return upload_id, f"<CompleteMultipartUpload>{rows}</CompleteMultipartUpload>".encode()


def test_an_upload_in_parts_is_seen_when_it_is_complete_and_wins_once(server):
    parts = {3: b"a" * PART, 3001: b"b" * PART, 9000: b"c"}
    first, first_body = upload(server, "parts", parts)
    late, late_body = upload(server, "parts", {1: b"late"})
    assert client.request(server, "GET", "parts")[0] == 404
    only = {"If-None-Match": "*"}
    client.ok(client.request(server, "POST", "parts", query={"uploadId": first}, body=first_body, headers=only))
    answer = client.request(server, "POST", "parts", query={"uploadId": late}, body=late_body, headers=only)
    assert (answer[0], code(answer)) == (412, "PreconditionFailed")
    assert ("parts", late) in client.uploads(server)
    assert client.get(server, "parts") == b"".join(parts.values())
    client.ok(client.request(server, "DELETE", "parts", query={"uploadId": late}))
    assert "parts" not in [key for key, _ in client.uploads(server)], "the server is shared: others may be under way"
