/* What is told of a step that took several commands. */
#ifndef RM_TRAINER_MADE_H
#define RM_TRAINER_MADE_H

#include "trainer/core/elastic.h"

struct made {
    rm_time took, data_wait, reduce_time;
    int64_t reduce_bytes;
    struct msg_transport second;
    struct msg_pace pace;
    bool stop, save;
};

/* The next command of it is done. */
static inline void made_add(struct made *made, const struct elastic_result *r)
{
    made->took += r->took;
    made->data_wait += r->data_wait;
    made->reduce_time += r->reduce_time;
    made->reduce_bytes += r->reduce_bytes;
    if (r->command != CMD_EXCHANGE)
        return;
    made->second = r->second;
    made->pace = r->pace;
}

#endif
