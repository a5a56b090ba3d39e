/* README.md of final/: what the weights beside it are, for who finds them without the job: sizes, data,
 * losses, hashes, and of an exact run the job file and command that make the same bits again. No place of
 * whoever trained it stands there: data, first weights and tokenizer are named by what they are. It is no
 * piece of the checkpoint: nothing reads it, and whatever becomes of it the weights are what the manifest
 * says. Of a model alone; the state that a program makes has no card. A function of its arguments: whoever
 * publishes writes the same bytes. Pure but for the memory of text. */
#ifndef RM_STORE_MODEL_CARD_H
#define RM_STORE_MODEL_CARD_H

#include "common/base/str.h"
#include "common/storage/checkpoint/manifest.h"

#define MODEL_CARD_NAME "README.md"

enum { MODEL_CARD_MAX = 1 << 16 }; /* bytes */

struct model_card_losses {
    double last;       /* of the last step; NaN: not known, and left out */
    double held_out;   /* of the newest evaluation; likewise */
    int64_t evaluated; /* the step of that */
};

/* m: complete, with weights_sha256. */
void model_card_write(const struct manifest *m, const struct model_card_losses *losses, struct str *out);

#endif
