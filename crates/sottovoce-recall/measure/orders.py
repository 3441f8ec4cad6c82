"""Fits the network that tells what orders the assistant about, and writes it to the end of ../data/fit.bin.

    orders.py ENCODER PLANTED.jsonl FITTED.jsonl [CONVERSATIONS.jsonl...]

ENCODER is the example `vectors` of sottovoce-encoder. Fitted on `home/orders.jsonl`, sentence by sentence, on the rest of
the home corpus, and on 2,500 turns of the first half of FITTED, conversations of people, as `corpora.py` writes them.
Prints what it catches of kinds and languages that it has not seen, of PLANTED (`tests/clients/planted.jsonl`), and how
often it is wrong about turns that nothing was fitted on: the other half of FITTED, the other conversations, and what was
held back at home. Run it after `fit.py`, which begins the file anew."""

import json
import random
import re
import struct
import subprocess
import sys

import numpy as np
from fit import HERE, HIDDEN, WIDTH, away, flat, lines, network, report, scores

# The network calls an order what scores above this share of sentences that it has not seen and that are none.
PLAIN = 0.9985
# By this much less. Chosen among steps of a quarter: the least at which nothing below that was said, noted or asked at home
# is called an order. So those figures, and that of PLANTED, are of something seen as far as the threshold goes.
LENIENT = 0.25
TURNS = 2500
# Where the mean of utterances stands in the file, and where this network does.
MEAN = 3 * WIDTH + 1
START = MEAN + WIDTH + 2 * (HIDDEN * (WIDTH + 2) + 1)


def sentences(text):
    text = " ".join(text.split())
    ends = r"[^。！？!?]+[。！？!?]*" if re.search("[\u3040-\u30ff\u4e00-\u9fff]", text) else r".+?(?:[.!?](?=\s)|$)"
    return [part.strip() for part in re.findall(ends, text) if re.search(r"\w", part)]


def turns_of(path, half=None):
    with open(path, encoding="utf-8") as file:
        talks = [json.loads(line) for line in file]
    middle = len(talks) // 2
    chosen = talks if half is None else talks[:middle] if half == 0 else talks[middle:]
    turns = [sentences(turn["x"]) for talk in chosen for turn in talk["turns"]]
    turns = [turn for turn in turns if turn]
    return random.Random(5).sample(turns, min(TURNS, len(turns)))


def main():
    encoder, planted, fitted, *others = sys.argv[1:]
    orders = []
    for row in lines("orders"):
        parts = sentences(row["text"])
        # Only the end of a planted text is surely an order.
        wanted = dict.fromkeys([row["text"], parts[-1]]) if row["order"] else parts
        orders += [{**row, "text": part} for part in wanted]
    home = [row[name] for file, names in [
        ("dev", ["statement"]), ("needs", ["utterance"]), ("idle", ["utterance"]), ("follow", ["utterance"]), ("filler", ["user", "assistant"]),
    ] for row in lines(file) for name in names]
    home += [question for row in lines("dev") for question in row["questions"]]
    plain = [part for text in home for part in sentences(text)] + [part for turn in turns_of(fitted, 0) for part in turn]
    unseen = {"people": turns_of(fitted, 1)}
    unseen.update({path: turns_of(path) for path in others})
    unseen["said at home"] = [sentences(row["statement"]) for row in lines("held")]
    unseen["noted about a person"] = [sentences(row["statement"]) for row in lines("held-notes")]
    unseen["asked of an assistant at home"] = [sentences(row["utterance"]) for row in lines("held-idle")]
    with open(planted, encoding="utf-8") as file:
        attacks = [row for row in map(json.loads, file) if row["kind"] != "genuine"]
    unseen["planted"] = [sentences(row["text"]) for row in attacks]

    texts = list(dict.fromkeys([row["text"] for row in orders] + plain + [part for turns in unseen.values() for turn in turns for part in turn]))
    encoded = subprocess.run([encoder, "--raw"], input="\n".join(texts).encode(), capture_output=True, check=True).stdout
    known = dict(zip(texts, np.frombuffer(encoded, dtype="<f4").reshape(-1, WIDTH).astype(np.float64)))
    with open(f"{HERE}/../data/fit.bin", "rb") as file:
        numbers = np.frombuffer(file.read(), dtype="<f4")[:START]
    mean = numbers[MEAN : MEAN + WIDTH].astype(np.float64)

    def of(some):
        return away(np.array([known[text] for text in some]), mean)

    examples = np.vstack([of([row["text"] for row in orders]), of(plain)])
    wanted = np.array([row["order"] for row in orders] + [False] * len(plain))
    count = len(orders)
    fold = np.random.default_rng(4).integers(0, 6, len(examples))

    def left_out(key):
        """The scores of what was left out of the fit, one kind or language after the other."""
        keys, found = [row[key] for row in orders], np.zeros(len(examples))
        names = sorted({name for name, order in zip(keys, wanted) if order})
        for number, name in enumerate(names):
            out = np.append([one == name for one in keys], fold[count:] == number % 6)
            out[:count] |= ~wanted[:count] & (fold[:count] == number % 6) & (key == "kind")
            found[out] = scores(network(examples[~out], wanted[~out], number), examples[out])
        return found, keys, names

    by_kind, kinds, kind_names = left_out("kind")
    by_language, languages, language_names = left_out("language")
    threshold = np.quantile(by_kind[~wanted], PLAIN) - LENIENT
    for found, keys, names in [(by_kind, kinds, kind_names), (by_language, languages, language_names)]:
        which = np.array([names.index(key) if order else -1 for key, order in zip(keys, wanted)])
        report("caught, not seen before", found[:count][wanted[:count]] - threshold, np.zeros(wanted.sum()), ["all"])
        report("caught", found[:count] - threshold, which, names)
    hard = ~wanted[:count]
    report("wrong, of requests and statements written to be hard", by_kind[:count][hard] - threshold, np.zeros(hard.sum()), ["plain"])

    final = network(examples, wanted, len(kind_names))
    final[3] = final[3] - threshold
    for name, turns in unseen.items():
        found = np.array([scores(final, of(turn)).max() for turn in turns])
        report(f"called orders, of {len(turns)}", found, np.zeros(len(found)), [name])
        if name == "planted":
            for key in ("language", "kind"):
                names = sorted({row[key] for row in attacks})
                report("caught", found, np.array([names.index(row[key]) for row in attacks]), names)
    with open(f"{HERE}/../data/fit.bin", "wb") as out:
        out.write(struct.pack(f"<{START}f", *numbers) + struct.pack(f"<{HIDDEN * (WIDTH + 2) + 1}f", *flat(final)))


if __name__ == "__main__":
    main()
