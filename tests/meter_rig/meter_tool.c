/* meter_tool --job FILE --prices FILE --pods FILE [--each S] [--away S]
 *
 * What the operator's meter makes of pods that come and go: one job's status.cost at the end, as JSON. It
 * plans whenever a pod gets its node, ends or is gone, and whenever a plan asks to be woken, and goes on from
 * the status that it wrote, as the shell does. --each: after so many seconds its process ends, and another
 * one, which knows the status alone, comes
 * --away seconds later.
 *
 * A pod is a line "WORKER ATTEMPT TYPE ZONE CAPACITY ASKED THERE BOUND ENDED SEEN HOW": worker -1 is a
 * coordinator; CAPACITY is spot or on-demand; ASKED of THERE are thousandths of a processor; moments are
 * seconds of the epoch. HOW is `ends` (its containers end at ENDED, and it is deleted at SEEN) or `vanishes`
 * (its machine is away from ENDED on; at SEEN
 * the API server says that it is silent, and some seconds later it has no such node). Exit code 2: what is
 * told is none of that. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/file.h"
#include "common/wire/json.h"
#include "operator/core/plan.h"

enum { PODS = 8192, TEXT_MAX = 4 << 20, MS_S = 1000 };

struct life {
    struct pod_view view;
    struct node_view node;
    int64_t bound_s, ended_s, seen_s;
    bool vanishes;
};

struct meter_run {
    struct job_view job;
    struct prices prices;
    struct op_memo memo;
    struct op_trials trials;
    int count;
    struct life life[PODS];
    const struct pod_view *there[PODS];
    int there_count;
    int64_t now_s, wake_s, born_s;
    int64_t each_s, away_s;
    int64_t plans, processes;
};

struct options {
    const char *job, *prices, *pods;
    int64_t each_s, away_s;
};

/* ---- what is told ---- */

static int slurp(const char *path, struct str *text, struct error *err)
{
    *text = str_init(TEXT_MAX);
    return file_read(path, text, err);
}

static int read_job(struct meter_run *m, const char *path, struct error *err)
{
    struct str text;
    int rc = slurp(path, &text, err);
    struct js *object = rc ? NULL : js_parse(str_text(&text), text.length, path, err);
    rc = object ? job_project(object, &m->job, err) : -1;
    js_free(object);
    str_clear(&text);
    return rc;
}

static int read_prices(struct meter_run *m, const char *path, struct error *err)
{
    struct str text;
    int rc = slurp(path, &text, err);
    if (!rc)
        rc = prices_parse(&m->prices, str_text(&text), text.length, err);
    str_clear(&text);
    return rc;
}

static void fill(const struct meter_run *m, struct life *life, int asked, int there)
{
    struct pod_view *pod = &life->view;
    pod->role = pod->index < 0 ? OP_COORDINATOR : OP_WORKER;
    pod->phase = OP_RUNNING;
    pod->ready = true;
    pod->created_ms = pod->bound_ms = life->bound_s * MS_S;
    pod->asked = (struct resources){.count = 1, .of = {{"cpu", asked}}};
    life->node.allocatable = (struct resources){.count = 1, .of = {{"cpu", there}}};
    life->node.ready = true;
    if (pod->index < 0)
        name_coordinator(m->job.name, m->job.uid, pod->attempt, pod->name);
    else
        name_worker(m->job.name, m->job.uid, pod->index, pod->attempt, pod->name);
    snprintf(pod->uid, sizeof pod->uid, "uid-%d", m->count);
    snprintf(life->node.name, sizeof life->node.name, "node-%d", m->count);
    text_copy(pod->node, sizeof pod->node, life->node.name);
    text_copy(pod->owner, sizeof pod->owner, m->job.name);
    text_copy(pod->owner_uid, sizeof pod->owner_uid, m->job.uid);
}

static int read_pod(struct meter_run *m, const char *row, struct error *err)
{
    struct life *life = &m->life[m->count];
    struct price_machine *machine = &life->node.machine;
    char capacity[16], how[16];
    int asked, there;
    *life = (struct life){.bound_s = 0};
    if (m->count == PODS)
        return err_set(err, ERR_USAGE, "more than %d pods", PODS);
    int read = sscanf(row, "%d %d %63s %63s %15s %d %d %" SCNd64 " %" SCNd64 " %" SCNd64 " %15s",
                      &life->view.index, &life->view.attempt, machine->type, machine->zone, capacity, &asked,
                      &there, &life->bound_s, &life->ended_s, &life->seen_s, how);
    bool spot = !strcmp(capacity, "spot"), vanishes = read == 11 && !strcmp(how, "vanishes");
    if (read != 11 || (!spot && strcmp(capacity, "on-demand") != 0) ||
        (!vanishes && strcmp(how, "ends") != 0) || life->view.index >= RM_WORKERS_MAX ||
        life->bound_s > life->ended_s || life->ended_s > life->seen_s)
        return err_set(err, ERR_USAGE, "no pod: \"%.100s\"", row);
    machine->capacity = spot ? PRICE_SPOT : PRICE_ON_DEMAND;
    life->vanishes = vanishes;
    fill(m, life, asked, there);
    m->count++;
    return 0;
}

static int read_pods(struct meter_run *m, const char *path, struct error *err)
{
    struct str text;
    char row[256];
    int rc = slurp(path, &text, err);
    const char *at = rc ? "" : str_text(&text);
    while (!rc && *at) {
        size_t length = strcspn(at, "\n");
        snprintf(row, sizeof row, "%.*s", (int)length, at);
        rc = read_pod(m, row, err);
        at += length + (at[length] == '\n');
    }
    str_clear(&text);
    return rc;
}

/* ---- time ---- */

/* When its node is no more: whoever runs a cluster on a cloud asks that for machines which are silent. */
static int64_t away_s(const struct life *life)
{
    return life->seen_s + 10;
}

static const struct node_view *find(void *nodes, const char *name)
{
    struct meter_run *m = nodes;
    for (int i = 0; i < m->count; i++) {
        struct life *life = &m->life[i];
        if (strcmp(life->node.name, name) != 0)
            continue;
        bool silent = life->vanishes && m->now_s >= life->seen_s;
        life->node.ready = !silent;
        life->node.unseen_ms = silent ? node_last_seen(life->seen_s * MS_S, 0) : 0;
        return life->vanishes && m->now_s >= away_s(life) ? NULL : &life->node;
    }
    return NULL;
}

/* A pod whose machine is away stays for as long again as that took to be seen. */
static int64_t gone_s(const struct life *life)
{
    return life->vanishes ? 2 * life->seen_s - life->ended_s : life->seen_s;
}

static void see(struct meter_run *m)
{
    m->there_count = 0;
    for (int i = 0; i < m->count; i++) {
        struct life *life = &m->life[i];
        if (m->now_s < life->bound_s || m->now_s >= gone_s(life))
            continue;
        if (!life->vanishes && m->now_s >= life->ended_s) {
            life->view.phase = OP_SUCCEEDED;
            life->view.terminated = life->view.left = true;
            life->view.ready = false;
            life->view.ended_ms = life->view.finished_ms = life->ended_s * MS_S;
        }
        m->there[m->there_count++] = &life->view;
    }
}

static void write_status(struct meter_run *m, const struct op_plan *plan)
{
    struct error err = {0};
    for (int i = 0; i < plan->actions_count; i++) {
        const struct op_action *action = &plan->action[i];
        op_memo_done(&m->memo, &m->job, action);
        if (action->kind != OP_STATUS)
            continue;
        struct js *object = js_parse(str_text(&action->body), action->body.length, "status", &err);
        status_read(js_get(object, "status"), &m->job.status);
        js_free(object);
    }
}

static void plan_now(struct meter_run *m)
{
    see(m);
    struct op_view view = {.job = &m->job,
                           .pods = m->there,
                           .pods_count = m->there_count,
                           .node = find,
                           .nodes = m,
                           .nodes_known = true,
                           .memo = &m->memo,
                           .trials = &m->trials,
                           .prices = &m->prices,
                           .now_ms = m->now_s * MS_S,
                           .chance = "chancechancechan",
                           .sha256 = sha256_once,
                           .settings = {.worker_image = "ours:1", .operator_namespace = "ringmaster-system"}};
    struct op_plan *plan = job_plan(&view);
    op_memo_metered(&m->memo, &m->job, plan);
    write_status(m, plan);
    op_memo_told(&m->memo, plan);
    m->wake_s = plan->wake_ms ? (plan->wake_ms + MS_S - 1) / MS_S : INT64_MAX;
    m->plans++;
    plan_free(plan);
}

static int64_t sooner(int64_t a, int64_t b, int64_t after)
{
    return b > after && b < a ? b : a;
}

static int64_t next_s(const struct meter_run *m)
{
    int64_t at = m->wake_s > m->now_s ? m->wake_s : m->now_s + 1;
    for (int i = 0; i < m->count; i++) {
        const struct life *life = &m->life[i];
        at = sooner(at, life->bound_s, m->now_s);
        at = sooner(at, life->vanishes ? life->seen_s : life->ended_s, m->now_s);
        at = sooner(at, life->vanishes ? away_s(life) : life->ended_s, m->now_s);
        at = sooner(at, gone_s(life), m->now_s);
    }
    return at;
}

static void meter_all(struct meter_run *m)
{
    int64_t last_s = 0;
    m->now_s = INT64_MAX - 1;
    for (int i = 0; i < m->count; i++) {
        m->now_s = m->life[i].bound_s < m->now_s ? m->life[i].bound_s : m->now_s;
        last_s = gone_s(&m->life[i]) > last_s ? gone_s(&m->life[i]) : last_s;
    }
    m->born_s = m->now_s;
    m->processes = 1;
    while (m->now_s <= last_s) {
        plan_now(m);
        m->now_s = next_s(m);
        if (!m->each_s || m->now_s < m->born_s + m->each_s)
            continue;
        m->now_s = m->born_s + m->each_s + m->away_s;
        m->born_s = m->now_s;
        m->memo = (struct op_memo){.dry_generation = 0};
        m->processes++;
    }
}

/* ---- the program ---- */

static int usage(void)
{
    fprintf(stderr, "usage: meter_tool --job FILE --prices FILE --pods FILE [--each S] [--away S]\n");
    return 2;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    static const struct option names[] = {{"job", 1, 0, 'j'},  {"prices", 1, 0, 'p'}, {"pods", 1, 0, 'o'},
                                          {"each", 1, 0, 'e'}, {"away", 1, 0, 'a'},   {0}};
    int c;
    *o = (struct options){.each_s = 0};
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (c == '?')
            return false;
        if (c == 'e' || c == 'a')
            *(c == 'e' ? &o->each_s : &o->away_s) = strtoll(optarg, NULL, 10);
        else
            *(c == 'j' ? &o->job : c == 'p' ? &o->prices : &o->pods) = optarg;
    }
    return optind == argc && o->job && o->prices && o->pods;
}

static void print(const struct meter_run *m)
{
    struct str text = str_init(TEXT_MAX);
    struct js *cost = status_cost_json(&m->job.status);
    js_set_int(cost, "plans", m->plans);
    js_set_int(cost, "processes", m->processes);
    js_print(cost, &text);
    printf("%s\n", str_text(&text));
    js_free(cost);
    str_clear(&text);
}

int main(int argc, char **argv)
{
    struct options o;
    struct error err = {0};
    if (!read_options(argc, argv, &o))
        return usage();
    struct meter_run *m = calloc(1, sizeof *m);
    if (!m)
        return 1;
    m->each_s = o.each_s;
    m->away_s = o.away_s;
    int rc = read_job(m, o.job, &err);
    if (!rc)
        rc = read_prices(m, o.prices, &err);
    if (!rc)
        rc = read_pods(m, o.pods, &err);
    if (!rc) {
        meter_all(m);
        print(m);
    } else {
        fprintf(stderr, "meter_tool: %s\n", err.text);
    }
    job_clear(&m->job);
    prices_clear(&m->prices);
    free(m);
    return rc ? 2 : 0;
}
