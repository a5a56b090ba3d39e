/* An API server that plays a script, and a client that talks to it: each request in turn gets the next
 * scene's answer, and must be what the scene expects. Behind the last scene nothing is said any more. */
#ifndef RM_TESTS_KUBE_PLAY_H
#define RM_TESTS_KUBE_PLAY_H

#include "common/kube/client.h"
#include "tests/unit/common/net/stub.h"

struct scene {
    const char *method; /* what must be asked, */
    const char *target; /* with this in its target */
    int status;         /* 0: a body of unknown length, which ends with the connection */
    const char *body;
    const char *headers; /* "A: b\r\n" or NULL */
    enum stub_then then;
    const char *cut; /* bytes that are announced and never come: the connection ends */
};

struct play {
    struct loop *loop;
    struct kube *kube;
    struct kube_config config;
    struct stub *stub;
    const struct scene *scene;
    int scenes, played;
    struct str log;   /* what the test's callbacks wrote, and "WRONG ..." for an unexpected request */
    struct str asked; /* "METHOD target content-type body\n" of each request */
};

void play_open(struct play *play, const struct scene *scene, int scenes, double per_second, double burst);
void play_close(struct play *play);
/* Turns the loop until the log ends with these words (fails after 20 s without them). */
void play_until(struct play *play, const char *words);

#endif
