/* Labels by which an option of the operator selects. Pure. */
#ifndef RM_OPERATOR_CORE_LABELS_H
#define RM_OPERATOR_CORE_LABELS_H

#include "common/base/error.h"

enum {
    OP_LABELS_MAX = 8,
    OP_LABEL_KEY_MAX = 253 + 1 + 63 + 1, /* "prefix/name", with its NUL */
    OP_LABEL_VALUE_MAX = 63 + 1,
};

struct op_labels {
    int count; /* of which something that is selected has all */
    struct {
        char key[OP_LABEL_KEY_MAX], value[OP_LABEL_VALUE_MAX];
    } label[OP_LABELS_MAX];
};

/* Reads "kubernetes.io/metadata.name=monitoring,team=ops"; at least one. ERR_USAGE with a sentence for what
 * the API server would not take as a label: it would refuse every object that these are put into. */
int labels_read(struct op_labels *ret, const char *text, struct error *err);

#endif
