/* Checkpoints in a folder or in a bucket: step-00000200/ and final/, each with model.safetensors,
 * config.json, optimizer-*.safetensors and, written last, manifest.json. docs/file-formats.md is the
 * specification.
 *
 * A state is arrays of P floats, one behind the other (common/model/arrays.h), each flat. It
 * is written in slices by any number of writers on any number of machines that reach the store, and read
 * whole by any number of readers.
 *
 *   writers    checkpoint_write_slice(part of parts)  -> its pieces (names, ranges, hashes)
 *   publisher  checkpoint_publish(all pieces)         -> what writers say is held to sizes and sums
 *              checkpoint_settle                      -> read back from where it lies; older ones go
 *   readers    checkpoint_list, checkpoint_load       -> every hash is checked while reading
 *              checkpoint_load_share                  -> the same, several readers a share each
 *
 * Until the manifest is there, everything that comes into being carries the state's lineage in its name: two
 * writers of one name write the same bytes, so a slice may be written again after a crash, by anyone, what is
 * there already is not sent again, and the slices of another split or another history never mix in.
 * Publishing may be repeated, and done by two at once.
 *
 * A store (common/storage/object) is opened by the caller, who tells with its URI where the checkpoints are.
 * Nothing here keeps state between calls; the calls block on disk and network, so programs make them on a
 * thread of their own. A store that fails (a full disk above all) is ERR_MACHINE, damage is ERR_DATA; neither
 * touches the checkpoints that are there already.
 *
 * Fault points: slice-written, sums-written, read-back, config-written, model-whole, piece-settled,
 * before-manifest, after-manifest, before-delete, damage-marked, and those of common/storage/object.
 *
 * Nobody who reads changes anything. Only a publisher puts a manifest aside (manifest.damaged.json): one that
 * is proven to be damaged, of the step that it has all pieces of, where it is not the only one who says so.
 */
#ifndef RM_STORE_CHECKPOINT_H
#define RM_STORE_CHECKPOINT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/set.h"
#include "common/model/arrays.h"
#include "common/storage/checkpoint/manifest.h"
#include "common/storage/checkpoint/model_card.h"
#include "common/storage/object/object.h"

enum {
    CHECKPOINT_NAME_MAX = 32,    /* "step-00000200" or "final", with its NUL */
    CHECKPOINT_SLICE_PIECES = 2, /* pieces that one slice consists of at most */
    CHECKPOINT_SKIPPED_MAX = 16,
};

void checkpoint_name(char out[CHECKPOINT_NAME_MAX], int64_t step, bool final);

/* --- writing --- */

struct checkpoint_slice {
    struct object_store *store;
    const char *run; /* whose store it has to be (owner.h); NULL: nobody asks */
    int64_t step;
    bool final;             /* into final/ instead of step-<step>/ */
    const uint8_t *lineage; /* (RM_HASH_BYTES) */
    const struct model_layout *layout;
    const float *state; /* (arrays, parameters); only the slice's ranges are read */
    enum manifest_hash hash;
    int keep; /* where there is no room, what is older than these goes at once; 0: nothing */
    int part,
        parts; /* of params model_weights_part(parameters, part, parts), of the others model_optimizer_part */
};

struct checkpoint_pieces {
    int count;    /* 0: the checkpoint is there already (same step, same lineage) */
    bool damaged; /* one with this name stood there, and what this machine read of it was damaged */
    struct manifest_piece piece[CHECKPOINT_SLICE_PIECES];
};

/* Writes one slice, durably. A finished checkpoint of the same step and lineage is not written again: it is
 * verified, and that it is sound is success with no pieces; damaged, it is written all the same. One of
 * another lineage is refused (ERR_EXISTS). */
int checkpoint_write_slice(const struct checkpoint_slice *slice, struct checkpoint_pieces *ret,
                           struct error *err);

struct checkpoint_publication {
    struct object_store *store;
    const char *run; /* whose store it has to be (owner.h); NULL: nobody asks */
    bool final;
    int keep; /* step-* checkpoints that stay, >= 1; final/ is not counted and never deleted */
    const struct model_layout *layout;
    /* All but weights_sha256 and the pieces of the small files (folder_texts.h), which are made here. */
    const struct manifest *manifest;
    const struct str *tokenizer; /* of the job's tokenizer.json, for final/; NULL: it names none */
    const struct model_card_losses
        *losses; /* for final/'s model card (model_card.h); NULL: none is written */
    /* Somebody else has seen, too, that what stands there is damaged, or there is nobody else: then it makes
     * way. */
    bool replaces;
};

/* Checks that all pieces are there, puts the parts of model.safetensors together, writes config.json and its
 * like, and the manifest last (which never replaces another). A file whose writers saw all of it arrive has
 * to have its size; any other is read back against the hashes before, and so is all of final/, past what this
 * machine remembers of it. Then what
 * unfinished checkpoints left behind goes that are older than the last one before this, or than final/
 * itself; with final/, which has been read, what `keep` doesn't cover, too. There already with the same step
 * and lineage: success. There and damaged, as this machine reads it, it makes way where `replaces` says so
 * and all pieces are there; else it stays, and that is ERR_DATA of CLASS_OBJECT. ret: the manifest as it
 * stands in the store. Trouble with deleting is not an error. */
int checkpoint_publish(const struct checkpoint_publication *publication, struct manifest *ret,
                       struct error *err);

/* How many older checkpoints `keep` doesn't cover, now that this step is published. */
int checkpoint_beyond(struct object_store *store, int64_t step, int keep);

struct checkpoint_settling {
    struct object_store *store;
    const char *run; /* as above */
    int64_t step;    /* published */
    int keep;
};

/* Where older ones are to go: reads every byte of that step's checkpoint from where it lies, past what this
 * machine remembers of it, and deletes them if all is right. 1: done; 0: nothing is to go, and nothing was
 * read; -1: nothing went. ERR_DATA of CLASS_OBJECT: it is damaged. */
int checkpoint_settle(const struct checkpoint_settling *settling, struct error *err);

/* --- reading --- */

struct checkpoint_entry {
    char name[CHECKPOINT_NAME_MAX]; /* its folder below uri */
    int64_t step;
    bool final;
    bool exact;
    uint8_t lineage[RM_HASH_BYTES];
    bool has_weights; /* the next one is known (manifest.h) */
    uint8_t weights_sha256[RM_HASH_BYTES];
    uint8_t data_sha256[RM_HASH_BYTES]; /* identity of the data that it was trained on */
    char fingerprint[RM_FINGERPRINT_MAX];
    int64_t bytes;
};

struct checkpoint_skipped {
    char name[CHECKPOINT_NAME_MAX];
    char why[sizeof((struct error *)0)->text];
};

struct checkpoint_list {
    int count; /* newest first; final/ before step-* of the same step */
    struct checkpoint_entry entry[RM_CHECKPOINTS_LISTED];
    int skipped; /* folders whose manifest can't be used */
    struct checkpoint_skipped skip[CHECKPOINT_SKIPPED_MAX];
};

/* The newest checkpoints by their manifests; no content is read. An absent folder has none. A manifest of a
 * newer version is ERR_DATA: going on from an older checkpoint would be wrong. */
int checkpoint_list(struct object_store *store, struct checkpoint_list *ret, struct error *err);

/* The manifest of one. ERR_NOT_FOUND: no such checkpoint. */
int checkpoint_manifest(struct object_store *store, const char *name, struct manifest *ret,
                        struct error *err);

/* Reads the whole state into state (arrays, parameters), checking every hash. ERR_DATA of CLASS_OBJECT is
 * damage, and proven: what did not fit was read again twice, past all caches, and was the same. What may be
 * this machine's or passes by has its class (common/base/error.h) and says nothing about the checkpoint. Of
 * another shape than the layout's: ERR_USAGE. Deleted meanwhile: ERR_NOT_FOUND. Changes nothing in the store.
 * On failure state holds rubbish. ret may be NULL. */
int checkpoint_load(struct object_store *store, const char *name, const struct model_layout *layout,
                    float *state, struct manifest *ret, struct error *err);

/* One reader's part of a checkpoint that several read together: it is cut into `parts` shares, contiguous and
 * of about the same size, at the borders of the manifest's pieces, so that each share is verified by itself.
 * With more readers than pieces some shares are empty. */
struct checkpoint_share {
    struct object_store *store;
    int64_t step;
    const uint8_t *lineage; /* (RM_HASH_BYTES) */
    const struct model_layout *layout;
    int parts;
    struct worker_set shares;       /* to be read */
    float *array[MODEL_ARRAYS_MAX]; /* (parameters) each of those that the layout has: where the values go */
    const atomic_int *stop;         /* gives up (ERR_ABORTED) once it is not 0; NULL: never */
};

/* Reads these shares, checking every hash before it returns, in one pass over the bytes. ret_range: what they
 * hold of each array where `shares` names one share (undefined else). ERR_NOT_FOUND: no checkpoint of
 * that state is there; other failures as checkpoint_load. On failure the shares' places hold rubbish, all
 * others are untouched. */
int checkpoint_load_share(const struct checkpoint_share *share,
                          struct model_range ret_range[MODEL_ARRAYS_MAX], struct manifest *ret,
                          struct error *err);

/* Checks every byte; changes nothing. */
int checkpoint_verify(struct object_store *store, const char *name, struct manifest *ret, struct error *err);

/* What a run starts from: the newest checkpoint that verifies completely. Newer ones are passed over only
 * where they are proven to be damaged (ERR_DATA), and named: trouble of any other kind is an error, and so is
 * that all are damaged. Nothing is changed. found false: there is none, start at step 0. */
struct checkpoint_resume {
    bool found;
    struct checkpoint_entry entry;
    struct manifest manifest;
    int skipped;
    struct checkpoint_skipped skip[CHECKPOINT_SKIPPED_MAX];
};
int checkpoint_resume(struct object_store *store, struct checkpoint_resume *ret, struct error *err);
/* The same by the manifests alone, for those who verify what they load. But a final/ of step `last`, which
 * ends the job and which nobody will load, is verified. */
int checkpoint_newest(struct object_store *store, int64_t last, struct checkpoint_resume *ret,
                      struct error *err);

/* ERR_DATA of CLASS_OBJECT: the sentence for a place that holds these alone. Returns -1. */
int checkpoint_all_damaged(struct object_store *store, const struct checkpoint_skipped *list, int count,
                           struct error *err);

/* Copies the weights, config.json, tokenizer and card of one to a place of their own, as transformers reads
 * them; every byte but the card's is checked before the copy can be seen. ERR_EXISTS where a model is there
 * already, or a file of such a name with another content: nothing is written then. A card that is there
 * stays. */
int checkpoint_export(struct object_store *store, const char *name, struct object_store *target,
                      struct error *err);

/* --- deleting --- */

/* Deletes one checkpoint: its manifest first. Files that are not a checkpoint's stay, with their folder. */
int checkpoint_delete(struct object_store *store, const char *name, struct error *err);

/* Deletes all of them, finished or not, and nothing else. */
int checkpoint_delete_all(struct object_store *store, struct error *err);

#endif
