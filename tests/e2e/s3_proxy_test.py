"""The proxy that does harm does the harm that it says, and none that nobody asked for."""

import http.client

import pytest

from s3_rig import client, faults

BODY = bytes(range(256)) * 400
BROKEN_OFF = (ConnectionError, http.client.HTTPException)


def outcome(proxy, method, key, body=b""):
    """(status, body), or None where the connection broke."""
    try:
        status, _, answer = client.request(proxy, method, key, body=body)
        return status, answer
    except BROKEN_OFF:
        return None


def test_a_quiet_proxy_changes_nothing_and_signatures_stay_valid(s3_proxy):
    client.put(s3_proxy, "quiet/a", BODY)
    assert client.get(s3_proxy, "quiet/a") == BODY
    assert client.names(s3_proxy, "quiet/") == ["quiet/a"]


@pytest.mark.parametrize("kind", ["silence", "reset", "cut-down", "long", "lost-answer", "half-head"])
def test_a_cut_is_a_broken_connection(s3_proxy, kind):
    client.put(s3_proxy, f"cut/{kind}", BODY)
    s3_proxy.script = faults.Always(kind, times=1)
    assert outcome(s3_proxy, "GET", f"cut/{kind}") is None
    assert outcome(s3_proxy, "GET", f"cut/{kind}") == (200, BODY)
    assert [seen.fault for seen in s3_proxy.seen] == ["", kind, ""]


@pytest.mark.parametrize("kind,status", [("busy", 503), ("broken", 500), ("page", 502), ("skew", 403)])
def test_a_refused_request_is_not_executed(s3_proxy, kind, status):
    s3_proxy.script = faults.Always(kind)
    assert outcome(s3_proxy, "PUT", f"refused/{kind}", BODY)[0] == status
    assert client.names(s3_proxy.server, f"refused/{kind}") == []


def test_a_lost_answer_is_of_a_request_that_was_executed(s3_proxy):
    s3_proxy.script = faults.Always("lost-answer")
    assert outcome(s3_proxy, "PUT", "lost", BODY) is None
    assert client.get(s3_proxy.server, "lost") == BODY


def test_flipped_bytes_are_found_by_the_server_and_given_to_a_reader(s3_proxy):
    s3_proxy.script = faults.Always("flip-up")
    assert outcome(s3_proxy, "PUT", "flipped", BODY)[0] == 400
    client.put(s3_proxy.server, "flipped", BODY)
    s3_proxy.script = faults.Always("flip-down")
    status, body = outcome(s3_proxy, "GET", "flipped")
    assert status == 200 and len(body) == len(BODY)
    assert sum(a != b for a, b in zip(body, BODY)) == 1


def test_a_short_answer_looks_whole(s3_proxy):
    client.put(s3_proxy, "short", BODY)
    s3_proxy.script = faults.Always("short")
    assert outcome(s3_proxy, "GET", "short") == (200, BODY[:len(BODY) // 2])


def test_a_seed_does_the_same_to_the_same_requests_in_any_order():
    def told(requests):
        script = faults.Seeded(7)
        script.storm_from = None
        found = {}
        for request in requests:
            fault = script.fault(request)
            found.setdefault(request.name, []).append(fault and (fault.kind, fault.at))
        return found

    requests = [faults.Request("GET", f"/checkpoints/{i % 200}?uploadId={i}", 0, {}) for i in range(600)]
    assert told(requests) == told(list(reversed(requests)))
    assert any(fault for list_of in told(requests).values() for fault in list_of)
