/* Wraps libyaml: makes a small tree with line numbers of one document, and refuses the rest of YAML. */
#include "common/job/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    const char *bytes;
    size_t length;
    const char *what;
    int nodes;
    struct error *err;
};

/* A node whose closing event has not come yet, and where its next entry goes. */
struct level {
    struct yml *node;
    struct yml **tail;
    char *key; /* a map's key that waits for its value */
    int key_line;
};

static struct yml *node_new(enum yml_kind kind, int line)
{
    struct yml *node = calloc(1, sizeof *node);
    if (!node)
        abort();
    node->kind = kind;
    node->line = line;
    return node;
}

static char *text_new(const char *text, size_t length)
{
    char *copy = malloc(length + 1);
    if (!copy)
        abort();
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

void yml_free(struct yml *root)
{
    while (root) {
        struct yml *next = root->next;
        yml_free(root->child);
        free(root->key);
        free(root->text);
        free(root);
        root = next;
    }
}

struct yml *yml_get(const struct yml *node, const char *key)
{
    if (!node || node->kind != YML_MAP)
        return NULL;
    for (struct yml *entry = node->child; entry; entry = entry->next)
        if (!strcmp(entry->key, key))
            return entry;
    return NULL;
}

static int refuse_line(struct reader *r, size_t line, const char *sentence)
{
    return err_set(r->err, ERR_USAGE, "%s:%zu: %s", r->what, line + 1, sentence);
}

/* libyaml says "found character that cannot start any token" for the commonest slip. */
static bool indented_by_tab(const struct reader *r, size_t line)
{
    const char *at = r->bytes, *end = r->bytes + r->length;
    for (size_t i = 0; i < line && at; i++) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    for (; at && at < end && (*at == ' ' || *at == '\t'); at++)
        if (*at == '\t')
            return true;
    return false;
}

static int syntax_error(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    size_t line = p->problem_mark.line;
    if (p->error == YAML_READER_ERROR)
        return err_set(r->err, ERR_USAGE, "%s: not text: %s at byte %zu", r->what, p->problem,
                       p->problem_offset);
    if (indented_by_tab(r, line))
        return refuse_line(r, line, "a tab as indentation; use spaces");
    return err_set(r->err, ERR_USAGE, "%s:%zu: not valid YAML: %s%s%s", r->what, line + 1,
                   p->problem ? p->problem : "it can't be read", p->context ? " " : "",
                   p->context ? p->context : "");
}

static int check_decorations(struct reader *r, const yaml_event_t *event)
{
    const yaml_char_t *anchor = NULL, *tag = NULL;
    if (event->type == YAML_SCALAR_EVENT) {
        anchor = event->data.scalar.anchor;
        tag = event->data.scalar.tag;
    } else if (event->type == YAML_MAPPING_START_EVENT) {
        anchor = event->data.mapping_start.anchor;
        tag = event->data.mapping_start.tag;
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        anchor = event->data.sequence_start.anchor;
        tag = event->data.sequence_start.tag;
    }
    if (anchor || event->type == YAML_ALIAS_EVENT)
        return refuse_line(r, event->start_mark.line,
                           "anchors and aliases (&name, *name) are not read here; write the value out");
    if (tag)
        return refuse_line(r, event->start_mark.line, "tags (!name) are not read here; leave it out");
    return 0;
}

static int take_key(struct reader *r, struct level *at, const yaml_event_t *event)
{
    size_t line = event->start_mark.line;
    if (event->type != YAML_SCALAR_EVENT)
        return refuse_line(r, line, "a field's name must be plain text");
    const char *key = (const char *)event->data.scalar.value;
    if (!strcmp(key, "<<"))
        return refuse_line(r, line, "merge keys (<<) are not read here; write the fields out");
    struct yml *before = yml_get(at->node, key);
    if (before)
        return err_set(r->err, ERR_USAGE, "%s:%zu: %.80s is here twice (first in line %d); remove one",
                       r->what, line + 1, key, before->line);
    at->key = text_new(key, event->data.scalar.length);
    at->key_line = (int)line + 1;
    return 0;
}

/* Hangs a new node below the open one and hands it out. */
static int add_node(struct reader *r, struct level *at, const yaml_event_t *event, struct yml **ret)
{
    enum yml_kind kind = event->type == YAML_SCALAR_EVENT          ? YML_SCALAR
                         : event->type == YAML_MAPPING_START_EVENT ? YML_MAP
                                                                   : YML_LIST;
    if (++r->nodes > YML_NODES_MAX)
        return refuse_line(r, event->start_mark.line, "too many entries for a job file");
    struct yml *node = node_new(kind, at->key ? at->key_line : (int)event->start_mark.line + 1);
    node->key = at->key;
    at->key = NULL;
    *at->tail = node;
    at->tail = &node->next;
    *ret = node;
    if (kind != YML_SCALAR)
        return 0;
    const char *text = (const char *)event->data.scalar.value;
    if (strlen(text) != event->data.scalar.length)
        return refuse_line(r, event->start_mark.line, "a NUL character in a text");
    node->text = text_new(text, event->data.scalar.length);
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return 0;
}

/* One event inside the document: levels[*depth] is the innermost open node. */
static int take_event(struct reader *r, struct level *levels, int *depth, const yaml_event_t *event)
{
    struct level *at = &levels[*depth];
    if (check_decorations(r, event) < 0)
        return -1;
    if (event->type == YAML_MAPPING_END_EVENT || event->type == YAML_SEQUENCE_END_EVENT) {
        if (!*depth)
            return refuse_line(r, event->start_mark.line, "an end without a beginning");
        (*depth)--;
        return 0;
    }
    if (at->node && at->node->kind == YML_MAP && !at->key)
        return take_key(r, at, event);
    struct yml *node = NULL;
    if (add_node(r, at, event, &node) < 0)
        return -1;
    if (node->kind == YML_SCALAR)
        return 0;
    if (*depth + 1 >= YML_DEPTH_MAX)
        return refuse_line(r, event->start_mark.line, "groups nested too deeply for a job file");
    levels[++*depth] = (struct level){.node = node, .tail = &node->child};
    return 0;
}

static int take_documents(struct reader *r, struct yml **ret)
{
    struct level levels[YML_DEPTH_MAX] = {{.tail = ret}};
    int depth = 0, documents = 0, status = 0;
    bool done = false;
    while (!done && status == 0) {
        yaml_event_t event;
        if (!yaml_parser_parse(&r->parser, &event)) {
            status = syntax_error(r);
            break;
        }
        if (event.type == YAML_DOCUMENT_START_EVENT && ++documents > 1)
            status = refuse_line(r, event.start_mark.line, "a second document (---); a job file holds one");
        else if (event.type == YAML_STREAM_END_EVENT)
            done = true;
        else if (event.type != YAML_STREAM_START_EVENT && event.type != YAML_DOCUMENT_START_EVENT &&
                 event.type != YAML_DOCUMENT_END_EVENT)
            status = take_event(r, levels, &depth, &event);
        yaml_event_delete(&event);
    }
    for (int i = 0; i < YML_DEPTH_MAX; i++)
        free(levels[i].key);
    return status;
}

int yml_parse(struct yml **ret, const char *bytes, size_t length, const char *what, struct error *err)
{
    struct reader r = {.bytes = bytes, .length = length, .what = what, .err = err};
    struct yml *root = NULL;
    if (!yaml_parser_initialize(&r.parser))
        return err_set(err, ERR_MACHINE, "%s: no memory to read it", what);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)bytes, length);
    int status = take_documents(&r, &root);
    yaml_parser_delete(&r.parser);
    if (status == 0 && (!root || root->kind != YML_MAP))
        status = err_set(err, ERR_USAGE,
                         "%s:%d: not a job: it should begin with apiVersion, kind, metadata and spec", what,
                         root ? root->line : 1);
    if (status < 0)
        yml_free(root);
    else
        *ret = root;
    return status;
}

int yml_line(const struct yml *root, const char *path)
{
    int line = 1;
    char part[128];
    while (root && *path) {
        size_t length = strcspn(path, ".");
        if (length >= sizeof part)
            break;
        memcpy(part, path, length);
        part[length] = 0;
        root = yml_get(root, part);
        if (root)
            line = root->line;
        path += length + (path[length] == '.');
    }
    return line;
}

static struct yml *entry_make(struct yml *map, const char *key, size_t length, enum yml_kind kind)
{
    struct yml **tail = &map->child;
    while (*tail)
        tail = &(*tail)->next;
    *tail = node_new(kind, 0);
    (*tail)->key = text_new(key, length);
    return *tail;
}

/* The entry at a dotted path, with nothing in it; NULL with a sentence where there can be none. */
static struct yml *make_room(struct yml *root, const char *path, struct error *err)
{
    char part[128];
    struct yml *at = root;
    for (const char *rest = path;;) {
        size_t length = strcspn(rest, ".");
        if (!length || length >= sizeof part)
            err_set(err, ERR_USAGE, "\"%.100s\" is not a field's path; write spec.trainer.steps=100, say",
                    path);
        else if (at->kind != YML_MAP)
            err_set(err, ERR_USAGE, "%.100s: %.80s is not a group of fields", path, at->key);
        if (!length || length >= sizeof part || at->kind != YML_MAP)
            return NULL;
        memcpy(part, rest, length);
        part[length] = 0;
        bool last = !rest[length];
        struct yml *entry = yml_get(at, part);
        at = entry ? entry : entry_make(at, rest, length, last ? YML_SCALAR : YML_MAP);
        if (last)
            break;
        rest += length + 1;
    }
    yml_free(at->child);
    free(at->text);
    at->child = NULL;
    at->text = NULL;
    at->line = 0;
    return at;
}

int yml_set(struct yml *root, const char *path, const char *value, struct error *err)
{
    struct yml *at = make_room(root, path, err);
    if (!at)
        return -1;
    at->kind = YML_SCALAR;
    at->text = text_new(value, strlen(value));
    at->plain = true;
    return 0;
}

int yml_set_node(struct yml *root, const char *path, struct yml *node, struct error *err)
{
    struct yml *at = make_room(root, path, err);
    if (at) {
        at->kind = node->kind;
        at->plain = node->plain;
        at->text = node->text;
        at->child = node->child;
        node->text = NULL;
        node->child = NULL;
    }
    yml_free(node);
    return at ? 0 : -1;
}
