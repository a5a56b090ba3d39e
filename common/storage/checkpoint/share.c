#include "common/storage/checkpoint/share.h"
#include "common/model/arrays.h"

#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/safetensors.h"

static bool is_model(const struct manifest_piece *piece)
{
    return !strcmp(piece->file, "model.safetensors");
}

static bool is_optimizer(const struct manifest_piece *piece)
{
    return !strncmp(piece->file, "optimizer-", 10);
}

static struct safetensors_slice slice_of(const struct manifest *m, const struct model_layout *layout,
                                         const struct manifest_piece *piece)
{
    int part = (int)strtol(piece->file + 10, NULL, 10) - 1, parts = manifest_parts(m);
    return (struct safetensors_slice){model_optimizer_part(layout, part, parts), part, parts};
}

void share_header(const struct manifest *m, const struct model_layout *layout, int i, struct str *out)
{
    const struct manifest_piece *piece = &m->piece[i];
    if (is_model(piece)) {
        safetensors_model_header(layout, out);
    } else if (is_optimizer(piece)) {
        struct safetensors_slice slice = slice_of(m, layout, piece);
        safetensors_optimizer_header(&slice, out);
    }
}

/* By where its middle lies, so that no share is larger than its due by more than half a piece at each end. */
int share_of_piece(const struct manifest *m, int i, int parts)
{
    int64_t before = 0, total = manifest_bytes(m);
    for (int j = 0; j < i; j++)
        before += m->piece[j].bytes;
    double middle = (double)before + (double)m->piece[i].bytes / 2;
    int share = (int)(middle * parts / (double)total);
    return share < parts ? share : parts - 1;
}

/* A stretch of a file that belongs to one place. */
struct stretch {
    int64_t begin, end;
    int array;
    int64_t first;
};

static int stretches(const struct manifest *m, const struct model_layout *layout, int i,
                     struct stretch out[SHARE_RUNS_MAX])
{
    const struct manifest_piece *piece = &m->piece[i];
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    share_header(m, layout, i, &header);
    int64_t at = (int64_t)header.length;
    str_clear(&header);
    if (!is_model(piece) && !is_optimizer(piece)) {
        out[0] = (struct stretch){0, piece->offset + piece->bytes, -1, 0};
        return 1;
    }
    out[0] = (struct stretch){0, at, -1, 0};
    if (is_model(piece)) {
        out[1] = (struct stretch){at, at + 4 * layout->parameters, 0, 0};
        return 2;
    }
    struct model_range range = slice_of(m, layout, piece).range;
    int64_t bytes = 4 * range.count;
    for (int array = 1; array < MODEL_ARRAYS; array++, at += bytes)
        out[array] = (struct stretch){at, at + bytes, array, range.first};
    return MODEL_ARRAYS;
}

int share_runs(const struct manifest *m, const struct model_layout *layout, int i, int64_t offset,
               int64_t bytes, struct share_run run[SHARE_RUNS_MAX], struct error *err)
{
    int64_t end = offset + bytes;
    struct stretch stretch[SHARE_RUNS_MAX];
    int found = stretches(m, layout, i, stretch), n = 0;
    for (int s = 0; s < found; s++) {
        const struct stretch *of = &stretch[s];
        int64_t from = of->begin > offset ? of->begin : offset;
        int64_t to = of->end < end ? of->end : end;
        if (from >= to)
            continue;
        if (of->array >= 0 && ((from - of->begin) % 4 || (to - of->begin) % 4))
            return err_set(err, ERR_DATA, "%s: a piece ends in the middle of a number", m->piece[i].file);
        run[n++] = (struct share_run){from, to - from, of->array, of->first + (from - of->begin) / 4};
    }
    return n;
}

static void extend(struct model_range *range, const struct share_run *run)
{
    int64_t end = run->first + run->bytes / 4, was = range->first + range->count;
    if (!range->count) {
        *range = (struct model_range){run->first, run->bytes / 4};
        return;
    }
    int64_t first = run->first < range->first ? run->first : range->first;
    *range = (struct model_range){first, (end > was ? end : was) - first};
}

int share_ranges(const struct manifest *m, const struct model_layout *layout, int parts,
                 struct worker_set shares, struct model_range range[MODEL_ARRAYS_MAX], struct error *err)
{
    memset(range, 0, MODEL_ARRAYS_MAX * sizeof *range);
    for (int i = 0; i < m->pieces; i++) {
        struct share_run run[SHARE_RUNS_MAX];
        if (!set_has(shares, share_of_piece(m, i, parts)))
            continue;
        int runs = share_runs(m, layout, i, m->piece[i].offset, m->piece[i].bytes, run, err);
        if (runs < 0)
            return -1;
        for (int r = 0; r < runs; r++)
            if (run[r].array >= 0)
                extend(&range[run[r].array], &run[r]);
    }
    return 0;
}
