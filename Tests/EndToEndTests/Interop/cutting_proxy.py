"""A proxy that cuts connections."""

import select
import socket
import threading


class CuttingProxy:
    """Passes bytes on, and cuts all connections after the given number; counts the bytes to the server."""

    def __init__(self, port: int, cuts: list[int]):
        self.target, self.cuts = port, sorted(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.moved = self.to_server = self.cut = 0
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with client, socket.create_connection(("127.0.0.1", self.target)) as server:
            open_sides = {client: server, server: client}
            while open_sides:
                for source in select.select(list(open_sides), [], [])[0]:
                    try:
                        data = source.recv(65_536)
                        target = open_sides[source]
                        if not data:
                            target.shutdown(socket.SHUT_WR)
                            del open_sides[source]
                            continue
                        target.sendall(data)
                    except OSError:
                        return
                    self.moved += len(data)
                    self.to_server += len(data) if source is client else 0
                    if self.cuts and self.moved >= self.cuts[0]:
                        self.cuts.pop(0)
                        self.cut += 1
                        return

    def close(self):
        self.listener.close()
