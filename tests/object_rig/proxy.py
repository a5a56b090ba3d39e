"""A proxy in front of an object store that does harm: what faults.py says, request by request.

The head of a request goes on as it came, with the Host that the client signed, so that signatures stay valid. It
runs in a thread of its own; `seen` tells what came and what was done to it.
"""

import asyncio
import contextlib
import dataclasses
import datetime
import email.utils
import socket
import struct
import threading

import faults

PIECE = 64 << 10
HEAD_MOST = 64 << 10
DROPS = 40  # a slow body has about so many pauses
SKEW = datetime.timedelta(hours=5)
HELD_MOST = 64 << 20


@dataclasses.dataclass
class Seen:
    """One request as the proxy saw it; status is None where no answer was let through."""

    request: faults.Request
    fault: str = ""
    status: int = None
    up: int = 0
    down: int = 0


class Cut(Exception):
    """The connection to the client ends here, by RST."""


def parse_head(head):
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return first, headers


def error_body(code):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>as the test wants it</Message></Error>'.encode()


def lives_by_the_lie(request):
    """Signed with the wrong time that we told: who believes us is not told off by us."""
    stamp = request.headers.get("x-amz-date", "")
    try:
        said = datetime.datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    except ValueError:
        return False
    return said - datetime.datetime.now(datetime.timezone.utc) > SKEW / 2


def answer(status, body, headers=None, kind="application/xml"):
    lines = {"Content-Type": kind, "Content-Length": str(len(body)), "Date": email.utils.formatdate(usegmt=True), **(headers or {})}
    return f"HTTP/1.1 {status} Told\r\n".encode() + "".join(f"{k}: {v}\r\n" for k, v in lines.items()).encode() + b"\r\n" + body


def refusal(fault):
    """What is answered without asking the server; None where the server is asked."""
    if isinstance(fault, faults.Says):
        return answer(fault.status, error_body(fault.code), fault.headers)
    if fault.kind == "busy":
        return answer(503, error_body("SlowDown"))
    if fault.kind == "broken":
        return answer(500, error_body("InternalError"))
    if fault.kind == "page":
        return answer(502, b"<html><body><h1>Bad Gateway</h1></body></html>", kind="text/html")
    if fault.kind == "skew":
        off = datetime.datetime.now(datetime.timezone.utc) + SKEW
        return answer(403, error_body("RequestTimeTooSkewed"), {"Date": email.utils.format_datetime(off, usegmt=True)})
    if fault.kind == "error-in-200":
        return answer(200, error_body("InternalError"))
    return None


class Exchange:
    """One request and its answer, on a pair of connections."""

    def __init__(self, client, server, seen, fault):
        (self.from_client, self.to_client), (self.from_server, self.to_server) = client, server
        self.seen, self.fault = seen, fault

    def kind(self):
        return getattr(self.fault, "kind", "") or ""

    async def pump(self, reader, writer, length, direction):
        """Passes a body on, harmed where the fault says so."""
        kind, done = self.kind(), 0
        where = int(length * self.fault.at) if self.fault and length else -1
        drop = max(1, length // DROPS) if kind == "slow" else PIECE
        while done < length:
            piece = await reader.read(min(drop, PIECE, length - done))
            if not piece:
                raise Cut
            if kind == f"flip-{direction}" and done <= where < done + len(piece):
                piece = bytearray(piece)
                piece[where - done] ^= 0x20
            if kind == f"cut-{direction}" and where < done + len(piece):
                writer.write(bytes(piece[:where - done]))
                await writer.drain()
                raise Cut
            writer.write(bytes(piece))
            await writer.drain()
            done += len(piece)
            if kind == "slow":
                await asyncio.sleep(self.fault.pause_s)
        return done

    async def swallow(self, length):
        while length > 0:
            piece = await self.from_client.read(min(PIECE, length))
            if not piece:
                raise Cut
            length -= len(piece)

    async def run(self, head):
        """Returns whether the client's connection may go on."""
        request, kind = self.seen.request, self.kind()
        if kind == "reset":
            raise Cut
        if request.headers.get("expect", "").lower() == "100-continue":
            self.to_client.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        told = refusal(self.fault) if self.fault else None
        if told or kind == "silence":
            await self.swallow(request.length)
        if kind == "silence":
            await asyncio.sleep(self.fault.pause_s)
            raise Cut
        if told:
            self.seen.status = int(told.split(b" ", 2)[1])
            self.to_client.write(told if request.method != "HEAD" else told.partition(b"\r\n\r\n")[0] + b"\r\n\r\n")
            await self.to_client.drain()
            return True
        self.to_server.write(head)
        self.seen.up = await self.pump(self.from_client, self.to_server, request.length, "up")
        return await self.give_back()

    async def answer_head(self):
        while True:
            head = await self.from_server.readuntil(b"\r\n\r\n")
            first, headers = parse_head(head)
            status = int(first.split(" ")[1])
            if status != 100:
                return head, status, headers

    async def give_back(self):
        head, status, headers = await self.answer_head()
        length = int(headers.get("content-length", 0))
        if self.seen.request.method == "HEAD" or status in (204, 304):
            length = 0
        body = b""
        if "chunked" in headers.get("transfer-encoding", ""):
            body = await self.chunks()
            head = self.with_length(head, len(body)).replace(b"Transfer-Encoding: chunked\r\n", b"")
            length = len(body)
        kind = self.kind()
        if kind in ("lost-answer", "half-head"):
            await self.from_server.readexactly(min(length - len(body), HELD_MOST))
            self.to_client.write(head[:int(len(head) * self.fault.at)] if kind == "half-head" else b"")
            await self.to_client.drain()
            raise Cut
        if kind == "late-error-in-200":
            head, body, length = b"", answer(200, error_body("InternalError")), 0
        elif kind in ("short", "long") and length:
            return await self.wrong_length(head, body, length)
        self.seen.status = status
        self.to_client.write(head + body)
        self.seen.down = await self.pump(self.from_server, self.to_client, length - len(body) if length else 0, "down")
        await self.to_client.drain()
        return headers.get("connection", "").lower() != "close"

    @staticmethod
    def with_length(head, length):
        lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"content-length:")]
        return b"\r\n".join(lines + [f"Content-Length: {length}".encode(), b"", b""])

    async def wrong_length(self, head, body, length):
        body += await self.from_server.readexactly(length - len(body))
        said = int(length * self.fault.at) if self.kind() == "short" else length + 1 + int(length * self.fault.at)
        self.to_client.write(self.with_length(head, said) + body[:said])
        await self.to_client.drain()
        if self.kind() == "long":
            self.to_client.close()
            return False
        return True

    async def chunks(self):
        body = b""
        while True:
            size = int((await self.from_server.readuntil(b"\r\n")).split(b";")[0], 16)
            body += await self.from_server.readexactly(size)
            await self.from_server.readexactly(2)
            if size == 0:
                return body


class Proxy:
    """In front of a server, doing what a script says; `script` may be changed between runs of a client."""

    def __init__(self, server, script=None):
        self.server, self.script, self.seen, self.tasks = server, script or faults.Quiet(), [], set()
        self.access, self.secret, self.port = server.access, server.secret, 0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.serve, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self):
        return {**self.server.environment, "AWS_ENDPOINT_URL_S3": self.endpoint}

    def serve(self, ready):
        asyncio.set_event_loop(self.loop)
        self.loop.set_exception_handler(lambda *_: None)
        listener = self.loop.run_until_complete(asyncio.start_server(self.client, "127.0.0.1", 0, limit=HEAD_MOST))
        self.port = listener.sockets[0].getsockname()[1]
        ready.set()
        self.loop.run_forever()
        listener.close()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.run_until_complete(asyncio.sleep(0))
        self.loop.close()

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(timeout=10)

    async def client(self, reader, writer):
        server = None
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if server is None:
                    server = await asyncio.open_connection("127.0.0.1", self.server.port, limit=1 << 20)
                first, headers = parse_head(head)
                method, target, _ = first.split(" ")
                request = faults.Request(method, target, int(headers.get("content-length", 0)), headers)
                fault = self.script.fault(request)
                head = getattr(self.script, "rewrite", lambda head: head)(head)
                if getattr(fault, "kind", "") == "skew" and lives_by_the_lie(request):
                    fault = None
                seen = Seen(request, getattr(fault, "kind", "says" if fault else ""))
                self.seen.append(seen)
                if not await Exchange((reader, writer), server, seen, fault).run(head):
                    break
        except Cut:
            self.reset(writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            for end in (writer, server[1] if server else None):
                with contextlib.suppress(Exception):
                    end.close()

    @staticmethod
    def reset(writer):
        raw = writer.get_extra_info("socket")
        with contextlib.suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
