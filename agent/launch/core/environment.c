/* Makes the environment of each process that a launcher starts: what the image and the pod's template give
 * stays, and ranks, hosts and ports are put over it. processes.c makes one for each process that it
 * starts. */
#include "agent/launch/core/environment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/launch/core/aside.h"
#include "common/base/address.h"
#include "common/base/assert.h"
#include "common/job/python.h"

enum { HOST_TEXT = 256, ENVIRONMENT_MAX = 64 * 1024 };

bool launch_is_torchrun(const struct job_list *command)
{
    return python_starts_ranks(command);
}

int launch_processes(const struct job_spec *spec)
{
    RM_ASSERT(spec->launch.processes >= 1, "%d processes on each worker", spec->launch.processes);
    return launch_is_torchrun(&spec->launch.command) ? 1 : spec->launch.processes;
}

/* ---- what is there ---- */

/* What of the container's own environment decides about what is said. */
struct found {
    bool threads;         /* OMP_NUM_THREADS is set */
    const char *python;   /* PYTHONPATH's value, aside or not; NULL: unset */
    bool python_is_aside; /* exec.h gives it its name back */
};

static bool same_name(const char *a, const char *b)
{
    size_t n = strcspn(a, "=");
    return n == strcspn(b, "=") && !strncmp(a, b, n);
}

static struct found find_in_base(char *const *base)
{
    struct found found = {0};
    for (; *base; base++) {
        const char *entry = *base, *value = strchr(entry, '=');
        found.threads = found.threads || same_name(entry, "OMP_NUM_THREADS");
        bool aside = same_name(entry, ASIDE_PREFIX "PYTHONPATH");
        if (!value || !(aside || same_name(entry, "PYTHONPATH")))
            continue;
        found.python = value + 1;
        found.python_is_aside = aside;
    }
    return found;
}

/* ---- what is said ---- */

static void set_variable(struct launch_environment *e, const char *name, const char *value)
{
    RM_ASSERT(e->count < LAUNCH_NAMES_MAX, "%d names are set", e->count);
    e->count++;
    str_addf(&e->text, "%s=%s", name, value);
    str_add(&e->text, "", 1);
}

static void set_number(struct launch_environment *e, const char *name, int64_t value)
{
    RM_ASSERT(value >= 0, "%s is %" PRId64, name, value);
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    set_variable(e, name, text);
}

static void add_ranks(struct launch_environment *e, const struct launch_process *p)
{
    const struct launch_ring *r = p->ring;
    RM_ASSERT(r->rank >= 0 && r->rank < r->world && p->local >= 0 && p->local < p->processes,
              "process %d of %d, on worker %d of %d", p->local, p->processes, r->rank, r->world);
    int rank = r->rank * p->processes + p->local, world = r->world * p->processes;
    set_number(e, "RANK", rank);
    set_number(e, "WORLD_SIZE", world);
    set_number(e, "LOCAL_RANK", p->local);
    set_number(e, "LOCAL_WORLD_SIZE", p->processes);
    set_number(e, "GROUP_RANK", r->rank);
    set_number(e, "GROUP_WORLD_SIZE", r->world);
    set_number(e, "ROLE_RANK", rank);
    set_number(e, "ROLE_WORLD_SIZE", world);
    set_variable(e, "ROLE_NAME", "default");
    set_variable(e, "TORCHELASTIC_RUN_ID", p->job);
    set_number(e, "TORCHELASTIC_RESTART_COUNT", r->begun);
    set_number(e, "TORCHELASTIC_MAX_RESTARTS", 0);
    set_variable(e, "TORCHELASTIC_USE_AGENT_STORE", "False"); /* rank 0 serves the store itself */
    set_variable(e, "TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
    if (p->error_file)
        set_variable(e, "TORCHELASTIC_ERROR_FILE", p->error_file);
    set_number(e, "JAX_NUM_PROCESSES", world);
    set_number(e, "JAX_PROCESS_ID", rank);
}

/* torchrun takes each of its options from PET_ and the option's name. */
static void add_torchrun(struct launch_environment *e, const struct launch_process *p, const char *host,
                         int port)
{
    RM_ASSERT(p->ring->rank >= 0 && p->ring->rank < p->ring->world && p->processes >= 1,
              "%d processes on worker %d of %d", p->processes, p->ring->rank, p->ring->world);
    set_number(e, "PET_NNODES", p->ring->world);
    set_number(e, "PET_NODE_RANK", p->ring->rank);
    set_number(e, "PET_NPROC_PER_NODE", p->processes);
    set_number(e, "PET_MAX_RESTARTS", 0);
    set_variable(e, "PET_MASTER_ADDR", host);
    set_number(e, "PET_MASTER_PORT", port);
    set_variable(e, "PET_RDZV_ID", p->job);
    if (p->error_file)
        set_variable(e, "TORCHELASTIC_ERROR_FILE",
                     p->error_file); /* there it says which rank failed first, and of what */
}

static void add_hosts(struct launch_environment *e, const struct launch_ring *r)
{
    RM_ASSERT(r->world >= 1 && r->world <= RM_WORKERS_MAX, "the hosts of %d workers", r->world);
    struct str hosts = str_init(RM_WORKERS_MAX * RM_ADDRESS_MAX);
    char host[HOST_TEXT];
    int port;
    for (int i = 0; i < r->world; i++)
        if (address_split(r->address[i], host, sizeof host, &port))
            str_addf(&hosts, "%s%s", i ? "," : "", host);
    set_variable(e, "RINGMASTER_HOSTS", str_text(&hosts));
    str_clear(&hosts);
}

/* An empty part of PYTHONPATH means the folder that the program was started in. */
static void add_python(struct launch_environment *e, const char *folder, const struct found *base)
{
    RM_ASSERT(*folder, "name %d is a folder without a name for Python", e->count);
    const char *name = base->python_is_aside ? ASIDE_PREFIX "PYTHONPATH" : "PYTHONPATH";
    bool any = base->python && *base->python;
    struct str path = str_init(ENVIRONMENT_MAX);
    str_addf(&path, "%s%s%s", any ? base->python : "", any ? ":" : "", folder);
    if (!path.truncated)
        set_variable(e, name, str_text(&path));
    str_clear(&path);
}

static void fill_environment(struct launch_environment *e, const struct launch_process *p,
                             const struct found *base)
{
    RM_ASSERT(p->processes >= 1 && p->threads >= 0, "%d processes with %d threads", p->processes, p->threads);
    char host[HOST_TEXT] = "", generation[48];
    int port = 0;
    const struct launch_ring *r = p->ring;
    if (p->python && *p->python)
        add_python(e, p->python, base);
    if (p->processes > 1 && !base->threads)
        set_variable(e, "OMP_NUM_THREADS", "1"); /* or each process takes all cores */
    else if (p->threads && !base->threads)
        set_number(e, "OMP_NUM_THREADS", p->threads);
    if (p->socket)
        set_variable(e, "RINGMASTER_SOCKET", p->socket);
    if (!r && p->error_file) {
        set_variable(e, "TORCHELASTIC_ERROR_FILE", p->error_file);
        set_number(e, "RINGMASTER_WORKER", p->worker); /* which device it takes may follow from it alone */
    }
    if (!r)
        return;
    address_split(r->address[0], host, sizeof host, &port);
    if (p->torchrun)
        add_torchrun(e, p, host, port);
    else
        add_ranks(e, p);
    set_variable(e, "MASTER_ADDR", host);
    set_number(e, "MASTER_PORT", port);
    set_variable(e, "JAX_COORDINATOR_ADDRESS", r->address[0]);
    add_hosts(e, r);
    snprintf(generation, sizeof generation, "%" PRId64 ".%" PRId64, r->generation.term, r->generation.n);
    set_variable(e, "RINGMASTER_GENERATION", generation);
}

/* ---- what stays ---- */

static bool is_kept(const struct launch_environment *e, const char *entry)
{
    RM_ASSERT(e->count >= 0 && e->count <= LAUNCH_NAMES_MAX, "%d names are set", e->count);
    for (int i = 0; i < e->count; i++)
        if (same_name(e->entry[i], entry))
            return false;
    return strncmp(entry, "RINGMASTER_", 11) != 0 || same_name("RINGMASTER_LIBRARY", entry) ||
           aside_is_put(entry);
}

char **launch_environment_make(const struct launch_process *p, char *const *base,
                               struct launch_environment *out)
{
    size_t given = 0, n = 0;
    *out = (struct launch_environment){.text = str_init(ENVIRONMENT_MAX)};
    struct found found = find_in_base(base);
    fill_environment(out, p, &found);
    const char *at = str_text(&out->text);
    for (int i = 0; i < out->count; i++, at += strlen(at) + 1)
        out->entry[i] = at;
    while (base[given])
        given++;
    char **made = calloc(given + (size_t)out->count + 1, sizeof *made);
    for (size_t i = 0; made && i < given; i++)
        if (is_kept(out, base[i]))
            made[n++] = base[i];
    for (int i = 0; made && i < out->count; i++)
        made[n++] = (char *)(uintptr_t)out->entry[i];
    RM_ASSERT(n <= given + (size_t)out->count, "%zu names, of %zu and %d", n, given, out->count);
    return made;
}

void launch_environment_clear(struct launch_environment *e)
{
    str_clear(&e->text);
}
