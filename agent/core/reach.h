/* How long one try to reach the coordinator may take: pure. At an address behind a name nobody may be any
 * more, and a network that drops what goes there says nothing: that is found soon, and the next try asks for
 * the name anew. Once somebody is there, its handshake has as long as a coordinator may be silent. */
#ifndef RM_AGENT_REACH_H
#define RM_AGENT_REACH_H

#include <stdbool.h>

#include "common/base/time.h"

struct reach {
    rm_time look;  /* when reach_look is to be called */
    rm_time until; /* when the handshake has taken too long */
    bool spared;   /* this try was given more time once, as the process had been held up */
};

enum reach_found { REACH_WAIT, REACH_NOBODY, REACH_SILENT };

/* A try begins: `handshake_within` is for all of it. */
void reach_begin(struct reach *reach, rm_time now, rm_time handshake_within);
/* At reach->look or later; `reached`: whether anybody is there. REACH_WAIT moves `look`; with the others the
 * try is given up. A process that was held up sees nothing of what came meanwhile before it looks: it waits
 * once more in a try, so that who is held up in each of them connects all the same. */
enum reach_found reach_look(struct reach *reach, bool reached, rm_time now);
/* How long what is said to the other machine may stay without its acknowledgement, for a `lostAfter` of the
 * job: no more than that, and not as long as TCP's own patience, which is a quarter of an hour. */
rm_time reach_patience(rm_time lost_after);

#endif
