"""A proxy that lays tunnels (CONNECT) and prints, a line each, its port and then where to: python3 connect_proxy.py"""

import socket
import socketserver
import threading


def pour(source, sink):
    try:
        while some := source.recv(65536):
            sink.sendall(some)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class Tunnel(socketserver.StreamRequestHandler):
    def handle(self):
        verb, target, _ = self.rfile.readline().decode("ascii").split()
        while self.rfile.readline().strip():
            pass
        assert verb == "CONNECT", verb
        print(target, flush=True)
        host, _, port = target.rpartition(":")
        with socket.create_connection((host, int(port))) as server:
            self.connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pour, args=(server, self.connection))
            back.start()
            pour(self.connection, server)
            back.join()


if __name__ == "__main__":
    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Tunnel) as server_of_all:
        print(server_of_all.server_address[1], flush=True)
        server_of_all.serve_forever()
