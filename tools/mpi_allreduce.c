/* What MPI_Allreduce takes, measured as ring_bench does (tests/unit/trainer/collective/ring_bench.c).
 *     mpirun -np WORLD mpi_allreduce BYTES... */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { SUMS_MAX = 20000, SUMS_LEAST = 5 };

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sum_once(const uint32_t *from, uint32_t *to, int64_t count)
{
    double begun = MPI_Wtime();
    MPI_Allreduce(from, to, (int)count, MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
    return MPI_Wtime() - begun;
}

static void time_size(int rank, int64_t bytes)
{
    static double took[SUMS_MAX];
    uint32_t *from = malloc((size_t)bytes), *to = malloc((size_t)bytes);
    double once = 0, cpu, all;
    int sums;
    memset(from, 1, (size_t)bytes);
    memset(to, 1, (size_t)bytes);
    for (int i = 0; i < 3; i++)
        once = sum_once(from, to, bytes / 4);
    sums = once > 0 ? (int)(0.3 / once) : SUMS_MAX;
    sums = sums < SUMS_LEAST ? SUMS_LEAST : sums > SUMS_MAX ? SUMS_MAX : sums;
    MPI_Bcast(&sums, 1, MPI_INT, 0, MPI_COMM_WORLD);
    cpu = cpu_seconds();
    for (int i = 0; i < sums; i++)
        took[i] = sum_once(from, to, bytes / 4);
    cpu = cpu_seconds() - cpu;
    MPI_Reduce(&cpu, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    qsort(took, (size_t)sums, sizeof *took, ascending);
    if (rank == 0)
        printf("%lld %.9f %.4f\n", (long long)bytes, took[sums / 2], all / ((double)sums * (double)bytes * 1e-9));
    fflush(stdout);
    free(from);
    free(to);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++)
        time_size(rank, strtoll(argv[i], NULL, 10));
    MPI_Finalize();
    return 0;
}
