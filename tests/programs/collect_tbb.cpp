// A program that uses oneTBB as any other: loops, a sort and a graph. usage: collect_tbb ROUNDS
// SPDX-License-Identifier: MIT
#define TBB_USE_PROFILING_TOOLS 2      // as debug builds have it: the graph's bodies are tasks, too
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <oneapi/tbb.h>
#include <vector>

int main(int argc, char **argv)
{
    std::atomic<long> sum{ 0 };
    std::vector<int> numbers(3000);
    const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
    for (int round = 0; round < rounds; round++) {
        tbb::parallel_for(0, 3000, [&](int i) {
            numbers[i] = i * 7919 % 3001;
            sum += i;
        });
        tbb::parallel_sort(numbers.begin(), numbers.end());
        tbb::parallel_for(0, 4, [&](int) { tbb::parallel_for(0, 100, [&](int i) { sum -= i; }); });
        tbb::flow::graph graph;
        tbb::flow::function_node<int, int> one(graph, tbb::flow::unlimited,
                                               [&](int v) { return v + numbers[v]; });
        tbb::flow::function_node<int, int> two(graph, 1, [&](int v) {
            sum += v;
            return v;
        });
        tbb::flow::make_edge(one, two);
        for (int i = 0; i < 20; i++) one.try_put(i);
        graph.wait_for_all();
    }
    std::printf("%ld\n", sum.load());
    return 0;
}
