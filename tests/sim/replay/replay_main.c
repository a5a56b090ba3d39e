/* ringmaster-replay: a trace of machines on the shipped cores (replay.h), and one JSON object of what came of
 * it. Exit 1 where an invariant of the simulator does not hold, 2 where the arguments or the trace won't do.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/file.h"
#include "tests/sim/sim.h"

struct options {
    const char *trace;
    uint64_t seed;
    bool show;
};

static int usage(void)
{
    fprintf(stderr, "usage: ringmaster-replay --trace FILE [--seed N] [--show] [--least N] [--lanes N]\n"
                    "           [--lead S] [--lane S] [--start S] [--transfer S] [--save S] [--load S]\n");
    return 2;
}

static bool read_time(const char *text, rm_time *ret)
{
    char *end;
    double s = strtod(text, &end);
    *ret = (rm_time)(s * 1e9);
    return end != text && !*end && s >= 0 && s < 1e6;
}

static bool read_count(const char *text, int *ret)
{
    char *end;
    long n = strtol(text, &end, 10);
    *ret = (int)n;
    return end != text && !*end && n > 0 && n <= RM_WORKERS_MAX;
}

static bool read_option(int c, struct options *o, struct replay *r)
{
    rm_time *times[] = {['l'] = &r->lead,     ['n'] = &r->lane, ['a'] = &r->start,
                        ['t'] = &r->transfer, ['s'] = &r->save, ['o'] = &r->load};
    if (c == 'f')
        o->trace = optarg;
    else if (c == 'x')
        o->seed = strtoull(optarg, NULL, 10);
    else if (c == 'h')
        o->show = true;
    else if (c == 'm')
        return read_count(optarg, &r->least);
    else if (c == 'e')
        return read_count(optarg, &r->lanes);
    else
        return c != '?' && read_time(optarg, times[c]);
    return true;
}

static bool read_options(int argc, char **argv, struct options *o, struct replay *r)
{
    static const struct option names[] = {{"trace", 1, 0, 'f'}, {"seed", 1, 0, 'x'},     {"show", 0, 0, 'h'},
                                          {"least", 1, 0, 'm'}, {"lanes", 1, 0, 'e'},    {"lead", 1, 0, 'l'},
                                          {"lane", 1, 0, 'n'},  {"start", 1, 0, 'a'},    {"save", 1, 0, 's'},
                                          {"load", 1, 0, 'o'},  {"transfer", 1, 0, 't'}, {0}};
    int c;
    *o = (struct options){.seed = 1};
    *r = (struct replay){.least = 1,
                         .lanes = RM_WORKERS_MAX,
                         .lane = RM_S,
                         .start = 5 * RM_S,
                         .transfer = 2 * RM_S,
                         .save = 60 * RM_S,
                         .load = 60 * RM_S};
    while ((c = getopt_long(argc, argv, "", names, NULL)) != -1)
        if (!read_option(c, o, r))
            return false;
    return optind == argc && o->trace && r->lane;
}

static int read_trace(const char *path, struct replay *r)
{
    struct error err = {0};
    struct str text = str_init(REPLAY_TEXT_MAX);
    int rc = file_read(path, &text, &err);
    if (rc == 0)
        rc = replay_read(r, str_text(&text), &err);
    str_clear(&text);
    if (rc < 0)
        fprintf(stderr, "ringmaster-replay: %s: %s\n", path, err.text);
    return rc;
}

static void print(const struct sim *sim)
{
    const struct replay *r = sim->replay;
    const struct replay_result *ret = &r->ret;
    printf("{\"seconds\":%.0f,\"steps\":%" PRId64 ",\"allowed\":%.1f,\"back\":%" PRId64
           ",\"machineHours\":%.3f,\"told\":%" PRId64 ",\"out\":%" PRId64 ",\"along\":%" PRId64
           ",\"noticeSeconds\":%.1f,\"trainedSeconds\":%.1f,\"rings\":%" PRId64 ",\"loads\":%" PRId64
           ",\"events\":%" PRId64 "}\n",
           (double)r->until / 1e9, ret->steps, ret->allowed, ret->back, ret->machine_hours, ret->told,
           ret->out, ret->along, (double)ret->notice / 1e9, (double)ret->trained / 1e9, ret->rings,
           ret->loads, sim->events);
}

static int play(struct sim *sim, const struct options *o)
{
    sim->trace = o->show;
    bool fine = sim_run(sim, o->seed);
    if (fine)
        print(sim);
    else
        fprintf(stderr, "ringmaster-replay: %s\n", sim->violation);
    return !fine;
}

int main(int argc, char **argv)
{
    struct options o;
    struct replay *replay = calloc(1, sizeof *replay);
    struct sim *sim = sim_new();
    if (!replay || !sim)
        return 1;
    int rc = read_options(argc, argv, &o, replay) ? 0 : usage();
    if (!rc && read_trace(o.trace, replay) < 0)
        rc = 2;
    sim->replay = replay;
    if (!rc)
        rc = play(sim, &o);
    sim_free(sim);
    free(replay);
    return rc;
}
