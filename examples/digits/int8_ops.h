/* int8_ops.h: the int8 operators of the digits example.
 * SPDX-License-Identifier: MIT
 *
 * One implementation for the simulated NPU and for the host's reference, so that their results can
 * be compared bit by bit. Tensors are height x width x channels, channels last, without zero points.
 */
#ifndef INT8_OPS_H
#define INT8_OPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How the int32 sum of one output channel becomes int8:
 * round((sum + bias) * multiplier / 2^shift), half away from zero. multiplier < 2^15, shift 1 to 40. */
typedef struct int8_channel {
    int32_t bias, multiplier, shift;
} int8_channel;

typedef struct int8_shape {
    unsigned height, width, channels;
} int8_shape;

static inline size_t int8_bytes(int8_shape shape)
{
    return (size_t)shape.height * shape.width * shape.channels;
}

static inline int8_t int8_requantize(int32_t sum, int8_channel channel, bool relu)
{
    int64_t product = ((int64_t)sum + channel.bias) * channel.multiplier;
    int64_t half = INT64_C(1) << (channel.shift - 1);
    /* Why: C leaves the right shift of a negative number to the compiler. So only magnitudes are shifted. */
    int64_t value = product < 0 ? -((-product + half) >> channel.shift) : (product + half) >> channel.shift;
    int64_t min = relu ? 0 : -128;
    return (int8_t)(value < min ? min : value > 127 ? 127 : value);
}

/* The shape that a kernel x kernel operator gives. The input is padded already. */
static inline int8_shape int8_slid(int8_shape in, unsigned kernel, unsigned stride, unsigned channels)
{
    int8_shape out = {(in.height - kernel) / stride + 1, (in.width - kernel) / stride + 1, channels};
    return out;
}

/* Copies the tensor with a border of `pad` zeros. */
static inline void int8_pad(const int8_t *in, int8_shape shape, unsigned pad, int8_t *out)
{
    size_t row_bytes = (size_t)shape.width * shape.channels;
    size_t pad_bytes = (size_t)pad * shape.channels;
    size_t out_row_bytes = row_bytes + 2 * pad_bytes;
    memset(out, 0, out_row_bytes * (shape.height + 2 * pad));
    for (unsigned y = 0; y < shape.height; y++)
        memcpy(out + (y + pad) * out_row_bytes + pad_bytes, in + y * row_bytes, row_bytes);
}

/* The values of one window times their weights, added up. `window` points to its first value. Each row has
   `count` values, `step` apart. */
static inline int32_t int8_window(const int8_t *window, int8_shape shape, unsigned rows, unsigned count,
                                  size_t step, const int8_t *weights)
{
    int32_t sum = 0;
    for (unsigned y = 0; y < rows; y++) {
        const int8_t *row = window + (size_t)y * shape.width * shape.channels;
        for (unsigned n = 0; n < count; n++)
            sum += row[n * step] * *weights++;
    }
    return sum;
}

/* weights: output channel, row, column, input channel. table: one entry for each output channel. */
static inline void int8_conv2d(const int8_t *in, int8_shape shape, unsigned kernel, unsigned stride,
                               const int8_t *weights, const int8_channel *table, unsigned out_channels,
                               bool relu, int8_t *out)
{
    const int8_shape slid = int8_slid(shape, kernel, stride, out_channels);
    const size_t taps = (size_t)kernel * kernel * shape.channels;
    for (unsigned y = 0; y < slid.height; y++)
        for (unsigned x = 0; x < slid.width; x++) {
            const int8_t *window = in + ((size_t)y * stride * shape.width + x * stride) * shape.channels;
            for (unsigned c = 0; c < out_channels; c++) {
                const int8_t *own = weights + c * taps;
                int32_t sum = int8_window(window, shape, kernel, kernel * shape.channels, 1, own);
                *out++ = int8_requantize(sum, table[c], relu);
            }
        }
}

/* weights: channel, row, column. */
static inline void int8_depthwise_conv2d(const int8_t *in, int8_shape shape, unsigned kernel, unsigned stride,
                                         const int8_t *weights, const int8_channel *table, bool relu,
                                         int8_t *out)
{
    const int8_shape slid = int8_slid(shape, kernel, stride, shape.channels);
    const size_t taps = (size_t)kernel * kernel;
    for (unsigned y = 0; y < slid.height; y++)
        for (unsigned x = 0; x < slid.width; x++) {
            const int8_t *window = in + ((size_t)y * stride * shape.width + x * stride) * shape.channels;
            for (unsigned c = 0; c < shape.channels; c++) {
                const int8_t *own = weights + c * taps;
                int32_t sum = int8_window(window + c, shape, kernel, kernel, shape.channels, own);
                *out++ = int8_requantize(sum, table[c], relu);
            }
        }
}

/* weights: output, input. table: one entry for each output. */
static inline void int8_fully_connected(const int8_t *in, size_t in_count, const int8_t *weights,
                                        const int8_channel *table, unsigned outputs, int8_t *out)
{
    for (unsigned c = 0; c < outputs; c++) {
        int32_t sum = 0;
        for (size_t i = 0; i < in_count; i++)
            sum += in[i] * *weights++;
        out[c] = int8_requantize(sum, table[c], false);
    }
}

#endif /* INT8_OPS_H */
