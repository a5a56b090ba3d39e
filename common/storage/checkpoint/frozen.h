/* Frozen processes of a program (checkpoint.process: CRIU) beside the checkpoints: process-00000012/, each
 * with one object of all files that CRIU wrote and, written last, manifest.json (frozen_manifest.h).
 *
 *   publisher  frozen_publish     -> the files of a folder, in pieces; then the manifest
 *              frozen_settle      -> read back from where it lies; older ones go
 *   reader     frozen_choose      -> the newest that this job's key has sealed and that is whole
 *              frozen_fetch       -> its files in a folder, every piece checked before any is used
 *   anybody    frozen_list, frozen_verify, frozen_delete: without a key, so that nothing is said of whose it
 * is
 *
 * A number is published once: the manifest is only ever created. Until it is there, everything that comes
 * into being carries chance in its name, so that a writer that was given up neither harms another's pieces
 * nor has its own taken for them. Calls block on disk and network; damage is ERR_DATA of CLASS_OBJECT, and
 * proven (files_look), as with checkpoints. Nothing here keeps state between calls.
 *
 * Fault points: image-sent, frozen-published; and those of common/storage/object. */
#ifndef RM_STORE_FROZEN_H
#define RM_STORE_FROZEN_H

#include <stdatomic.h>

#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/frozen_manifest.h"
#include "common/storage/object/object.h"

/* "process-00000012" */
void frozen_name(char out[CHECKPOINT_NAME_MAX], int64_t number);
/* 12; -1 for any other text. */
int64_t frozen_number(const char *name);

struct frozen_publication {
    struct object_store *store;
    const char *run;    /* whose store it has to be (owner.h); NULL: nobody asks */
    const uint8_t *key; /* (RM_HASH_BYTES) of frozen_key */
    uint64_t chance;    /* names what comes into being: another one for each try */
    int folder;         /* open; all regular files in it, and there must be nothing else */
};

/* m: number, job and ground are the caller's, the rest is set here. ERR_EXISTS: one of that number is there,
 * and stays. */
int frozen_publish(const struct frozen_publication *p, struct frozen_manifest *m, struct error *err);

struct frozen_entry {
    char name[CHECKPOINT_NAME_MAX];
    int64_t number, bytes;
};

struct frozen_list {
    int count; /* newest first */
    struct frozen_entry entry[RM_CHECKPOINTS_LISTED];
    int64_t newest; /* number of any, finished or not; 0: none. The next one is above it */
    int skipped;    /* those whose manifest can't be used */
    struct checkpoint_skipped skip[CHECKPOINT_SKIPPED_MAX];
};

/* By their manifests, without a key. */
int frozen_list(struct object_store *store, struct frozen_list *ret, struct error *err);

/* ERR_NOT_FOUND: there is none of that name. */
int frozen_manifest(struct object_store *store, const char *name, struct frozen_manifest *ret,
                    struct error *err);

/* Reads every byte against the manifest's hashes. It needs no key: whose it is it does not tell. */
int frozen_verify(struct object_store *store, const char *name, struct error *err);

/* Who may have sealed what is gone on from. */
struct frozen_keys {
    const uint8_t *own;   /* (RM_HASH_BYTES) */
    const uint8_t *older; /* of the job that checkpoint.processKeyRef names; NULL: none */
};

/* Of a manifest that was read. */
bool frozen_is_sealed_by_one(const struct frozen_manifest *m, const struct frozen_keys *keys);

struct frozen_settling {
    struct object_store *store;
    const char *run; /* as in frozen_publication */
    struct frozen_keys keys;
    int64_t number; /* the one that was published */
    int keep;
};

/* Which older ones go for that one, by the rule for checkpoints (keep_rule.h), once it has been read back.
 * 1: done; 0: nothing is to go, and nothing was read; -1: nothing went. What was never finished and is older
 * goes as well. What neither key has sealed can't be gone on from: it does not count, and is not ours to
 * delete. */
int frozen_settle(const struct frozen_settling *s, struct error *err);

struct frozen_choice {
    bool found;
    int64_t newest; /* as frozen_list */
    int skipped;    /* newer ones that were not taken, each with the reason */
    struct checkpoint_skipped skip[CHECKPOINT_SKIPPED_MAX];
};

/* The newest that one of the keys has sealed, by its manifest: its pieces are checked when they are fetched.
 * below: only those of a smaller number; 0: all. ERR_USAGE with what to do where there are some, and all that
 * can be read are another job's. */
int frozen_choose(struct object_store *store, const struct frozen_keys *keys, int64_t below,
                  struct frozen_manifest *ret, struct frozen_choice *choice, struct error *err);

/* Makes its files in the folder, which is empty and open. m: of frozen_choose. On failure what is in the
 * folder is rubbish. stop: gives up (ERR_ABORTED) once it is not 0; NULL: never. */
int frozen_fetch(struct object_store *store, const struct frozen_manifest *m, int folder,
                 const atomic_int *stop, struct error *err);

/* Its manifest first. Files that are not ours stay. */
int frozen_delete(struct object_store *store, const char *name, struct error *err);
/* All of them, finished or not. */
int frozen_delete_all(struct object_store *store, struct error *err);

#endif
