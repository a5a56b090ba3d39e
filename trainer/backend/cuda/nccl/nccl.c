/* A library that may not be there: its calls by name, its version, and the job's key for its sockets. */
#include "trainer/backend/cuda/nccl/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"
#include "common/os/config.h"

#define LIBRARY "libnccl.so.2"

/* Known to crash where an aborted communicator is followed by another one in the same process. */
enum { CRASHES_FROM = 22803, CRASHES_TO = 22808, MAJOR_SHIFT = 10000, MINOR_SHIFT = 100 };

struct entry {
    const char *name;
    size_t at; /* its place in struct nccl_calls */
};

#define ENTRY(type, name, arguments) {#name, offsetof(struct nccl_calls, name)},
static const struct entry entries[] = {NCCL_CALLS(ENTRY)}, newer_entries[] = {NCCL_NEWER_CALLS(ENTRY)};

void nccl_version_text(int version, char out[NCCL_VERSION_TEXT])
{
    snprintf(out, NCCL_VERSION_TEXT, "%d.%d.%d", version / MAJOR_SHIFT, version % MAJOR_SHIFT / MINOR_SHIFT,
             version % MINOR_SHIFT);
}

int nccl_failed(const struct nccl *nccl, ncclResult_t result, const char *doing, struct error *err)
{
    const char *text = nccl->calls.ncclGetErrorString(result);
    return err_set(err, ERR_MACHINE, "NCCL failed to %s: %s (%d)", doing, text ? text : "an error",
                   (int)result);
}

static int find_call(struct nccl *n, void *library, const struct entry *entry, bool needed, struct error *err)
{
    void *found = dlsym(library, entry->name);
    *(void **)((char *)&n->calls + entry->at) = found;
    if (found || !needed)
        return 0;
    return err_set(err, ERR_MACHINE, "%s is no NCCL of 2.14 or newer: it lacks %s", n->path, entry->name);
}

static int find_calls(struct nccl *n, void *library, struct error *err)
{
    for (size_t i = 0; i < sizeof entries / sizeof *entries; i++)
        if (find_call(n, library, &entries[i], true, err) < 0)
            return -1;
    for (size_t i = 0; i < sizeof newer_entries / sizeof *newer_entries; i++)
        find_call(n, library, &newer_entries[i], false, err);
    return 0;
}

static int check_version(struct nccl *n, struct error *err)
{
    char text[NCCL_VERSION_TEXT];
    if (n->calls.ncclGetVersion(&n->version) != NCCL_SUCCESS)
        return err_set(err, ERR_MACHINE, "%s does not say its version", n->path);
    nccl_version_text(n->version, text);
    if (n->version < CRASHES_FROM || n->version > CRASHES_TO)
        return 0;
    return err_set(err, ERR_MACHINE,
                   "%s is NCCL %s, and 2.28.3 to 2.28.8 crash where a communicator follows an aborted one: "
                   "install 2.28.9 or newer",
                   n->path, text);
}

/* NULL: none. */
static ncclResult_t set_key(const struct nccl *n, const char *key)
{
    const ncclEncryptionConfig_t config = {.size = sizeof config,
                                           .magic = (unsigned)NCCL_MAGIC,
                                           .version = (unsigned)n->version,
                                           .mode = key ? NCCL_ENCRYPTION_PSK : NCCL_ENCRYPTION_NONE,
                                           .psk = key};
    return n->calls.ncclSetEncryption(&config);
}

/* How this process's communicators are made now, and how many have begun to be. */
static struct {
    pthread_mutex_t lock;
    bool open;
    int users;
} key_use = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Before the first communicator of this process, or where none is left. */
static ncclResult_t set_first_key(const struct nccl *n, const char *key)
{
    ncclResult_t result = NCCL_SUCCESS;
    pthread_mutex_lock(&key_use.lock);
    if (!key_use.users) {
        result = set_key(n, key);
        key_use.open = false;
    }
    pthread_mutex_unlock(&key_use.lock);
    return result;
}

static int close_to_strangers(struct nccl *n, const char *key, struct error *err)
{
    char text[NCCL_VERSION_TEXT];
    n->needs_key = config_get(CONFIG_NCCL_NEEDS_KEY);
    nccl_version_text(n->version, text);
    if (!n->calls.ncclSetEncryption && n->needs_key)
        return err_set(err, ERR_MACHINE, "%s is set, and NCCL %s takes no key for its sockets: 2.32 does",
                       config_name(CONFIG_NCCL_NEEDS_KEY), text);
    if (!n->calls.ncclSetEncryption)
        return 0;
    const ncclResult_t result = set_first_key(n, key);
    if (result != NCCL_SUCCESS)
        return nccl_failed(n, result, "take the job's key", err);
    text_copy(n->key, sizeof n->key, key);
    return 0;
}

static int turn_key(const struct nccl *n, bool open, struct error *err)
{
    const ncclResult_t result = *n->key ? set_key(n, open ? NULL : n->key) : NCCL_SUCCESS;
    if (result != NCCL_SUCCESS)
        return nccl_failed(n, result, open ? "do without the job's key" : "take the job's key", err);
    key_use.open = open;
    return 1;
}

int nccl_enter(const struct nccl *nccl, bool open, struct error *err)
{
    int entered = 1;
    if (open && nccl->needs_key)
        return err_set(err, ERR_MACHINE, "%s is set: NCCL may not go without the job's key",
                       config_name(CONFIG_NCCL_NEEDS_KEY));
    pthread_mutex_lock(&key_use.lock);
    if (open != key_use.open)
        entered = key_use.users ? 0 : turn_key(nccl, open, err);
    key_use.users += entered > 0;
    pthread_mutex_unlock(&key_use.lock);
    return entered;
}

void nccl_leave(void)
{
    pthread_mutex_lock(&key_use.lock);
    RM_ASSERT(key_use.users > 0, "%d use NCCL, and one leaves", key_use.users);
    key_use.users--;
    pthread_mutex_unlock(&key_use.lock);
}

static int open_library(struct nccl *n, const char *key, struct error *err)
{
    const char *named = config_get(CONFIG_NCCL_LIBRARY);
    text_copy(n->path, sizeof n->path, named ? named : LIBRARY);
    void *library = dlopen(n->path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(err, ERR_MACHINE, "no NCCL: %s can't be loaded", n->path);
    if (find_calls(n, library, err) < 0 || check_version(n, err) < 0)
        return -1;
    return close_to_strangers(n, key, err);
}

int nccl_open(struct nccl **ret, const char *key, struct error *err)
{
    struct nccl *n = calloc(1, sizeof *n);
    if (!n)
        return err_set(err, ERR_MACHINE, "no memory");
    if (open_library(n, key, err) < 0) {
        nccl_free(n);
        return -1;
    }
    *ret = n;
    return 0;
}

void nccl_free(struct nccl *nccl)
{
    if (!nccl)
        return;
    explicit_bzero(nccl->key, sizeof nccl->key);
    free(nccl);
}
