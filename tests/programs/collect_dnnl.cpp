// A program that uses oneDNN as any other: reorders, products and a convolution. usage: collect_dnnl ROUNDS
// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <oneapi/dnnl/dnnl.hpp>

using namespace dnnl;

int main(int argc, char **argv)
{
    const auto f32 = memory::data_type::f32;
    engine cpu(engine::kind::cpu, 0);
    stream s(cpu);
    memory::desc rows({ 32, 32 }, f32, memory::format_tag::ab);
    memory::desc columns({ 32, 32 }, f32, memory::format_tag::ba);
    memory a(rows, cpu), b(rows, cpu), c(rows, cpu), t(columns, cpu);
    reorder turn(a, t);
    matmul product(matmul::primitive_desc(matmul::desc(rows, rows, rows), cpu));
    memory::desc image({ 1, 1, 8, 8 }, f32, memory::format_tag::nchw);
    memory::desc kernel({ 1, 1, 3, 3 }, f32, memory::format_tag::oihw);
    memory::desc result({ 1, 1, 6, 6 }, f32, memory::format_tag::nchw);
    memory in(image, cpu), weights(kernel, cpu), out(result, cpu);
    convolution_forward fold(convolution_forward::primitive_desc(
        convolution_forward::desc(prop_kind::forward_inference, algorithm::convolution_direct, image, kernel,
                                  result, { 1, 1 }, { 0, 0 }, { 0, 0 }), cpu));
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    for (int i = 0; i < rounds; i++) {
        turn.execute(s, a, t);
        product.execute(s, { { DNNL_ARG_SRC, a }, { DNNL_ARG_WEIGHTS, b }, { DNNL_ARG_DST, c } });
        fold.execute(s, { { DNNL_ARG_SRC, in }, { DNNL_ARG_WEIGHTS, weights }, { DNNL_ARG_DST, out } });
    }
    s.wait();
    std::printf("%d rounds\n", rounds);
    return 0;
}
