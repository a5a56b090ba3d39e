/* A YAML document as a small tree with line numbers (libyaml stays inside yaml.c; the prefix is yml_ because
 * libyaml exports yaml_free and the like).
 *
 * Only what a job file needs: one document of maps, lists and scalars. Refused with file:line and a sentence:
 * anchors and aliases, merge keys, tags, several documents, duplicate keys, keys that are not scalars, tabs
 * as indentation, more than YML_DEPTH_MAX levels or YML_NODES_MAX nodes (a bomb of aliases can't happen:
 * there are none). The tree owns its text; yml_free frees all of it. */
#ifndef RM_JOB_YAML_H
#define RM_JOB_YAML_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

enum { YML_DEPTH_MAX = 24, YML_NODES_MAX = 20000 };

enum yml_kind { YML_SCALAR, YML_MAP, YML_LIST };

struct yml {
    enum yml_kind kind;
    int line;          /* from 1; 0: put in by yml_set */
    char *key;         /* of an entry in a map, else NULL */
    char *text;        /* of a scalar */
    bool plain;        /* a scalar without quotes: may be a number, true or null */
    struct yml *child; /* first entry of a map or list */
    struct yml *next;  /* the next entry beside this one */
};

/* what: the file's name as messages show it. ERR_USAGE. */
int yml_parse(struct yml **ret, const char *bytes, size_t length, const char *what, struct error *err);
void yml_free(struct yml *root); /* NULL is fine */

/* The entry of that key, NULL where there is none or node is no map. */
struct yml *yml_get(const struct yml *node, const char *key);

/* The line of "spec.trainer.steps", or of the nearest group above it that is there. */
int yml_line(const struct yml *root, const char *path);

/* Puts a plain scalar at a dotted path, over what is there; makes the maps between. ERR_USAGE where the path
 * is empty or runs through a scalar. */
int yml_set(struct yml *root, const char *path, const char *value, struct error *err);
/* The same with a whole node, which is taken over in any case. */
int yml_set_node(struct yml *root, const char *path, struct yml *node, struct error *err);

#endif
