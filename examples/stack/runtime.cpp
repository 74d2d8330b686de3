// runtime.cpp: a runtime above the driver, as a shared library in C++11.
// SPDX-License-Identifier: MIT
//
// A network is a graph of nodes, here a list. Worker threads run the nodes that are for the host. A node for
// the NPU gives the request to the driver, and another worker goes on with it when the driver hands it back.
// Each hand-over has an arrow. The functions for Python are at the end.
#include "npuprof.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "driver.h"

namespace {

const unsigned pixel_count = 64, class_count = 10, output_count = 12;    // outputs: a multiple of 4
const unsigned worker_count = 2;

// One inference. The arrows to its next spans have the ids arrow, arrow + 1, ...
struct request {
    const float *pixels = nullptr;
    int8_t *scores = nullptr;
    uint64_t arrow = 0;
    std::size_t next_node = 0;
    int8_t input[pixel_count] = {}, output[output_count] = {};
    driver_job job = driver_job();
    std::promise<int> answer;
    std::future<int> answered;
};

enum class then { next_node, wait, finished };

struct node {
    const char *name;
    then (*run)(request &);
};

then quantize(request &r)
{
    for (unsigned n = 0; n < pixel_count; n++) r.input[n] = static_cast<int8_t>(r.pixels[n] * 16 + 0.5f);
    return then::next_node;
}

then on_npu(request &r)
{
    PROF_FLOW_OUT(r.arrow);
    r.job.input = r.input;
    r.job.output = r.output;
    r.job.arrow = r.arrow++;
    r.job.user = &r;
    driver_submit(&r.job);              // from here on the request may be another thread's
    return then::wait;
}

then classify(request &r)
{
    unsigned best = 0;
    for (unsigned n = 0; n < class_count; n++) {
        r.scores[n] = r.output[n];
        if (r.output[n] > r.output[best]) best = n;
    }
    PROF_FLOW_OUT(r.arrow);
    std::promise<int> answer = std::move(r.answer);         // the request ends as soon as it is answered
    answer.set_value(r.job.failed ? -1 : static_cast<int>(best));
    return then::finished;
}

const node graph[] = {{"Quantize", quantize}, {"Network", on_npu}, {"Classify", classify}};

class runtime {
public:
    runtime()
    {
        for (unsigned n = 0; n < worker_count; n++) workers.emplace_back(&runtime::work, this, n);
    }

    ~runtime()
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            closing = true;
        }
        filled.notify_all();
        for (std::thread &worker : workers) worker.join();
    }

    void push(request *r)
    {
        {
            std::lock_guard<std::mutex> lock(mutex);
            ready.push_back(r);
            PROF_COUNTER("requests ready", ready.size());
        }
        filled.notify_one();
    }

private:
    void work(unsigned number)
    {
        PROF_THREAD_NAME(("runtime " + std::to_string(number) + " (C++)").c_str());
        std::unique_lock<std::mutex> lock(mutex);
        for (;;) {
            filled.wait(lock, [this] { return closing || !ready.empty(); });
            if (ready.empty()) return;
            request *r = ready.front();
            ready.pop_front();
            lock.unlock();
            run(*r);
            lock.lock();
        }
    }

    // Runs the nodes of a request until it has to wait or is finished.
    static void run(request &r)
    {
        PROF_SCOPE_CAT("runtime", "run graph");
        PROF_FLOW_IN(r.arrow++);
        then what = then::next_node;
        while (what == then::next_node) {
            const node &now = graph[r.next_node];
            PROF_OPERATOR(r.next_node, now.name);
            r.next_node++;
            what = now.run(r);
        }
    }

    std::vector<std::thread> workers;
    std::mutex mutex;
    std::condition_variable filled;
    std::deque<request *> ready;
    bool closing = false;
};

runtime *open_runtime;

// The driver calls it on its own thread.
void job_done(driver_job *job)
{
    PROF_SCOPE_CAT("runtime", "resume graph");
    request *r = static_cast<request *>(job->user);
    PROF_FLOW_OUT(r->arrow);
    open_runtime->push(r);
}

}  // namespace

// ---- for Python: NULL or what is wrong, as in driver.h

extern "C" {

const char *runtime_open(const char *simulator, const int8_t *weights, const int32_t *channels);
request *runtime_start(const float *pixels, int8_t *scores, uint64_t arrow);
int runtime_wait(request *r);
void runtime_close();

// Opens the device with a network: its weights, 12 outputs of 64 inputs, and the table of the outputs.
const char *runtime_open(const char *simulator, const int8_t *weights, const int32_t *channels)
{
    PROF_SCOPE_CAT("runtime", "runtime_open");
    const char *wrong = driver_open(simulator, job_done);
    if (!wrong) wrong = driver_load(weights, channels, pixel_count, output_count);
    if (!wrong) open_runtime = new runtime;
    return wrong;
}

// Starts an inference: 64 pixels from 0 to 1; the ten scores are there after runtime_wait(). The caller's
// span has PROF_FLOW_OUT(arrow); arrow + 1 and + 2 are used inside, arrow + 3 leads to the caller again.
request *runtime_start(const float *pixels, int8_t *scores, uint64_t arrow)
{
    request *r = new request;
    r->answered = r->answer.get_future();
    r->pixels = pixels;
    r->scores = scores;
    r->arrow = arrow;
    open_runtime->push(r);
    return r;
}

// Waits for the answer, a class; -1: the device failed.
int runtime_wait(request *r)
{
    const int answer = r->answered.get();
    delete r;
    return answer;
}

void runtime_close()
{
    PROF_SCOPE_CAT("runtime", "runtime_close");
    driver_close();
    delete open_runtime;
    open_runtime = nullptr;
}

}
