#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/arrays.h"
#include "common/model/image.h"
#include "common/storage/checkpoint/folder_texts.h"
#include "common/storage/checkpoint/manifest.h"
#include "common/storage/checkpoint/safetensors.h"

enum { CONFIG_BYTES_MAX = 1 << 16 };

void manifest_optimizer_name(char out[MANIFEST_FILE_MAX], int part, int parts, const uint8_t *lineage)
{
    char hex[17] = "";
    if (lineage)
        hex_encode(lineage, 8, hex);
    snprintf(out, MANIFEST_FILE_MAX, "optimizer-%05d-of-%05d%s%s.safetensors", part + 1, parts,
             lineage ? "-" : "", hex);
}

static int by_place(const void *a, const void *b)
{
    const struct manifest_piece *x = a, *y = b;
    int files = strcmp(x->file, y->file);
    if (files)
        return files;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* Size of the file whose pieces start at i, -1 where they leave gaps or overlap; *next as the word says. */
static int64_t tiled_bytes(const struct manifest *m, int i, int *next)
{
    int64_t at = 0;
    int first = i;
    bool tiled = true;
    for (; i < m->pieces && !strcmp(m->piece[i].file, m->piece[first].file); i++) {
        tiled = tiled && m->piece[i].offset == at && m->piece[i].bytes > 0;
        at += m->piece[i].bytes;
    }
    *next = i;
    return tiled ? at : -1;
}

static int64_t model_bytes(const struct model_layout *layout)
{
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_model_header(layout, &header);
    int64_t bytes = (int64_t)header.length + 4 * layout->parameters;
    str_clear(&header);
    return bytes;
}

static int64_t optimizer_bytes(const struct model_layout *layout, int part, int parts)
{
    struct safetensors_slice slice = {model_optimizer_part(layout, part, parts), part, parts};
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_optimizer_header(&slice, &header);
    int64_t bytes = (int64_t)header.length + (MODEL_ARRAYS - 1) * 4 * slice.range.count;
    str_clear(&header);
    return bytes;
}

struct files {
    int optimizers; /* seen so far; they sort by part */
    bool model, config;
};

static bool is_optimizer(const struct manifest *m, const char *name, int part, int parts)
{
    char now[MANIFEST_FILE_MAX], once[MANIFEST_FILE_MAX];
    manifest_optimizer_name(now, part, parts, m->lineage);
    manifest_optimizer_name(once, part, parts, NULL);
    return part < parts && (!strcmp(name, now) || !strcmp(name, once));
}

static int check_file(struct files *seen, const struct manifest *m, const char *name, int64_t bytes,
                      const struct model_layout *layout, struct error *err)
{
    int parts = manifest_parts(m);
    int64_t size = bytes;
    if (!strcmp(name, "config.json")) {
        seen->config = true;
        size = bytes <= CONFIG_BYTES_MAX ? bytes : CONFIG_BYTES_MAX;
    } else if (folder_text_is_optional(name)) {
        size = bytes <= MANIFEST_TOKENIZER_MAX ? bytes : MANIFEST_TOKENIZER_MAX;
    } else if (!strcmp(name, "model.safetensors")) {
        seen->model = true;
        size = model_bytes(layout);
    } else if (is_optimizer(m, name, seen->optimizers, parts)) {
        size = optimizer_bytes(layout, seen->optimizers++, parts);
    } else {
        return err_set(err, ERR_DATA, "file %s does not belong here (%d of %d optimizer files before it)",
                       name, seen->optimizers, parts);
    }
    if (bytes < 0)
        return err_set(err, ERR_DATA, "the pieces of %s leave gaps or overlap", name);
    if (bytes != size)
        return err_set(err, ERR_DATA, "%s has %lld bytes instead of %lld", name, (long long)bytes,
                       (long long)size);
    return 0;
}

static int check_files(const struct manifest *m, const struct model_layout *layout, struct error *err)
{
    struct files seen = {0};
    int parts = manifest_parts(m);
    for (int i = 0; i < m->pieces;) {
        const char *name = m->piece[i].file;
        int64_t bytes = tiled_bytes(m, i, &i);
        if (check_file(&seen, m, name, bytes, layout, err) < 0)
            return -1;
    }
    if (!seen.model || !seen.config || parts < 1 || seen.optimizers != parts)
        return err_set(err, ERR_DATA, "files are missing: %s%s%d of %d optimizer files are there",
                       seen.model ? "" : "model.safetensors, ", seen.config ? "" : "config.json, ",
                       seen.optimizers, parts);
    return 0;
}

int manifest_check_pieces(struct manifest *m, struct error *err)
{
    if (m->pieces < 0 || m->pieces > MANIFEST_PIECES_MAX)
        return err_set(err, ERR_DATA, "%d pieces are more than %d", m->pieces, MANIFEST_PIECES_MAX);
    struct model_layout *layout = malloc(sizeof *layout);
    if (!layout)
        return err_set(err, ERR_MACHINE, "out of memory");
    image_or_model_layout(layout, &m->shape);
    qsort(m->piece, (size_t)m->pieces, sizeof *m->piece, by_place);
    int result = check_files(m, layout, err);
    free(layout);
    return result;
}

int manifest_parts(const struct manifest *m)
{
    for (int i = 0; i < m->pieces; i++) {
        const char *of = strstr(m->piece[i].file, "-of-");
        if (!strncmp(m->piece[i].file, "optimizer-", 10) && of)
            return (int)strtol(of + 4, NULL, 10);
    }
    return 0;
}

int64_t manifest_bytes(const struct manifest *m)
{
    int64_t bytes = 0;
    for (int i = 0; i < m->pieces; i++)
        bytes += m->piece[i].bytes;
    return bytes;
}
