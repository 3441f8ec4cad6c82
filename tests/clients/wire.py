"""The protocol line by line, for what no SDK lets one see: every byte of standard output and of standard error."""

import json
import queue
import subprocess
import threading

from sottovoce import PROGRAM

NEWEST = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Wire:
    """A server on standard input and output."""

    def __init__(self, store, era, *arguments):
        self.process = subprocess.Popen([PROGRAM, "mcp", *arguments], env=store.environment, cwd=store.folder,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.era, self.lines, self.errors = era, [], b""
        self._answers, self._next = queue.Queue(), 0
        self._threads = [threading.Thread(target=read, daemon=True) for read in (self._output, self._error)]
        for thread in self._threads:
            thread.start()
        if era == "legacy":
            client = {"name": "wire", "version": "1"}
            self.ask("initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
            self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def _output(self):
        for line in self.process.stdout:
            self.lines.append(line)
            try:
                self._answers.put(json.loads(line))
            except ValueError:
                pass  # A check looks at the lines.

    def _error(self):
        for line in self.process.stderr:
            self.errors += line

    def send(self, message):
        self.process.stdin.write(message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        """Asks, and does not wait."""
        self._next += 1
        if self.era != "legacy":
            params["_meta"] = NEWEST
        self.send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def ask(self, method, **params):
        return self.answer(self.request(method, **params))

    def answer(self, number, patience=20):
        while True:
            answer = self._answers.get(timeout=patience)
            if answer.get("id") == number:
                return answer

    def call(self, tool, **arguments):
        return self.ask("tools/call", name=tool, arguments=arguments)["result"]

    def close(self):
        """Ends the input, as a client that goes; the code with which the server ends."""
        self.process.stdin.close()
        code = self.process.wait(10)
        for thread in self._threads:
            thread.join(5)
        return code
