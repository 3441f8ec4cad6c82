"""A server such as Ollama that says what a check tells it to, and remembers what it was asked."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "llama3.2"


class Model:
    """`pieces` is the answer, `pause` the seconds before each of them; `stall_after` pieces it waits for `go_on`."""

    def __init__(self, pieces=("It is ", "fine."), pause=0.0, stall_after=None):
        self.pieces, self.pause, self.stall_after = list(pieces), pause, stall_after
        self.asked, self.go_on, self.stalled = [], threading.Event(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self._server.daemon_threads = True
        self._server.model = self

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self):
        return {"SOTTOVOCE__LANGUAGEMODEL__BASEURL": self.url, "SOTTOVOCE__LANGUAGEMODEL__MODEL": NAME}

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.go_on.set()
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = [{"name": f"{NAME}:latest", "model": f"{NAME}:latest", "size": 1}]
        answers = {"/api/version": {"version": "0.33.0"}, "/api/tags": {"models": models}, "/api/ps": {"models": []}}
        self._whole(answers.get(self.path, {}))

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/api/show":
            info = {"general.architecture": "llama", "llama.context_length": 32768}
            return self._whole({"capabilities": ["completion"], "model_info": info})
        model = self.server.model
        only_loads = not body.get("messages")
        only_reads = not body.get("stream", True) and body.get("options", {}).get("num_predict") == 1
        if only_loads or only_reads:
            return self._whole({"model": NAME, "message": {"role": "assistant", "content": ""}, "done": True})
        model.asked.append(body)
        try:
            self._say(model, body)
        except OSError:
            pass  # Whoever asked has gone.

    def _say(self, model, body):
        line = lambda **more: {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", **more}
        words = lambda text: {"role": "assistant", "content": text}
        counts = {"prompt_eval_count": 12, "eval_count": 4, "done_reason": "stop"}
        if not body.get("stream", True):
            return self._whole(line(message=words("".join(model.pieces)), done=True, **counts))
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(model.pieces):
            if number == model.stall_after:
                model.stalled.set()
                while not model.go_on.wait(0.1):
                    self._chunk("\n")  # Fails once nobody reads.
            time.sleep(model.pause)
            self._chunk(json.dumps(line(message=words(piece), done=False)) + "\n")
        self._chunk(json.dumps(line(message=words(""), done=True, **counts)) + "\n")
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, text):
        self.wfile.write(f"{len(text.encode()):x}\r\n{text}\r\n".encode())
        self.wfile.flush()

    def _whole(self, answer):
        answer = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
