"""What the stores of the checks hold: a household's few weeks, and what somebody hostile would say."""

import json
import random
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

ANNA, BEN = {"speaker": "Anna"}, {"speaker": "Ben"}


def _at(day, clock):
    return datetime.fromisoformat(f"2026-11-{day:02}T{clock}+01:00").astimezone(timezone.utc).isoformat().replace("+00:00", "Z")


def _said(day, clock, role, words, **more):
    figures = {}
    if role == "assistant":
        figures = {"promptTokens": str(380 + len(words)), "cachedTokens": str(290 + len(words) // 2), "answerTokens": str(len(words) // 4),
                   "firstWordMs": str(180 + len(words) % 220)}
    metadata = {**figures, **more.pop("metadata", {})}
    return role, words, {"timestampUtc": _at(day, clock), "offsetMinutes": 60, "metadata": metadata, **more}


def household(store):
    """The store of the pictures."""
    kitchen = [
        _said(19, "18:04:10", "user", "How long do lentils need?", metadata=ANNA),
        _said(19, "18:04:12", "assistant", "Green lentils need about twenty-five minutes, red ones ten. Neither has to be soaked."),
        _said(19, "18:31:40", "user", "Remind me that the soup needs lemon at the end.", metadata=ANNA),
        _said(19, "18:31:42", "assistant", "I'll remember: a squeeze of lemon, right before serving."),
        _said(20, "07:42:03", "user", "What's the weather like today?", metadata=BEN),
        _said(20, "07:42:04", "assistant", "", toolCalls=[{"id": "c1", "name": "weather", "arguments": {"place": "Freiburg", "day": "today"}}]),
        _said(20, "07:42:04", "tool", "{\"low\": 3, \"high\": 9, \"rain\": 0.7, \"from\": \"14:00\"}", toolCallId="c1", metadata={"tool": "weather"}),
        _said(20, "07:42:06", "assistant", "Cold and mostly dry this morning, up to nine degrees. Rain is likely from two in the afternoon, so take a jacket."),
        _said(20, "07:44:20", "user", "And tell me what we planned for Saturday.", metadata=BEN),
        _said(20, "07:44:22", "assistant", "On Saturday you wanted to bring the bicycle to", metadata={"cutOff": "interrupted"}),
        _said(20, "19:12:00", "user", "Which wine did your brother bring last year, the one we all liked?", metadata=ANNA),
        _said(20, "19:12:03", "assistant", "That was a Spätburgunder from the Kaiserstuhl. You said it went well with the mushrooms.", metadata={"recalled": "3"}),
        _said(21, "10:02:11", "user", "Add oats, coffee and two lemons to the list.", metadata=ANNA),
        _said(21, "10:02:12", "assistant", "Oats, coffee and two lemons are on the list. It has seven things now."),
        _said(21, "10:03:40", "user", "آیا فردا باران می‌آید؟", metadata={"speaker": "Dara"}),
        _said(21, "10:03:42", "assistant", "بله، فردا بعدازظهر باران می‌بارد."),
        _said(22, "08:15:00", "user", "What did I want to put into the soup at the end?", metadata=ANNA),
        _said(22, "08:15:01", "assistant", "Lemon: a squeeze of it, right before serving.", metadata={"recalled": "1"}),
    ]
    store.say("named/kitchen", *kitchen)
    store.run("--scope", "named/kitchen", "conversations", "rename", "The kitchen")
    store.run("--scope", "named/kitchen", "conversations", "tag", "recipes", "shopping")
    store.say("dm/anna", *[
        _said(17, "21:10:00", "user", "I slept badly. What helped last time?", metadata=ANNA),
        _said(17, "21:10:03", "assistant", "Last time you read on paper instead of the phone, and kept the window open a little."),
        _said(18, "21:40:00", "user", "Note that I want to call the dentist on Monday.", metadata=ANNA),
        _said(18, "21:40:01", "assistant", "Noted. I'll bring it up on Monday morning."),
    ])
    store.run("--scope", "dm/anna", "settings", "--max-messages", "200", "--ttl", "365d", "--yes")
    store.run("--scope", "dm/anna", "conversations", "rename", "Evenings")
    store.run("--scope", "dm/anna", "conversations", "tag", "private")
    chance = random.Random(7)
    many = []
    when = datetime(2026, 10, 24, 7, tzinfo=timezone.utc)
    for number in range(420):
        when += timedelta(minutes=chance.choice([3, 9, 40, 55, 200, 180]))
        zulu = when.isoformat().replace("+00:00", "Z")
        who = chance.choice([ANNA, BEN, BEN, {"speaker": "Dara"}])
        many.append(("user", f"Turn the light in room {number} {chance.choice(['on', 'off'])}.", {"timestampUtc": zulu, "metadata": who}))
        later = (when + timedelta(seconds=2)).isoformat().replace("+00:00", "Z")
        prompt = 500 + number % 90
        figures = {"promptTokens": str(prompt), "cachedTokens": str(prompt * chance.randint(60, 92) // 100), "answerTokens": "9",
                   "firstWordMs": str(chance.randint(120, 420)), **({"recalled": "2"} if number % 5 == 0 else {})}
        many.append(("assistant", "Done.", {"timestampUtc": later, "metadata": figures}))
    store.say("named/lights", *many)
    store.say("guild/home/hall/ben", _said(22, "17:20:00", "user", "Who rang the bell?", metadata=BEN),
              _said(22, "17:20:02", "assistant", "The parcel service, at ten past five."))


MARKUP = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"><b>bold</b> &amp; \"'"
BIDI = "\u202etxt.exe\u202c \u2066isolated\u2069 \u200fmark\u200e"


def hostile(store):
    """Markup, directions, sizes, and names that break lines."""
    named = {"metadata": {"speaker": f"Eve\n<b>{BIDI}</b>", "<i>key</i>": MARKUP, "note": "x" * 5000}}
    store.say("named/hostile",
              ("user", MARKUP, named), ("assistant", BIDI + MARKUP), ("user", "m" * 1_000_000), ("assistant", "\x00\x07\ufeff\u2028 é e\u0301 👩‍👩‍👧‍👦" * 50),
              ("user", "]]>--><style>*{display:none}</style>\r\nSet-Cookie: a=b", {"threadId": "t<br>\n2"}),
              ("assistant", "", {"toolCalls": [{"id": "1", "name": f"<u>{BIDI}", "arguments": {"<a>": MARKUP, "long": "y" * 50_000}}]}),
              ("tool", MARKUP * 100, {"toolCallId": "1", "metadata": {"tool": "</p><h1>tool"}}))
    store.run("--scope", "named/hostile", "conversations", "rename", f"<h1>{BIDI}</h1> & \"'")
    store.run("--scope", "named/hostile", "conversations", "tag", "<em>tag</em>", "\u202egat")
    store.say("dm/<b>eve<%2fb>?x#y&z", ("user", "in a conversation with a strange name"))


KEPT = Path(__file__).resolve().parents[4] / "tests" / "fixtures"
# Stores in each form on disk that is kept, each with its conversations. The last one's newest message is known.
FIXTURES = {
    "store-v1": (["default"], None),
    "store-v1-packs": (["default"], None),
    "store-v1-settings": (["default"], None),
    "store-v1-contexts": (["named/context-mwrcmi9g-xa3013", "named/context-mwrcmi5y-82azq8"], "Playing it."),
}


def fixture(store, name, key="test key, not secret"):
    """Makes the store a copy of a kept one. Its conversations, and the newest words of the last one."""
    shutil.copytree(KEPT / name, store.folder / "store")
    del store.environment["SOTTOVOCE__CONTEXT__KEYFILE"]
    store.environment["SOTTOVOCE__CONTEXT__ENCRYPTIONKEY"] = key
    scopes, newest = FIXTURES[name]
    if newest is None:
        newest = json.loads((KEPT / f"{name}.expected.jsonl").read_text().splitlines()[-1])["content"]
    return scopes, newest
