"""Fetches public conversations with questions whose answers are known, and writes them as `evaluate` reads them.

    corpora.py FOLDER [--from MIRROR]

Clones the repositories below from GitHub (about 300 MB) into FOLDER/sources, or reads them from MIRROR, a folder of
clones named OWNER+NAME/repo, and writes FOLDER/SET.jsonl: a conversation a line, with

    turns   s speaker ("user", "assistant" or a name), x text, cap a picture's caption, day days since 1970,
            at milliseconds since 1970, ses session, dlen letters of its date
    qas     q question, cat kind, ev numbers of the turns that hold the answer, until the number of turns before it

Of LoCoMo, five conversations are for development and five are held out. The home corpus stands beside this file."""

import argparse
import glob
import json
import os
import random
import re
import subprocess
from datetime import date, datetime, timedelta

SOURCES = {
    "locomo": "danny911kr/REALTALK",  # holds LoCoMo's ten conversations too
    "realtalk": "danny911kr/REALTALK",
    "beam": "mohammadtavakoli78/BEAM",
    "madial": "hejunqing/MADial-Bench",
    "xquad": "google-deepmind/xquad",
    "realmem": "AvatarMemory/RealMemBench",
    "memdaily": "nuster1128/MemSim",
}
DEVELOPMENT = {"conv-26", "conv-41", "conv-43", "conv-47", "conv-49"}
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
MIXED = 30
HERE = os.path.dirname(os.path.abspath(__file__))


class Source:
    """A repository, read from a mirror without a work tree or from a clone."""

    def __init__(self, name, folder, mirror):
        if mirror:
            self.git = os.path.join(mirror, name.replace("/", "+"), "repo")
        else:
            self.git = os.path.join(folder, "sources", name.replace("/", "+"))
            if not os.path.exists(self.git):
                subprocess.run(
                    ["git", "clone", "-q", "--bare", "--depth", "1", f"https://github.com/{name}", self.git], check=True
                )
        listed = self.run("ls-tree", "-r", "-z", "--name-only", "HEAD")
        self.paths = sorted(path for path in listed.split("\0") if path)

    def run(self, *arguments):
        done = subprocess.run(["git", "-C", self.git, *arguments], check=True, capture_output=True)
        return done.stdout.decode("utf-8")

    def text(self, path):
        return self.run("show", f"HEAD:{path}")

    def json(self, path):
        return json.loads(self.text(path))

    def matching(self, pattern):
        return [path for path in self.paths if re.fullmatch(pattern, path)]


def day_of(moment):
    return (moment.date() if isinstance(moment, datetime) else moment).toordinal() - date(1970, 1, 1).toordinal()


def turn(speaker, text, moment, session, caption=""):
    row = {"s": speaker, "x": text, "cap": caption, "ses": session, "dlen": 0, "day": None}
    if moment:
        row["day"] = day_of(moment)
        row["dlen"] = len(moment.strftime("%-d %B %Y"))
        if isinstance(moment, datetime):
            row["at"] = int((moment - datetime(1970, 1, 1)).total_seconds() * 1000)
    return row


def evidence(ids, places):
    """The turns that ids such as "D8:6; D9:17" or "D:11:26" name."""
    found = []
    for text in ids:
        for session, number in re.findall(r"D:?(\d+):(\d+)", str(text)):
            place = places.get(f"D{int(session)}:{int(number)}")
            if place is not None and place not in found:
                found.append(place)
    return found


def sessions_of(talk):
    numbers = sorted(int(key[8:]) for key in talk if re.fullmatch(r"session_\d+", key))
    return [(number, talk[f"session_{number}"], talk.get(f"session_{number}_date_time", "")) for number in numbers]


def two_people(talk, qas, moment_of):
    turns, places = [], {}
    for number, said, when in sessions_of(talk):
        for line in said:
            places.setdefault(line["dia_id"], len(turns))
            text = line.get("clean_text") or line.get("text") or ""
            caption = line.get("blip_caption") or ""
            turns.append(turn(line["speaker"], text, moment_of(line, when), number, caption))
    asked = [
        {"q": qa["question"], "cat": CATEGORIES.get(qa["category"], str(qa["category"])),
         "ev": evidence(qa.get("evidence", []), places)}
        for qa in qas
    ]
    return {"turns": turns, "qas": asked}


def locomo(source):
    """Two friends over months (CC BY-NC 4.0)."""
    sets = {"locomo-dev": [], "locomo-held": []}
    for path in source.matching(r"data/locomo/Chat_.*\.json"):
        talk = source.json(path)
        def moment(_line, when):
            return datetime.strptime(when.replace(",", ""), "%I:%M %p on %d %B %Y")
        conversation = two_people(talk["conversation"], talk["qa"], moment)
        conversation["id"] = talk["sample_id"]
        sets["locomo-dev" if talk["sample_id"] in DEVELOPMENT else "locomo-held"].append(conversation)
    return sets


def realtalk(source):
    """Real chats of two people over three weeks."""
    conversations = []
    for path in source.matching(r"data/Chat_.*\.json"):
        talk = source.json(path)
        def moment(line, when):
            return datetime.strptime(line.get("date_time") or when, "%d.%m.%Y, %H:%M:%S")
        conversations.append({"id": path, **two_people(talk, talk["qa"], moment)})
    return {"realtalk": conversations}


def numbers_in(value):
    if isinstance(value, dict):
        return [number for item in value.values() for number in numbers_in(item)]
    if isinstance(value, list):
        return [number for item in value for number in numbers_in(item)]
    if isinstance(value, int):
        return [value]
    return [int(number) for number in re.findall(r"\d+", str(value))]


def beam(source):
    """Long talks of a person and an assistant, 100,000 tokens each."""
    conversations = []
    for path in source.matching(r"chats/100K/\d+/chat\.json"):
        folder = os.path.dirname(path)
        turns, places, moment = [], {}, None
        for batch in source.json(path):
            for line in (line for group in batch["turns"] for line in group):
                if line.get("time_anchor"):
                    moment = datetime.strptime(line["time_anchor"], "%B-%d-%Y").date()
                text = re.sub(r"\s*->->[\d,\s]*(N/A)?\s*$", "", line["content"])
                places.setdefault(int(line["id"]), len(turns))
                turns.append(turn(line["role"], text, moment, batch["batch_number"]))
        qas = []
        for kind, asked in source.json(f"{folder}/probing_questions/probing_questions.json").items():
            for question in asked:
                ids = numbers_in(question.get("source_chat_ids", []))
                found = dict.fromkeys(places[number] for number in ids if number in places)
                qas.append({"q": question["question"], "cat": kind, "ev": list(found)})
        conversations.append({"id": folder, "turns": turns, "qas": qas})
    return {"beam": conversations}


def madial(source):
    """Notes on events of children's lives, and talks in which one of them matters."""
    sets = {}
    for name, folder in (("en", "en"), ("zh", "ch")):
        notes, places = [], {}
        for line in source.text(f"data/{folder}/MADial-Bench-{name}-memory.json").splitlines():
            for number, note in json.loads(line).items():
                places[int(number)] = len(notes)
                notes.append(turn("user", note["event"], datetime.strptime(note["time"], "%Y-%m-%d").date(), len(notes)))
        qas = []
        for line in source.text(f"data/{folder}/MADial-Bench-{name}-dialogue.json").splitlines():
            talk = json.loads(line)
            for number in talk["test-turn"]:
                said = [text for text in talk["dialogue"][:number] if not text.startswith(("<Assistant>", "<BOD>"))]
                said = [re.sub(r'^<[^>]*>:\s*"?|"?\s*$', "", text) for text in said]
                wanted = [places[note] for note in talk["relevant-id"] if note in places]
                if said:
                    qas.append({"q": said[-1], "earlier": said[-2::-1], "cat": "all", "ev": wanted})
        sets[f"madial-{name}"] = [{"id": name, "turns": notes, "qas": qas}]
    return sets


def xquad(source):
    """Paragraphs and questions about them, the same in twelve languages (CC BY-SA 4.0)."""
    sets = {}
    for path in source.matching(r"xquad\.\w+\.json"):
        turns, qas = [], []
        for article in source.json(path)["data"]:
            for paragraph in article["paragraphs"]:
                qas += [{"q": qa["question"], "cat": "all", "ev": [len(turns)]} for qa in paragraph["qas"]]
                turns.append(turn("user", paragraph["context"], date(2024, 1, 1) + timedelta(len(turns)), len(turns)))
        language = path.split(".")[1]
        sets[f"xquad-{language}"] = [{"id": language, "turns": turns, "qas": qas}]
    return sets


def realmem(source):
    """Projects of a person and an assistant over months; what the assistant needed is noted with each request."""
    conversations = []
    for path in source.matching(r"dataset/.*_256k\.json"):
        turns, qas, memories = [], [], {}
        for session, talk in enumerate(source.json(path)["dialogues"]):
            moment = datetime.strptime(talk["current_time"].split()[0], "%Y-%m-%d").date()
            start = len(turns)
            lines = talk["dialogue_turns"]
            for at, line in enumerate(lines):
                if line.get("is_query") and at + 1 < len(lines):
                    used = lines[at + 1].get("memory_used") or []
                    wanted = [memories.get((memory["session_uuid"], memory["content"])) for memory in used]
                    found = list(dict.fromkeys(place for place in wanted if place is not None))
                    qas.append({"q": line["content"], "cat": line.get("category_name") or "", "ev": found, "until": len(turns)})
                turns.append(turn(line["speaker"].lower(), line["content"], moment, session))
            for memory in talk["extracted_memory"]:
                place = start + int(memory["source_turn"])
                if start <= place < len(turns):
                    memories[(memory["session_uuid"], memory["content"])] = place
        conversations.append({"id": path, "turns": turns, "qas": qas})
    return {"realmem": conversations}


def memdaily(source):
    """Short Chinese messages about people, events and things; thirty people's messages are mixed."""
    conversations = []
    for path in source.matching(r"data_generation/final_dataset/messages_and_QAs/0[1-3]_.*\.json"):
        talks = source.json(path)[:MIXED]
        lines = sorted(
            (message["time"], number, message["mid"], message["message"])
            for number, talk in enumerate(talks) for message in talk["message_list"]
        )
        turns, places = [], {}
        for when, number, mid, text in lines:
            moment = datetime.strptime(re.sub(r" 周.", "", when), "%Y年%m月%d日 %H:%M")
            places[number, mid] = len(turns)
            turns.append(turn("user", text, moment, len(turns)))
        qas = [
            {"q": question["question"], "cat": "all", "ev": [places[number, step] for step in question["target_step_id"]]}
            for number, talk in enumerate(talks) for question in talk["question_list"]
        ]
        conversations.append({"id": path, "turns": turns, "qas": qas})
    return {"memdaily": conversations}


def lines_of(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def home(folder, name):
    """What households say to an assistant, each statement once among everyday talk, asked about weeks later."""
    statements, idle = lines_of(f"{folder}/{name}.jsonl"), lines_of(f"{folder}/filler.jsonl")
    mixing = random.Random(7)
    talk = [(row["user"], row["assistant"], None) for row in idle]
    mixing.shuffle(talk)
    places = sorted(mixing.sample(range(len(talk) + len(statements)), len(statements)))
    for place, row in zip(places, statements):
        talk.insert(place, (row["statement"], mixing.choice(["Okay.", "Got it.", "Noted.", "Alright, I'll remember."]), row))
    turns, qas = [], []
    moment = datetime(2026, 1, 5, 7)
    for said, answer, row in talk:
        moment += timedelta(minutes=mixing.randrange(20, 300))
        for question in row["questions"] if row else []:
            qas.append({"q": question, "cat": row["language"], "ev": [len(turns)]})
        turns.append(turn("user", said, moment, 0))
        turns.append(turn("assistant", answer, moment, 0))
    return {f"home-{name}": [{"id": name, "turns": turns, "qas": qas, "by_pause": True}]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--from", dest="mirror", help="a folder of clones instead of GitHub")
    parser.add_argument("--home", default=f"{HERE}/home", help="the folder of the home corpus")
    parser.add_argument("--only", help="sets to write, divided by commas")
    given = parser.parse_args()
    os.makedirs(given.folder, exist_ok=True)
    wanted = given.only.split(",") if given.only else [*SOURCES, "home"]
    for name in wanted:
        if name == "home":
            sets = {}
            for half in ("dev", "held"):
                if os.path.exists(f"{given.home}/{half}.jsonl"):
                    sets.update(home(given.home, half))
        else:
            sets = globals()[name](Source(SOURCES[name], given.folder, given.mirror))
        for file, conversations in sets.items():
            with open(f"{given.folder}/{file}.jsonl", "w", encoding="utf-8") as out:
                for conversation in conversations:
                    out.write(json.dumps(conversation, ensure_ascii=False) + "\n")
            turns = sum(len(conversation["turns"]) for conversation in conversations)
            asked = sum(bool(qa["ev"]) for conversation in conversations for qa in conversation["qas"])
            print(f"{file}: {len(conversations)} conversations, {turns} turns, {asked} questions with answers")


if __name__ == "__main__":
    main()
