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

static inline size_t int8_bytes(int8_shape shape) { return (size_t)shape.height * shape.width * shape.channels; }

static inline int8_t int8_requantize(int32_t sum, int8_channel channel, bool relu)
{
    int64_t product = ((int64_t)sum + channel.bias) * channel.multiplier;
    int64_t half = INT64_C(1) << (channel.shift - 1);
    /* Why: the shift of a negative number is up to the compiler, so only magnitudes are shifted. */
    int64_t value = product < 0 ? -((-product + half) >> channel.shift) : (product + half) >> channel.shift;
    int64_t least = relu ? 0 : -128;
    return (int8_t)(value < least ? least : value > 127 ? 127 : value);
}

/* Shape after a kernel x kernel operator on an input that is padded already. */
static inline int8_shape int8_slid(int8_shape in, unsigned kernel, unsigned stride, unsigned channels)
{
    int8_shape out = {(in.height - kernel) / stride + 1, (in.width - kernel) / stride + 1, channels};
    return out;
}

/* A rim of `pad` zeros around the tensor. */
static inline void int8_pad(const int8_t *in, int8_shape shape, unsigned pad, int8_t *out)
{
    size_t row_bytes = (size_t)shape.width * shape.channels;
    size_t pad_bytes = (size_t)pad * shape.channels;
    size_t out_row_bytes = row_bytes + 2 * pad_bytes;
    memset(out, 0, out_row_bytes * (shape.height + 2 * pad));
    for (unsigned y = 0; y < shape.height; y++)
        memcpy(out + (y + pad) * out_row_bytes + pad_bytes, in + y * row_bytes, row_bytes);
}

/* weights: output channel, row, column, input channel; table: one entry for each output channel. */
static inline void int8_conv2d(const int8_t *in, int8_shape shape, unsigned kernel, unsigned stride,
                               const int8_t *weights, const int8_channel *table, unsigned out_channels, bool relu,
                               int8_t *out)
{
    int8_shape slid = int8_slid(shape, kernel, stride, out_channels);
    for (unsigned y = 0; y < slid.height; y++)
        for (unsigned x = 0; x < slid.width; x++)
            for (unsigned c = 0; c < out_channels; c++) {
                const int8_t *weight = weights + (size_t)c * kernel * kernel * shape.channels;
                int32_t sum = 0;
                for (unsigned i = 0; i < kernel; i++) {
                    const int8_t *row = in + ((size_t)(y * stride + i) * shape.width + x * stride) * shape.channels;
                    for (unsigned j = 0; j < kernel * shape.channels; j++)
                        sum += row[j] * *weight++;
                }
                *out++ = int8_requantize(sum, table[c], relu);
            }
}

/* weights: channel, row, column. */
static inline void int8_depthwise_conv2d(const int8_t *in, int8_shape shape, unsigned kernel, unsigned stride,
                                         const int8_t *weights, const int8_channel *table, bool relu, int8_t *out)
{
    int8_shape slid = int8_slid(shape, kernel, stride, shape.channels);
    for (unsigned y = 0; y < slid.height; y++)
        for (unsigned x = 0; x < slid.width; x++)
            for (unsigned c = 0; c < shape.channels; c++) {
                const int8_t *weight = weights + (size_t)c * kernel * kernel;
                int32_t sum = 0;
                for (unsigned i = 0; i < kernel; i++)
                    for (unsigned j = 0; j < kernel; j++)
                        sum += in[((size_t)(y * stride + i) * shape.width + x * stride + j) * shape.channels + c]
                               * *weight++;
                *out++ = int8_requantize(sum, table[c], relu);
            }
}

/* weights: output, input. */
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

#endif
