/* What a failure is for who gave the command. */
#include "common/base/assert.h"
#include "trainer/engine/engine_parts.h"

void engine_failed(struct elastic_result *ret, const struct error *err, int peer_worker)
{
    ret->outcome = err->code == ERR_ABORTED                             ? OUTCOME_ABORTED
                   : err->code == ERR_PEER || err->code == ERR_PROTOCOL ? OUTCOME_PEER
                                                                        : OUTCOME_FAILED;
    RM_ASSERT(peer_worker >= -1 && peer_worker < RM_WORKERS_MAX, "worker %d is blamed: %s", peer_worker,
              err->text);
    ret->peer = peer_worker;
    ret->code = err->code;
    ret->class = err->class;
    ret->person = err->person;
    text_copy(ret->text, sizeof ret->text, err->text);
}
