"""A server such as Ollama that says what a check tells it to, and remembers what it was asked. It speaks OpenAI's protocol too."""

import contextlib
import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NAME = "llama3.2"


class Model:
    """`pieces` is the answer, or a function that answers a request's body; a piece that is no text is a list of calls of
    functions. `pause` is the seconds before each piece; `stall_after` pieces it waits for `go_on`."""

    def __init__(self, pieces=("It is ", "fine."), pause=0.0, stall_after=None):
        self.answer = pieces if callable(pieces) else lambda _: pieces
        self.pause, self.stall_after = pause, stall_after
        self.bodies = []  # As they came, of all requests with a body.
        self.asked, self.go_on, self.stalled = [], threading.Event(), threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
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
        self._server.hang_up()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self._connections = []

    def process_request(self, request, address):
        self._connections.append(request)
        super().process_request(request, address)

    def hang_up(self):
        """Ends the connections that clients keep, as the end of a program does."""
        for connection in self._connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        models = [{"name": f"{NAME}:latest", "model": f"{NAME}:latest", "size": 1, "digest": "1" * 64}]
        answers = {"/api/version": {"version": "0.33.0"}, "/api/tags": {"models": models}, "/api/ps": {"models": []}}
        answers["/v1/models"] = {"object": "list", "data": [{"id": NAME, "object": "model", "created": 1, "owned_by": "library"}]}
        self._whole(answers.get(self.path, {}))

    def do_POST(self):
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        if self.path != "/api/show":
            self.server.model.bodies.append(raw)
        if self.path in ("/api/embed", "/v1/embeddings"):
            data = [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]
            return self._whole({"model": NAME, "embeddings": [[0.5, 0.25]], "object": "list", "data": data,
                                "usage": {"prompt_tokens": 1, "total_tokens": 1}})
        if self.path == "/api/show":
            info = {"general.architecture": "llama", "llama.context_length": 32768}
            return self._whole({"capabilities": ["completion"], "model_info": info})
        model = self.server.model
        if self.path.startswith("/v1/"):
            model.asked.append(body)
            try:
                return self._complete(model, body) if self.path == "/v1/chat/completions" else self._respond(model, body)
            except OSError:
                return  # Whoever asked has gone.
        only_loads = not body.get("messages") and not body.get("prompt")
        only_reads = not body.get("stream", True) and body.get("options", {}).get("num_predict") == 1
        if only_loads or only_reads:
            return self._whole({"model": NAME, "message": {"role": "assistant", "content": ""}, "done": True})
        model.asked.append(body)
        try:
            self._say(model, body)
        except OSError:
            pass  # Whoever asked has gone.

    def _events(self, events):
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            self._chunk(f"data: {event if isinstance(event, str) else json.dumps(event)}\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def _complete(self, model, body):
        part = {"id": "c1", "created": 1, "model": body["model"]}
        usage = {"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16}
        if not body.get("stream"):
            message = {"role": "assistant", "content": "".join(model.answer(body))}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            return self._whole({**part, "object": "chat.completion", "choices": [choice], "usage": usage})
        chunk = lambda delta, why=None: {**part, "object": "chat.completion.chunk", "choices": [
            {"index": 0, "delta": delta, "finish_reason": why}]}
        self._events([*(chunk({"role": "assistant", "content": piece}) for piece in model.answer(body)), chunk({}, "stop"), "[DONE]"])

    def _respond(self, model, body):
        pieces = list(model.answer(body))
        text = "".join(pieces)
        message = {"type": "message", "id": "m1", "role": "assistant", "status": "completed",
                   "content": [{"type": "output_text", "text": text, "annotations": []}]}
        response = {"id": f"r{len(model.asked)}", "object": "response", "created_at": 1, "model": body["model"], "status": "completed",
                    "output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        if not body.get("stream"):
            return self._whole(response)
        delta = lambda piece: {"type": "response.output_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0,
                               "delta": piece, "sequence_number": 1, "logprobs": []}
        self._events([*map(delta, pieces), {"type": "response.completed", "sequence_number": 9, "response": response}])

    def _say(self, model, body):
        line = lambda **more: {"model": body["model"], "created_at": "2026-01-01T00:00:00Z", **more}
        calls = lambda piece: {} if isinstance(piece, str) else {"content": "", "tool_calls": piece}
        words = lambda piece: {"role": "assistant", "content": piece, **calls(piece)}
        pieces = list(model.answer(body))
        counts = {"prompt_eval_count": 12, "eval_count": 4, "done_reason": "stop"}
        if self.path == "/api/generate":
            return self._whole(line(response="".join(pieces), done=True, **counts))
        if not body.get("stream", True):
            return self._whole(line(message=words("".join(pieces)), done=True, **counts))
        self.send_response(200)
        self.send_header("content-type", "application/x-ndjson")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for number, piece in enumerate(pieces):
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
