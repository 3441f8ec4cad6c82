"""Who may connect, and how a server that listens ends."""

import http.client
import json
import socket
import time

import anyio

from model import Model
from sottovoce import ERAS, TOKEN, Store, done, http_client, http_server, make_context

BEARER = f"Bearer {TOKEN}"


def _post(server, **headers):
    """The status of a request of the newest revision, and what it is answered."""
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
    usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": BEARER,
             "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Host": f"127.0.0.1:{server.port}"}
    headers = {name: value for name, value in {**usual, **headers}.items() if value is not None}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        connection.putrequest("POST", "/mcp", skip_host=True)
        content = json.dumps(body).encode()
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            connection.putheader(name, value)
        connection.endheaders(content)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


async def only_who_shows_the_token_is_answered():
    with Store() as store, http_server(store) as server:
        assert _post(server)[0] == 200
        for wrong in (None, "", BEARER + "x", BEARER[:-1], TOKEN, f"Basic {TOKEN}", "Bearer"):
            status, headers, body = _post(server, Authorization=wrong)
            assert status == 401 and headers["WWW-Authenticate"].startswith("Bearer"), (wrong, status)
            assert TOKEN not in body and "tools" not in body
        for era in ERAS:
            for token in ("wrong", None):
                let_in = False
                try:
                    async with http_client(server.url, era, token=token):
                        let_in = True
                except Exception:
                    pass  # Each era has its own way to say so.
                assert not let_in
        assert TOKEN not in server.errors


async def web_pages_elsewhere_are_refused():
    with Store() as store, http_server(store) as server, http_server(store, "--allow-host", "pi.local") as named:
        for origin in (f"http://127.0.0.1:{server.port}", "http://localhost:3000", None):
            assert _post(server, Origin=origin)[0] == 200, origin
        for origin in ("http://evil.example", "null", "http://127.0.0.1.evil.example", "https://evil.example:443"):
            assert _post(server, Origin=origin)[0] == 403, origin
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example"):
            assert _post(server, Host=host)[0] == 403, host
        assert _post(server, Host="localhost")[0] == 200
        assert _post(server, Host="pi.local")[0] == 403 and _post(named, Host="pi.local")[0] == 200


async def an_address_that_others_reach_is_not_served_without_a_token():
    with Store() as store:
        for address in ("0.0.0.0:0", "[::]:0"):
            store.run("mcp", "--http", address, code=2)
        with http_server(store, token=None) as server:
            assert _post(server, Authorization=None)[0] == 200
            store.run("mcp", "--http", f"127.0.0.1:{server.port}", code=2)


async def what_is_no_request_does_not_stop_the_server():
    with Store() as store, http_server(store) as server:
        silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(20)]
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"\x00\xff nonsense\r\n\r\n")
            connection.settimeout(5)
            connection.recv(1000)
        assert _post(server, **{"Content-Type": "text/plain"})[0] == 415
        assert _post(server, **{"Mcp-Method": "tools/call"})[0] == 400
        assert _post(server, **{"MCP-Protocol-Version": "v999.0.0"})[0] == 400
        assert _post(server)[0] == 200
        for connection in silent:
            connection.close()


async def a_server_that_is_told_to_end_ends_within_seconds_and_keeps_what_had_come():
    for era in ERAS:
        with Model(pieces=["It is ", "raining"], stall_after=1) as model, Store(**model.environment()) as store:
            with http_server(store) as server:
                async with http_client(server.url, era) as idle, http_client(server.url, era) as c:
                    context = await make_context(c)

                    async def ask():
                        try:
                            await c.call_tool("context-chat", {"contextId": context, "message": "Rain?"})
                        except Exception:
                            pass  # The connection may be cut.

                    async def listen():
                        try:
                            async with idle.listen(resources_list_changed=True) as events:
                                async for _ in events:
                                    pass
                        except Exception:
                            pass

                    async with anyio.create_task_group() as group:
                        group.start_soon(ask)
                        if era == "auto":
                            group.start_soon(listen)
                        assert await anyio.to_thread.run_sync(model.stalled.wait, 10)
                        begun = time.monotonic()
                        code = await anyio.to_thread.run_sync(server.stop)
                        took = time.monotonic() - begun
                        group.cancel_scope.cancel()
                assert code in (0, 130) and took < 8, (era, code, took)
            assert store.messages(context) == [("user", "Rain?"), ("assistant", "It is ")]
            store.is_sound()


async def a_session_that_its_client_ends_is_over():
    with Store() as store, http_server(store) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        usual = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": BEARER}

        def status(verb, more, **message):
            connection.request(verb, "/mcp", json.dumps({"jsonrpc": "2.0", **message}) if message else None, usual | more)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers.get("Mcp-Session-Id")

        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        code, number = status("POST", {}, id=1, method="initialize", params=client)
        assert code == 200 and number
        own = {"Mcp-Session-Id": number, "MCP-Protocol-Version": "2025-11-25"}
        assert status("POST", own, method="notifications/initialized")[0] == 202
        assert status("POST", own, id=2, method="tools/list", params={})[0] == 200
        # Clients take other answers for a failure, and say so in their logs.
        assert status("DELETE", own)[0] in (200, 204)
        assert status("POST", own, id=3, method="tools/list", params={})[0] == 404
        connection.close()


async def sessions_of_clients_that_go_do_not_get_in_the_way_of_others():
    with Store() as store, http_server(store) as server:
        for era in ERAS:
            for _ in range(15):
                async with http_client(server.url, era) as c:
                    await done(c, "context-manage", action="list")
