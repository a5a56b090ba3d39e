#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/object/s3.h"

struct listing {
    struct s3_store *store;
    char key[S3_KEY_MAX]; /* the whole prefix */
    char token[S3_TOKEN_MAX];
    int (*visit)(void *ctx, const struct object_entry *entry, struct error *err);
    int (*visit_part)(void *ctx, const char *part, struct error *err);
    void *ctx;
    bool given_up; /* by visit, whose error stays as it is */
};

static int object_came(void *ctx, const char *key, const struct object_info *info, struct error *err)
{
    struct listing *l = ctx;
    struct object_entry entry = {.name = s3_name(l->store, key), .info = *info};
    if (strncmp(key, l->key, strlen(l->key)) != 0)
        return err_set(err, ERR_DATA, "a key that doesn't start as asked for");
    if (!entry.name)
        return 0;
    int result = l->visit ? l->visit(l->ctx, &entry, err) : l->visit_part(l->ctx, key + strlen(l->key), err);
    l->given_up = result < 0;
    return result;
}

static int folder_came(void *ctx, const char *prefix, struct error *err)
{
    struct listing *l = ctx;
    size_t length = strlen(l->key);
    if (strncmp(prefix, l->key, length) != 0)
        return err_set(err, ERR_DATA, "a prefix that doesn't start as asked for");
    if (!l->visit_part || !strcmp(prefix + length, "/"))
        return 0;
    int result = l->visit_part(l->ctx, prefix + length, err);
    l->given_up = result < 0;
    return result;
}

static int read_page(struct listing *l, struct error *err)
{
    struct s3_task task = s3_task("GET", NULL);
    struct s3_page_reader reader = {object_came, folder_came, l};
    char token[S3_TOKEN_MAX];
    task.request.most = S3_ANSWER_LIST;
    task.request.xml = true;
    s3_task_query(&task, "list-type", "2");
    s3_task_query(&task, "encoding-type", "url");
    s3_task_query(&task, "prefix", l->key);
    if (l->visit_part)
        s3_task_query(&task, "delimiter", "/");
    if (l->token[0])
        s3_task_query(&task, "continuation-token", l->token);
    int result = s3_once(l->store, &task, err);
    if (result == 0 && !s3_is_good(&task))
        result = s3_refused(l->store, &task, err);
    else if (result == 0) {
        result = s3_answer_page(str_text(&task.kept), task.kept.length, &reader, token, err);
        if (result < 0 && !l->given_up)
            err_wrap(err, "%s: the answer to LIST", l->store->base.uri);
    }
    str_clear(&task.kept);
    if (result == 0)
        memcpy(l->token, token, sizeof token);
    return result;
}

static int list_all(struct listing *l, struct object_store *base, const char *prefix, struct error *err)
{
    l->store = (struct s3_store *)base;
    if (s3_key(l->store, prefix, l->key, err) < 0)
        return -1;
    do {
        char before[S3_TOKEN_MAX];
        memcpy(before, l->token, sizeof before);
        if (read_page(l, err) < 0)
            return -1;
        if (l->token[0] && !strcmp(before, l->token))
            return err_set(err, ERR_DATA, "%s: a listing that goes in a circle", base->uri);
    } while (l->token[0]);
    return 0;
}

int s3_list(struct object_store *base, const char *prefix,
            int (*visit)(void *ctx, const struct object_entry *entry, struct error *err), void *ctx,
            struct error *err)
{
    struct listing l = {.visit = visit, .ctx = ctx};
    return list_all(&l, base, prefix, err);
}

int s3_list_folders(struct object_store *base, const char *prefix,
                    int (*visit)(void *ctx, const char *part, struct error *err), void *ctx,
                    struct error *err)
{
    struct listing l = {.visit_part = visit, .ctx = ctx};
    return list_all(&l, base, prefix, err);
}
