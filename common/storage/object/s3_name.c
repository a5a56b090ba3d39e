/* What an object is called in its store and what it is called in its bucket: the prefix is between them. */
#include <stdio.h>
#include <string.h>

#include "common/storage/object/s3.h"

int s3_key(const struct s3_store *store, const char *name, char *out, struct error *err)
{
    const char *prefix = store->place.prefix;
    int length = snprintf(out, S3_KEY_MAX, "%s%s%s", prefix, prefix[0] ? "/" : "", name ? name : "");
    if (length >= S3_KEY_MAX)
        return err_set(err, ERR_USAGE, "%s: with \"%.100s\" the key is longer than %d bytes", store->base.uri,
                       name ? name : "", S3_KEY_MAX - 1);
    return 0;
}

/* Keys of others that no name of ours can be ("a//b", "folder/") are not seen. */
const char *s3_name(const struct s3_store *store, const char *key)
{
    size_t prefix = strlen(store->place.prefix);
    if (prefix && (strncmp(key, store->place.prefix, prefix) != 0 || key[prefix] != '/'))
        return NULL;
    const char *name = key + prefix + (prefix ? 1 : 0);
    if (strlen(name) >= OBJECT_NAME_MAX)
        return NULL;
    for (const char *at = name;; at++) {
        size_t part = strcspn(at, "/");
        if (!part || (at[0] == '.' && (part == 1 || (part == 2 && at[1] == '.'))))
            return NULL;
        at += part;
        if (!*at)
            return name;
    }
}
