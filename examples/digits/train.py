#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Train the digits network and write digits_weights.h and digits_images.h.

    python3 examples/digits/train.py            # about half a minute
    python3 examples/digits/train.py --check    # the same, but only compare

Needs numpy and scikit-learn (Debian: python3-numpy python3-sklearn). Nobody needs it to
build or run the example: both headers are committed.

Data: "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, 1998, UCI Machine
Learning Repository, CC BY 4.0, as shipped by scikit-learn: 1,797 images of 8x8, values 0..16.
The first 1,297 train, the last 500 test; training and calibration never see the test images.

The network (HWC, no zero points, ReLU after every convolution):

    8x8x1   pad, conv 3x3            -> 8x8x16
            pad, depthwise 3x3       -> 8x8x16
            conv 1x1                 -> 8x8x24
            pad, depthwise 3x3, /2   -> 4x4x24
            conv 1x1                 -> 4x4x32
            fully connected          -> 10

Quantization: int8 weights with one scale for each output channel, int8 activations with one
scale for each tensor, int32 bias. The accumulator goes to the next tensor by
round(accumulator * multiplier / 2^shift), half away from zero, clamped to -128..127 (0..127 after
ReLU). The accuracy printed for int8 uses exactly that arithmetic.
"""
import os

# Why: one thread adds in one order, so the weights come out the same at every run.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ[variable] = "1"

import argparse  # noqa: E402
import pathlib  # noqa: E402
import sys  # noqa: E402

import numpy as np  # noqa: E402
from sklearn.datasets import load_digits  # noqa: E402

TRAIN_IMAGES = 1297
EPOCHS = 60
BATCH = 32
SEED = 1998
HERE = pathlib.Path(__file__).resolve().parent

# name, kind, kernel, stride, input channels, output channels
LAYERS = [
    ("conv1", "conv", 3, 1, 1, 16),
    ("depthwise1", "depthwise", 3, 1, 16, 16),
    ("conv2", "conv", 1, 1, 16, 24),
    ("depthwise2", "depthwise", 3, 2, 24, 24),
    ("conv3", "conv", 1, 1, 24, 32),
    ("dense", "dense", 4, 1, 32, 10),
]


# ---- the network in floating point --------------------------------------------------------------

def windows(x, kernel, stride):
    """(n, h, w, c) -> (n, oh, ow, k, k, c); padded so that stride 1 keeps the size."""
    pad = kernel // 2
    x = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    view = np.lib.stride_tricks.sliding_window_view(x, (kernel, kernel), axis=(1, 2))
    return view[:, ::stride, ::stride].transpose(0, 1, 2, 4, 5, 3)


def unwindows(grad, shape, kernel, stride):
    """The transpose of windows()."""
    n, h, w, c = shape
    pad = kernel // 2
    out = np.zeros((n, h + 2 * pad, w + 2 * pad, c), grad.dtype)
    oh, ow = grad.shape[1:3]
    for i in range(kernel):
        for j in range(kernel):
            out[:, i:i + oh * stride:stride, j:j + ow * stride:stride] += grad[:, :, :, i, j]
    return out[:, pad:pad + h, pad:pad + w]


def layer_forward(kind, kernel, stride, x, weight):
    """The weighted sums of one layer, without bias, and what the backward pass needs.

    Weights: conv (out, k, k, in), depthwise (c, k, k), dense (out, h, w, in).
    """
    if kind == "dense":
        return x.reshape(len(x), -1) @ weight.reshape(len(weight), -1).T, None
    cols = windows(x, kernel, stride)
    if kind == "conv":
        flat = cols.reshape(*cols.shape[:3], -1)
        return flat @ weight.reshape(len(weight), -1).T, flat
    return np.einsum("nhwijc,cij->nhwc", cols, weight, optimize=True), cols


def forward(params, x, keep=None):
    """Logits. `keep` collects (input, columns, output) of each layer."""
    for (name, kind, kernel, stride, _, _) in LAYERS:
        weight, bias = params[name]
        total, cols = layer_forward(kind, kernel, stride, x, weight)
        total = total + bias
        out = total if kind == "dense" else np.maximum(total, 0)
        if keep is not None:
            keep.append((x, cols, out))
        x = out
    return x


def backward(params, keep, grad):
    """Gradients of all parameters for the gradient of the logits."""
    grads = {}
    for (name, kind, kernel, stride, _, _), (x, cols, out) in zip(reversed(LAYERS), reversed(keep)):
        weight, _ = params[name]
        if kind == "dense":
            flat = x.reshape(len(x), -1)
            grads[name] = ((grad.T @ flat).reshape(weight.shape), grad.sum(0))
            grad = (grad @ weight.reshape(len(weight), -1)).reshape(x.shape)
            continue
        grad = grad * (out > 0)
        bias_grad = grad.sum((0, 1, 2))
        if kind == "conv":
            rows = grad.reshape(-1, grad.shape[-1])
            weight_grad = (rows.T @ cols.reshape(len(rows), -1)).reshape(weight.shape)
            cols_grad = (grad @ weight.reshape(len(weight), -1)).reshape(
                *grad.shape[:3], kernel, kernel, x.shape[-1])
        else:
            weight_grad = np.einsum("nhwijc,nhwc->cij", cols, grad, optimize=True)
            cols_grad = np.einsum("nhwc,cij->nhwijc", grad, weight, optimize=True)
        grads[name] = (weight_grad, bias_grad)
        grad = unwindows(cols_grad, x.shape, kernel, stride)
    return grads


def initial_parameters(rng):
    params = {}
    for (name, kind, kernel, _, inputs, outputs) in LAYERS:
        shape = (outputs, kernel, kernel) + (() if kind == "depthwise" else (inputs,))
        fan_in = int(np.prod(shape[1:]))
        weight = rng.normal(0, np.sqrt(2 / fan_in), shape).astype(np.float32)
        params[name] = (weight, np.zeros(outputs, np.float32))
    return params


def distorted(images, rng):
    """Each image moved, turned, sheared and scaled a little, and made lighter or darker."""
    n, side = len(images), images.shape[1]
    matrix = np.eye(2) + rng.normal(0, 0.12, (n, 2, 2))
    centre = (side - 1) / 2
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1).reshape(-1, 2) - centre
    place = np.einsum("nij,pj->npi", matrix, grid) + centre + rng.uniform(-1, 1, (n, 1, 2))
    place = np.clip(place + 1, 0, side + 0.999)                    # in an image with a rim of paper
    base = place.astype(np.int64)
    part = place - base
    padded = np.pad(images[..., 0], ((0, 0), (1, 2), (1, 2)))
    index = np.arange(n)[:, None]
    out = np.zeros((n, side * side))
    for dy in (0, 1):
        for dx in (0, 1):
            share = (part[..., 0] if dy else 1 - part[..., 0]) * (part[..., 1] if dx else 1 - part[..., 1])
            out += share * padded[index, base[..., 0] + dy, base[..., 1] + dx]
    gain = rng.uniform(0.8, 1.2, (n, 1))
    return np.minimum(out * gain, 1).reshape(images.shape).astype(np.float32)


def train(images, labels):
    """Adam on the cross entropy, learning rate falling as a cosine."""
    rng = np.random.default_rng(SEED)
    params = initial_parameters(rng)
    state = {name: [np.zeros_like(a) for a in pair for _ in range(2)] for name, pair in params.items()}
    steps, step = EPOCHS * (len(images) // BATCH), 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for first in range(0, len(images) - BATCH + 1, BATCH):
            pick = order[first:first + BATCH]
            keep = []
            logits = forward(params, distorted(images[pick], rng), keep)
            exp = np.exp(logits - logits.max(1, keepdims=True))
            grad = exp / exp.sum(1, keepdims=True)
            grad[np.arange(BATCH), labels[pick]] -= 1
            grads = backward(params, keep, (grad / BATCH).astype(np.float32))
            step += 1
            rate = 3e-3 * 0.5 * (1 + np.cos(np.pi * step / steps))
            for name, pair in grads.items():
                updated = []
                for part, (value, slope) in enumerate(zip(params[name], pair)):
                    m, v = state[name][2 * part], state[name][2 * part + 1]
                    m += 0.1 * (slope - m)
                    v += 0.001 * (slope * slope - v)
                    move = (m / (1 - 0.9 ** step)) / (np.sqrt(v / (1 - 0.999 ** step)) + 1e-8)
                    updated.append((value - rate * (move + 1e-3 * value)).astype(np.float32))
                params[name] = tuple(updated)
    return params


# ---- int8 ---------------------------------------------------------------------------------------

def multiplier_and_shift(factor):
    """factor ~ multiplier / 2^shift with a multiplier of 15 bits."""
    shift = 14 - int(np.floor(np.log2(factor)))
    multiplier = int(round(factor * 2.0 ** shift))
    if multiplier == 1 << 15:
        multiplier, shift = multiplier >> 1, shift - 1
    assert 0 < multiplier < 1 << 15 and 1 <= shift <= 40, (factor, multiplier, shift)
    return multiplier, shift


def quantize(params, images):
    """Integer parameters: name -> (int8 weights, int32 bias, multipliers, shifts, output scale)."""
    keep = []
    forward(params, images, keep)
    scale = 1 / 127                                     # of the input: pixels are 0..1
    quantized = {}
    for (name, kind, _, _, _, _), (_, _, out) in zip(LAYERS, keep):
        weight, bias = params[name]
        weight_scale = np.abs(weight.reshape(len(weight), -1)).max(1) / 127
        shaped = weight_scale.reshape((-1,) + (1,) * (weight.ndim - 1))
        integers = np.rint(weight / shaped).astype(np.int8)
        out_scale = float(np.abs(out).max()) / 127
        pairs = [multiplier_and_shift(float(scale * s / out_scale)) for s in weight_scale]
        quantized[name] = (integers, np.rint(bias / (scale * weight_scale)).astype(np.int64),
                           np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs]), out_scale)
        scale = out_scale
    return quantized


def forward_int8(quantized, pixels):
    """Logits as int8 from pixels 0..16, in the arithmetic of int8_ops.h."""
    x = (pixels.astype(np.int64) * 127 + 8) // 16       # round(pixel / 16 * 127)
    for (name, kind, kernel, stride, _, _) in LAYERS:
        weight, bias, multiplier, shift, _ = quantized[name]
        total, _ = layer_forward(kind, kernel, stride, x, weight.astype(np.int64))
        product = (total + bias) * multiplier
        half = np.left_shift(np.int64(1), shift - 1)
        rounded = np.sign(product) * ((np.abs(product) + half) >> shift)
        x = np.clip(rounded, -128 if kind == "dense" else 0, 127)
    return x


# ---- headers ------------------------------------------------------------------------------------

NOTICE = """\
/* SPDX-License-Identifier: {licence}
 * {what}
 * Generated by examples/digits/train.py; regenerate with: python3 examples/digits/train.py
 *
 * Source: "Optical Recognition of Handwritten Digits", E. Alpaydin and C. Kaynak, 1998,
 * UCI Machine Learning Repository, https://archive.ics.uci.edu/dataset/80, licence CC BY 4.0
 * (https://creativecommons.org/licenses/by/4.0/), as shipped by scikit-learn.
 * {change}
 */
"""


def wrapped(values, width=110):
    lines, line = [], "   "
    for value in values:
        text = f" {value},"
        if len(line) + len(text) > width:
            lines.append(line)
            line = "   "
        line += text
    return "\n".join(lines + [line])


def weights_header(quantized, correct, count):
    out = [NOTICE.format(
        licence="MIT", what=f"The int8 digits network: {correct} of the {count} test images right.",
        change="The weights were trained on the first 1,297 of its images."),
        "#ifndef DIGITS_WEIGHTS_H\n#define DIGITS_WEIGHTS_H\n\n"
        "#include <stdint.h>\n\n#include \"int8_ops.h\"\n",
        "/* Input: integer = round(real * DIGITS_INPUT_STEPS). "
        "Result: real = integer * DIGITS_LOGIT_SCALE. */\n"
        "#define DIGITS_INPUT_STEPS 127.0f\n"
        f"#define DIGITS_LOGIT_SCALE {quantized['dense'][4]:.9g}f\n"]
    for (name, kind, kernel, _, inputs, outputs) in LAYERS:
        weight, bias, multiplier, shift, _ = quantized[name]
        shape = "x".join(map(str, weight.shape))
        order = {"conv": "output, row, column, input", "depthwise": "channel, row, column",
                 "dense": "output, row, column, input"}[kind]
        out.append(f"/* {name}: {kind}, {shape} ({order}) */\n"
                   f"static const int8_t digits_{name}_weights[{weight.size}] = {{\n"
                   f"{wrapped(weight.reshape(-1))}\n}};\n"
                   f"static const int8_channel digits_{name}_channels[{outputs}] = {{\n"
                   + wrapped("{%d, %d, %d}" % row for row in zip(bias, multiplier, shift)) + "\n};\n")
    return "\n".join(out) + "\n#endif\n"


def images_header(pixels, labels):
    letters = ["".join(chr(ord("A") + p) for p in image.reshape(-1)) for image in pixels]
    rows = "\n".join(f'    "{line}",' for line in letters)
    digits = "".join(map(str, labels))
    strings = "\n".join(f'    "{digits[i:i + 100]}"' for i in range(0, len(digits), 100))
    return (NOTICE.format(licence="CC-BY-4.0", what=f"The {len(pixels)} test images of the digits example.",
                          change="Changes: only the last 500 images, one letter for each pixel.")
            + "#ifndef DIGITS_IMAGES_H\n#define DIGITS_IMAGES_H\n\n"
            f"#define DIGITS_IMAGES {len(pixels)}\n#define DIGITS_SIDE 8\n#define DIGITS_PIXELS 64\n\n"
            "/* Row by row, 'A' (0, paper) to 'Q' (16, ink). */\n"
            "static const char digits_images[DIGITS_IMAGES][DIGITS_PIXELS + 1] = {\n"
            f"{rows}\n}};\n\n/* The digit of each image. */\n"
            f"static const char digits_labels[DIGITS_IMAGES + 1] =\n{strings};\n\n#endif\n")


def main():
    parser = argparse.ArgumentParser(description="Train the digits network and write its two headers.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the headers differ")
    options = parser.parse_args()

    data = load_digits()
    pixels = data.images.astype(np.int64)[..., None]
    images, labels = (pixels / 16).astype(np.float32), data.target
    params = train(images[:TRAIN_IMAGES], labels[:TRAIN_IMAGES])
    quantized = quantize(params, images[:TRAIN_IMAGES])

    test = slice(TRAIN_IMAGES, None)
    count = len(labels[test])
    exact = int((forward(params, images[test]).argmax(1) == labels[test]).sum())
    correct = int((forward_int8(quantized, pixels[test]).argmax(1) == labels[test]).sum())
    print(f"test images right: {exact} of {count} in float, "
          f"{correct} of {count} in int8 ({correct / count:.1%})")
    if correct / count <= 0.95:
        sys.exit("accuracy of the int8 network is not above 95 %")

    stale = False
    for name, text in (("digits_weights.h", weights_header(quantized, correct, count)),
                       ("digits_images.h", images_header(pixels[test], labels[test]))):
        path = HERE / name
        if options.check:
            if not path.exists() or path.read_text() != text:
                print(f"{path} differs")
                stale = True
        else:
            path.write_text(text)
            print(f"wrote {path} ({len(text)} bytes)")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
