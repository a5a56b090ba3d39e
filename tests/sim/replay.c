#include "tests/sim/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"

static int wrong(struct error *err, int line, const char *what)
{
    return err_set(err, ERR_DATA, "line %d of the trace: %s", line, what);
}

static int read_moment(struct replay *r, const char *text, int line, struct error *err)
{
    char *end = NULL, *last = NULL;
    double at = strtod(text, &end);
    if (end == text || !isfinite(at) || at < 0 || at > 1e8)
        return wrong(err, line, "it does not begin with seconds since the trace's begin");
    long machines = strtol(end, &last, 10);
    if (last == end || last[strspn(last, " \t\r")])
        return wrong(err, line, "there is to be a whole number of machines behind the seconds, and no more");
    if (machines < 0 || machines > RM_WORKERS_MAX)
        return wrong(err, line, "a job has 0 to 64 machines");
    if (r->moments == REPLAY_MOMENTS)
        return wrong(err, line, "a trace has 20000 moments at most");
    rm_time moment = (rm_time)llround(at * 1e9);
    if (r->moments && moment <= r->moment[r->moments - 1].at)
        return wrong(err, line, "it is not later than the one before");
    r->moment[r->moments++] = (struct replay_moment){.at = moment, .machines = (int)machines};
    return 0;
}

int replay_read(struct replay *r, const char *text, struct error *err)
{
    char row[256];
    r->moments = 0;
    for (int line = 1; *text; line++) {
        size_t length = strcspn(text, "\n"), used = strcspn(text, "#\n");
        if (used >= sizeof row)
            return wrong(err, line, "it is longer than any moment");
        memcpy(row, text, used);
        row[used] = 0;
        if (row[strspn(row, " \t\r")] && read_moment(r, row, line, err) < 0)
            return -1;
        text += length + (text[length] == '\n');
    }
    if (r->moments < 2 || r->moment[0].at != 0)
        return err_set(err, ERR_DATA, "a trace begins at second 0 and has an end");
    r->until = r->moment[r->moments - 1].at;
    return 0;
}
