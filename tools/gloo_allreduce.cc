/* What gloo's allreduce takes over loopback TCP, measured as ring_bench does (tests/unit/trainer/collective/ring_bench.c).
 *     gloo_allreduce FOLDER WORLD BYTES...   the folder is empty; the ranks find each other by it */
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

using context = std::shared_ptr<gloo::rendezvous::Context>;

static double now()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static double cpu_seconds()
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double sum_once(const context &c, std::vector<float> &from, std::vector<float> &to)
{
    double begun = now();
    gloo::AllreduceOptions options(c);
    options.setInput(from.data(), from.size());
    options.setOutput(to.data(), to.size());
    options.setReduceFunction([](void *a, const void *b, const void *d, size_t n) { gloo::sum<float>(a, b, d, n); });
    gloo::allreduce(options);
    return now() - begun;
}

/* rank 0's value, at all. */
template <typename T> static T tell(const context &c, T value, int root)
{
    gloo::BroadcastOptions options(c);
    options.setOutput(&value, 1);
    options.setRoot(root);
    gloo::broadcast(options);
    return value;
}

static void time_size(const context &c, long long bytes)
{
    std::vector<float> from((size_t)bytes / 4, 1.0f), to((size_t)bytes / 4, 1.0f);
    std::vector<double> took;
    double once = 0, all = 0;
    for (int i = 0; i < 3; i++)
        once = sum_once(c, from, to);
    int sums = tell(c, std::min(20000, std::max(5, (int)(0.3 / once))), 0);
    double cpu = cpu_seconds();
    for (int i = 0; i < sums; i++)
        took.push_back(sum_once(c, from, to));
    cpu = cpu_seconds() - cpu;
    for (int r = 0; r < c->size; r++)
        all += tell(c, cpu, r);
    std::sort(took.begin(), took.end());
    if (c->rank == 0)
        printf("%lld %.9f %.4f\n", bytes, took[took.size() / 2], all / ((double)sums * (double)bytes * 1e-9));
    fflush(stdout);
}

static void work(const char *folder, int rank, int world, int argc, char **argv)
{
    auto device = gloo::transport::tcp::CreateDevice("127.0.0.1");
    auto store = gloo::rendezvous::FileStore(folder);
    auto c = std::make_shared<gloo::rendezvous::Context>(rank, world);
    c->connectFullMesh(store, device);
    for (int i = 3; i < argc; i++)
        time_size(c, atoll(argv[i]));
    gloo::BarrierOptions barrier(c);
    gloo::barrier(barrier);
}

int main(int argc, char **argv)
{
    int world = argc > 3 ? atoi(argv[2]) : 0, status, bad = 0;
    if (world < 2)
        return 2;
    for (int r = 0; r < world; r++) {
        if (fork() == 0) {
            work(argv[1], r, world, argc, argv);
            _exit(0);
        }
    }
    while (wait(&status) > 0)
        bad |= status;
    return bad ? 4 : 0;
}
