"""What a plain `tail` notices of edits behind the store's back, and what of planted memories reaches a prompt, by the
public suite agent-memory-integrity (`agmi`). Run by itself, it prints our row of both tables."""

import json
import re
import shutil
import subprocess

from agmi.adapters.base import MemoryAdapter, Record
from agmi.adapters.semantic_base import Retrieved, SemanticMemoryAdapter
from agmi.attacks import memory_specific
from agmi.check import run
from agmi.measure import format_memory_row, run_memory_attacks
from sottovoce import PROGRAM, Store

NAME = re.compile(r"(\d{8}T\d{9}Z)_(\d+)_(\w+)\.json")


class Sottovoce(MemoryAdapter):
    """A record is a file; its slot is its number, its content the sealed line, and its labels are the rest of its name."""

    name = "sottovoce"
    supports_replay = supports_metadata = supports_snapshot = True

    def setup(self):
        self.store = Store()
        self.root = self.store.folder / "store"
        self.said = 0

    def teardown(self):
        self.store.__exit__()

    def _say(self, owner, n):
        for _ in range(n):
            self.said += 1
            self.store.run(*owner, "append", f"{owner[-1] if owner else 'the owner'} said sentence {self.said}")

    def seed(self, n):
        self._say((), n)

    def append_genuine(self):
        self.seed(1)

    def seed_other(self, n):
        self._say(("--user", "ben"), n)

    def _files(self, folder):
        found = [(int(NAME.fullmatch(path.name)[2]), path) for path in folder.iterdir() if NAME.fullmatch(path.name)]
        return [path for _, path in sorted(found)]

    def _records(self, folder, owner):
        return [Record(at, {"id": path.name, "line": path.read_text(), "owner": owner})
                for at, path in enumerate(self._files(folder))]

    def read_all_raw(self):
        return self._records(self.root, "default")

    def read_other_raw(self):
        return self._records(self.root / "dms" / "ben", "ben")

    def write_raw(self, record):
        files = self._files(self.root)
        path = files[record.seq] if record.seq < len(files) else self.root / record.fields["id"]
        path.write_text(record.fields["line"])

    def delete_raw(self, seq):
        self._files(self.root)[seq].unlink()

    def replay_onto(self, victim_seq, donor):
        self._files(self.root)[victim_seq].write_text(donor.fields["line"])

    def mutate_payload(self, record):
        line = record.fields["line"]
        at = line.index('"ciphertext"') + 20
        record.fields["line"] = line[:at] + ("B" if line[at] == "A" else "A") + line[at + 1:]
        return record

    def forge_record(self, template):
        time, number, role = NAME.fullmatch(template.fields["id"]).groups()
        name = f"{time}_{int(number) + 1:04}_{role}.json"
        return self.mutate_payload(Record(template.seq + 1, {**template.fields, "id": name}))

    def read_meta(self, seq):
        time, _, role = NAME.fullmatch(self._files(self.root)[seq].name).groups()
        return {"time": time, "role": role}

    def write_meta(self, seq, meta):
        path = self._files(self.root)[seq]
        time, number, role = NAME.fullmatch(path.name).groups()
        path.rename(path.with_name(f"{time}_{number}_{'system' if role == 'user' else 'user'}.json"))

    def identity_of(self, record):
        return f"{record.fields['owner']} {NAME.fullmatch(record.fields['id'])[2]}"

    def payload_of(self, record):
        return record.fields["line"]

    def owner_of(self, record):
        return record.fields["owner"]

    def snapshot_store(self):
        return self._copy_store(self.root)

    def restore_store(self, token):
        self._restore_store(token, self.root)
        shutil.rmtree(token)

    def reload(self):
        """Each command opens the store anew."""

    def verify(self):
        tail = subprocess.run([PROGRAM, "tail", "--json"], env=self.store.environment, capture_output=True, text=True)
        self.verify_detail = tail.stderr.strip() or None
        # It shows what it can, and warns of the rest.
        return tail.returncode == 0 and not self.verify_detail


async def a_plain_tail_notices_all_nine_edits_behind_the_stores_back():
    rows = run(Sottovoce())
    assert len(rows) == 9 and all(row["verdict"] == "REJECTED" for row in rows), rows


class Household(SemanticMemoryAdapter):
    """A memory is what a user said, or, if it is external, what a tool returned. Read is what a prompt holds beside its
    utterance, all of it, however few the suite asks for. There are no labels to filter by."""

    name = "sottovoce"

    def __init__(self):
        self.store = None

    def reset(self):
        self.close()
        # The suite asks in keywords, too, which no person says to an assistant: everything is recalled that fits at all.
        self.store = Store(SOTTOVOCE__CONTEXT__RECALL__MINSCORE="0")

    def close(self):
        if self.store:
            self.store.__exit__()
        self.store = None

    def add_memory(self, item):
        role = "user" if item.source == memory_specific.SOURCE_USER else "tool"
        self.store.run("--user", item.user_id, "append", "--role", role, item.text)

    def retrieve(self, query, user_id, k=5):
        prompt = json.loads(self.store.run("--user", user_id, "prompt", "--json", "-n", "0", "--exact", query))
        lines = prompt["messages"][-1]["content"].splitlines()
        return [Retrieved(line, user_id) for line in lines if line.startswith("- ")]


async def no_memory_of_another_user_and_none_from_outside_reaches_a_prompt():
    everywhere, memory_specific.CHANNELS = memory_specific.CHANNELS, (memory_specific.SOURCE_EXTERNAL,)
    household = Household()
    try:
        for result in run_memory_attacks(household):
            has_none = result.attack == "metadata_poisoning" and "no metadata filter" in (result.error or "")
            assert result.status == "safe" or has_none, vars(result)
    finally:
        household.close()
        memory_specific.CHANNELS = everywhere


if __name__ == "__main__":
    for row in run(Sottovoce()):
        print(row)
    household = Household()
    print(format_memory_row(household.name, run_memory_attacks(household), "what a prompt holds"))
    household.close()
