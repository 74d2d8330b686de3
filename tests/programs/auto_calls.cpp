// Calls of many kinds, without a mark: recursion, templates, lambdas, operators, function pointers,
// exceptions, threads, a shared library, and a plugin that is opened twice. For NPUPROF_AUTO.
// Usage: auto_calls PLUGIN COUNT
// Nothing that the compiler makes without being told (destructors, wrappers): gcov does not count it.
// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <pthread.h>
#include <stdexcept>

extern "C" int shared_entry(int count);

namespace work {

struct Tree {
    explicit Tree(int depth) : depth_(depth) {}
    int sum(int at) const { return at >= depth_ ? 1 : sum(at + 1) + sum(at + 1); }
    int operator[](int at) const { return at * depth_; }
    int depth_;
};

template <class T> T twice(T value) { return value + value; }
template <class Call> int apply(const Call &call, int n) { return call(n); }
long double operator"" _half(long double value) { return value / 2; }

static int only_here(int n) { return n % 3; }

int throws_sometimes(int n)
{
    if (n % 5 == 0) throw std::runtime_error("five");
    return n;
}

} // namespace work

static int by_pointer(int (*call)(int), int n) { return call(n); }

static void *in_thread(void *count)
{
    long sum = 0;
    for (int i = 0; i < *static_cast<int *>(count); i++) sum += by_pointer(work::only_here, i);
    return sum < 0 ? count : nullptr;
}

static int use_plugin(const char *path, int count)
{
    void *const handle = dlopen(path, RTLD_NOW);
    if (!handle) {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*entry)(int) = reinterpret_cast<int (*)(int)>(dlsym(handle, "plugin_entry"));
    const int result = entry ? entry(count) : 0;
    dlclose(handle);
    return result > 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    if (argc < 3) return 2;
    int count = std::atoi(argv[2]), caught = 0, bad = 0;
    pthread_t threads[4];
    for (pthread_t &thread : threads) bad |= pthread_create(&thread, nullptr, in_thread, &count);
    const work::Tree tree(6);
    const auto square = [](int n) { return n * n; };
    for (int i = 1; i <= count; i++) {
        bad |= tree.sum(0) != 64 || tree[2] != 12 || work::apply(square, i) != i * i;
        bad |= work::twice(i) != 2 * i || work::twice(0.5) != 1.0 || work::operator"" _half(3.0L) != 1.5L;
        try {
            bad |= work::throws_sometimes(i) != i;
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    bad |= caught != count / 5 || shared_entry(count) < 0;
    for (int i = 0; i < 2; i++) bad |= use_plugin(argv[1], count);
    for (pthread_t thread : threads) bad |= pthread_join(thread, nullptr);
    return bad ? 1 : 0;
}
