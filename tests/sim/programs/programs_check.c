/* What must hold in the simulator of programs, as seen from outside. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/programs/programs.h"

static const rm_time on_its_way = 5 * RM_MS; /* a word, at most */

void violate(struct sim *sim, const char *format, ...)
{
    va_list args;
    if (sim->violation[0])
        return;
    va_start(args, format);
    vsnprintf(sim->violation, sizeof sim->violation, format, args);
    va_end(args);
}

void check_start(struct sim *sim, int node, const struct launch_ring *ring)
{
    for (int k = 0; k < sim->nodes; k++) {
        for (int i = 0; i < PROCESSES; i++) {
            const struct process *p = &sim->node[k].process[i];
            bool other = generation_compare(p->generation, ring->generation) != 0;
            bool told = other && !sim->node[k].excused && !sim->frozen.on; /* which has its own rule */
            if (p->alive && (k == node || told))
                violate(sim,
                        "generation %" PRId64 ".%" PRId64 " starts while one of %" PRId64 ".%" PRId64
                        " lives on node %d",
                        ring->generation.term, ring->generation.n, p->generation.term, p->generation.n, k);
        }
    }
    if (!sim->first.n)
        sim->first = ring->generation;
    bool is_first = generation_compare(ring->generation, sim->first) == 0;
    if (ring->begun == 0 && !is_first)
        violate(sim, "a generation after the first one is number 0");
    if (ring->begun != 0 && is_first && sim->term == 1) /* a successor can't know */
        violate(sim, "the first generation is number %" PRId64, ring->begun);
    if (generation_compare(ring->generation, sim->newest) > 0) {
        sim->newest = ring->generation;
        sim->world = ring->world;
        sim->generations++;
        sim->parted += wall_parts(sim, node);
    }
}

void check_end(struct sim *sim)
{
    const struct msg_generation g = sim->newest;
    int done = sim->done[g.term % TERMS_MAX][g.n % 256];
    if (sim->exit_code == 0 && done != sim->world * PROCESSES)
        violate(sim, "complete, and %d of %d processes ended well", done, sim->world * PROCESSES);
    if (sim->exit_code != 0 && sim->exit_code != 5)
        violate(sim, "it ends with %d: %s", sim->exit_code, sim->end_why);
    notice_check_end(sim);
}

/* ---- failures ---- */

void note_failure(struct sim *sim, int node, const struct message *m)
{
    struct node *n = &sim->node[node];
    if (m->type != MSG_FAULT || m->fault.kind != FAULT_PROGRAM)
        return;
    n->failed = m->generation;
    n->failed_at = sim->now;
    n->failed_launcher = n->launcher;
}

/* A launcher that ended took its word with it, and where a worker was lost nobody is to blame. */
static void check_failures(struct sim *sim)
{
    bool told = sim->lost || sim->sent.term != sim->term;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        told = told || sim->failures[w];
    for (int k = 0; k < sim->nodes && !told; k++) {
        const struct node *n = &sim->node[k];
        bool failed = n->alive && n->launcher_alive && n->launcher == n->failed_launcher &&
                      generation_compare(n->failed, sim->sent) == 0;
        if (failed && n->failed_at + on_its_way < sim->stopped_at)
            violate(sim,
                    "the program of generation %" PRId64 ".%" PRId64
                    " failed on node %d, and nobody was told",
                    n->failed.term, n->failed.n, k);
    }
}

static void note_go(struct sim *sim, const struct message *m)
{
    if (generation_compare(m->generation, sim->sent) <= 0)
        return;
    if (sim->sent.n)
        check_failures(sim);
    sim->sent = m->generation;
    notice_go(sim);
    sim->stopped_at = RM_NEVER;
    sim->lost = false;
    memset(sim->failures, 0, sizeof sim->failures);
    for (int k = 0; k < sim->nodes; k++)
        sim->node[k].excused = sim->now >= sim->node[k].heard_at + SIM_LOST_AFTER;
}

void check_action(struct sim *sim, const struct rdzv_action *a)
{
    if (a->kind == RDZV_SEND && a->send.message->type == MSG_FORM)
        notice_form(sim, a->send.message);
    if (a->kind == RDZV_SEND && a->send.message->type == MSG_GO)
        note_go(sim, a->send.message);
    if (a->kind == RDZV_SEND && a->send.message->type == MSG_STOP)
        sim->stopped_at = rm_earlier(sim->stopped_at, sim->now);
    if (a->kind != RDZV_TELL)
        return;
    sim->lost = sim->lost || a->tell->kind == TELL_WORKER_LOST;
    if (sim->frozen.on && a->tell->kind == TELL_WORKER_LOST)
        frozen_lost(sim, a->tell->attempt);
    if (a->tell->kind == TELL_WORKER_QUARANTINED)
        notice_quarantined(sim, a->tell->worker);
    if (a->tell->kind == TELL_WORKER_QUARANTINED && strstr(a->tell->text, "exit code"))
        violate(sim, "worker %d is put into quarantine for what a program ended with", a->tell->worker);
    if (a->tell->kind == TELL_PROGRAM_FAILED && sim->failures[a->tell->worker]++)
        violate(sim, "worker %d's failure is told twice", a->tell->worker);
}
