"""Small fastText models for tests: the file format written out, with weights of one's own or drawn ones."""

import struct

import numpy as np

HS, NS, SOFTMAX, OVA = 1, 2, 3, 4


def write_model(
    path,
    words,
    labels,
    rows,
    outputs,
    *,
    loss=SOFTMAX,
    phrase=1,
    buckets=0,
    shortest=0,
    longest=0,
    kept=None,
    version=12,
    quantized=None,
    outputs_quantized=False,
    model=3,
):
    """words, labels: (name, count) pairs; rows, outputs: float32 matrices; kept: bucket -> its row behind the words'.

    quantized: (columns a code stands for, whether norms are apart); then the weights are drawn.
    """
    size = rows.shape[1]
    data = struct.pack("<ii", 793712314, version)
    data += struct.pack("<12id", size, 5, 5, 1, 5, phrase, loss, model, buckets, shortest, longest, 100, 1e-4)
    held = -1 if kept is None else len(kept)
    data += struct.pack("<iiiqq", len(words) + len(labels), len(words), len(labels), 10, held)
    for kind, names in enumerate((words, labels)):
        for name, count in names:
            data += name.encode() + b"\0" + struct.pack("<qb", count, kind)
    for bucket, row in sorted((kept or {}).items()):
        data += struct.pack("<ii", bucket, row)
    data += matrix(rows, quantized)
    data += struct.pack("<?", outputs_quantized) + (
        matrix(outputs, quantized)[1:] if outputs_quantized else matrix(outputs, None)[1:]
    )
    path.write_bytes(data)
    return path


def matrix(values, quantized):
    if quantized is None:
        return struct.pack("<?qq", False, *values.shape) + values.astype("<f4").tobytes()
    width, with_norms = quantized
    chance = np.random.default_rng(len(values))
    parts = -(-values.shape[1] // width)
    data = struct.pack("<??qqi", True, with_norms, *values.shape, len(values) * parts)
    data += chance.integers(0, 256, len(values) * parts).astype(np.uint8).tobytes() + quantizer(values.shape[1], width)
    if with_norms:
        data += chance.integers(0, 256, len(values)).astype(np.uint8).tobytes() + quantizer(1, 1)
    return data


def quantizer(size, width):
    parts = -(-size // width)
    last = size - (parts - 1) * width
    centroids = np.random.default_rng(size).normal(size=size * 256).astype("<f4")
    return struct.pack("<iiii", size, parts, width, last) + centroids.tobytes()
