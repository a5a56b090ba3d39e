"""Numbers that go wrong, and strangers at the door."""

import base64
import os
import socket

import pytest

import rig


def test_numbers_that_are_not_finite_stop_the_job_with_the_place_named(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2, trainer__optimizer__learningRate="1e30",
                              trainer__optimizer__warmupSteps=0))
    assert run.code == 5, run.tail()
    failed = run.the("failed")
    assert failed["exitCode"] == 5
    for word in ("step", "lane"):
        assert word in run.stderr, run.stderr
    assert run.of("checkpointSaved"), "the last finite state is saved"
    assert run.of("checkpointSaved")[-1]["step"] == run.of("step")[-1]["step"]
    assert not run.left_over()


def websocket_upgrade(host, port):
    """A WebSocket connection as anybody can open it; returns the socket after the server's 101."""
    connection = socket.create_connection((host, port), timeout=20)
    key = base64.b64encode(os.urandom(16)).decode()
    connection.sendall((f"GET / HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                        f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n"
                        "Sec-WebSocket-Protocol: ringmaster\r\n\r\n").encode())
    return connection


def websocket_text(payload):
    """One masked text frame; the mask is zero, which leaves the payload as it is."""
    size = len(payload)
    head = bytes([0x81, 0x80 | size]) if size < 126 else bytes([0x81, 0x80 | 126]) + size.to_bytes(2, "big")
    return head + b"\0\0\0\0" + payload


def send_rubbish(host, port):
    connection = socket.create_connection((host, port), timeout=20)
    connection.sendall(bytes(range(256)) * 64)
    return connection


def connect_and_say_nothing(host, port):
    return socket.create_connection((host, port), timeout=20)


def send_a_huge_length(host, port):
    connection = socket.create_connection((host, port), timeout=20)
    connection.sendall(b"\xff" * 64)
    return connection


def send_a_hello_with_a_wrong_proof(host, port):
    connection = websocket_upgrade(host, port)
    connection.sendall(websocket_text(
        b'{"type":"hello","protocol":1,"job":"tiny","worker":1,"attempt":99,"incarnation":"0000000000000001",'
        b'"nonce":"' + b"0" * 64 + b'","proof":"' + b"0" * 64 + b'","fingerprint":"x","address":"127.0.0.1:1",'
        b'"agentPid":1,"phase":"idle"}'))
    return connection


def send_broken_json(host, port):
    connection = websocket_upgrade(host, port)
    connection.sendall(websocket_text(b'{"type":"hello",') + websocket_text(b"[" * 1000))
    return connection


@pytest.mark.parametrize("visit", [send_rubbish, connect_and_say_nothing, send_a_huge_length,
                                   send_a_hello_with_a_wrong_proof, send_broken_json])
@pytest.mark.sanitized
def test_a_stranger_at_the_coordinators_port_does_no_harm(tmp_path, launch, reference, visit):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=300), "--drill", "trainer:1@200")
    address = run.read_until("started")["address"]
    host, port = address.rsplit(":", 1)
    run.read_until("step", step=5)
    open_ones = [visit(host, int(port)) for _ in range(5)]
    run.wait()
    complete = rig.check_complete(run, last=300)
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]
    assert [e["worker"] for e in run.of("workerLost")] == [1], run.tail()  # the drill, and nobody else
    for connection in open_ones:
        connection.close()


@pytest.mark.parametrize("visit", [send_rubbish, connect_and_say_nothing, send_a_huge_length])
@pytest.mark.sanitized
def test_a_stranger_at_a_trainers_port_does_no_harm(tmp_path, launch, reference, visit):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=300), "--drill", "kill:0@200")
    ring = run.read_until("ringFormed")
    run.read_until("step", step=5)
    open_ones = []
    for member in ring["members"]:
        ports = rig.listening_ports(member["trainerPid"])
        assert len(ports) == 1, f"trainer of worker {member['worker']} listens on {ports}"
        open_ones += [visit("127.0.0.1", ports[0]) for _ in range(5)]
    run.wait()
    complete = rig.check_complete(run, last=300)
    assert complete["weightsSha256"] == reference(trainer__steps=300)[0]
    assert run.the("workerLost")["worker"] == 0, run.tail()
    for connection in open_ones:
        connection.close()


def test_everything_listens_on_this_machine_only(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000))
    run.read_until("step", step=2)
    outside = []
    for pid in run.left_over():
        for table in ("tcp", "tcp6"):
            with open(f"/proc/{pid}/net/{table}", encoding="ascii") as lines:
                local = [line.split()[1] for line in list(lines)[1:] if line.split()[3] == "0A"]
            ports = set(rig.listening_ports(pid))
            outside += [a for a in local if int(a.split(":")[1], 16) in ports and not a.startswith("0100007F")]
    assert not outside, f"listens on {outside}"


def test_the_key_and_the_working_files_are_gone_afterwards(tmp_path, finish):
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    run = finish(rig.make_job(tmp_path), env={"TMPDIR": str(scratch)})
    rig.check_complete(run)
    assert list(scratch.iterdir()) == []
