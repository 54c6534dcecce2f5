"""A mail server that refuses some addresses and keeps the others' mails."""

import socketserver
import threading


class MailServer(socketserver.ThreadingTCPServer):
    """``refused``: what is said to a recipient; ``patience``: refusals after which it ends a connection, as Postfix
    does. ``connections`` counts them; ``got`` holds the recipients of what came, in order.
    """

    allow_reuse_address = daemon_threads = True

    def __init__(self, refused=(), patience=1000) -> None:
        self.refused, self.patience, self.connections, self.got = dict(refused), patience, 0, []
        super().__init__(("127.0.0.1", 0), _Talk)

    @property
    def port(self) -> int:
        return self.server_address[1]

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=[0.05], daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shutdown()
        self.server_close()


class _Talk(socketserver.StreamRequestHandler):
    def say(self, words):
        self.wfile.write(words.encode() + b"\r\n")

    def handle(self):
        self.server.connections += 1
        self.say("220 here")
        to, refusals = "", 0
        while line := self.rfile.readline().decode().strip():
            command = line.partition(" ")[0].upper()
            if command == "RCPT":
                to = line.partition("<")[2].partition(">")[0]
                if refusals >= self.server.patience:
                    self.say("421 too many errors")
                    return
                words = self.server.refused.get(to, "250 ok")
                refusals += not words.startswith("250")
                self.say(words)
            elif command == "DATA":
                self.say("354 go on")
                while self.rfile.readline().rstrip(b"\r\n") != b".":
                    pass
                self.server.got.append(to)
                self.say("250 ok")
            elif command == "QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")
