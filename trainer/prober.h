/* Calls other trainers' data ports on the coordinator's word, in the background: neither the compute thread
 * nor the control thread waits for it. One probe at a time; a newer one that comes meanwhile is made next,
 * and of several only the newest. */
#ifndef RM_TRAINER_PROBER_H
#define RM_TRAINER_PROBER_H

#include "common/loop/loop.h"
#include "common/wire/message.h"
#include "trainer/io/reach.h"

struct prober;

struct prober_options {
    struct handshake_secret secret;
    struct handshake_end self;
    void (*probed)(void *ctx, const struct msg_probed *answer); /* on the loop */
    void *ctx;
};

int prober_open(struct prober **ret, struct loop *loop, const struct prober_options *options,
                struct error *err);
void prober_start(struct prober *prober, const struct msg_probe *probe);
void prober_stop(struct prober *prober); /* gives up what is under way; no callback any more. NULL is fine */
void prober_free(struct prober *prober); /* after prober_stop and after the loop's end. NULL is fine */

#endif
