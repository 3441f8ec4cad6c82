"""Writes the mean that is taken off each vector into the data file: of the texts' vectors, each file counting the same.

    cargo build --release -p sottovoce-encoder --example vectors
    python3 mean.py ../../../target/release/examples/vectors ../data/encoder.bin TEXTS...

One text a line; a file for each language. Build again afterwards: the program contains the data file.
"""
import struct
import subprocess
import sys

import numpy as np

WIDTH, HEADER = 384, struct.calcsize("<8s5I")


def main():
    program, path, *files = sys.argv[1:]
    with open(path, "r+b") as data:
        data.seek(HEADER)
        data.write(bytes(4 * WIDTH))
    means = []
    for name in files:
        with open(name, "rb") as texts:
            out = subprocess.run([program, "--raw", "--data", path], stdin=texts, stdout=subprocess.PIPE, check=True).stdout
        means.append(np.frombuffer(out, "<f4").reshape(-1, WIDTH).mean(0))
    with open(path, "r+b") as data:
        data.seek(HEADER)
        data.write(np.mean(means, axis=0).astype("<f4").tobytes())
    print(f"{len(files)} files; the mean is {np.linalg.norm(np.mean(means, axis=0)):.3f} long")


if __name__ == "__main__":
    main()
