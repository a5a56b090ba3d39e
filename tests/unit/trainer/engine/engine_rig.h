/* Engines of one small job in this process, driven command by command as trainers' loops would. */
#ifndef RM_TEST_ENGINE_RIG_H
#define RM_TEST_ENGINE_RIG_H

#include <pthread.h>

#include "common/model/snapshot.h"
#include "trainer/engine/engine.h"

enum { RIG_ENGINES = 3, RIG_LANES = 4 };

struct rig_engine {
    struct engine *engine; /* NULL: none */
    struct stand_in *who;
    int state_fd, snapshot_fd;
    struct msg_up up;
    struct elastic_result result; /* of the newest command */
    struct elastic_action action;
    pthread_t thread;
};

struct rig {
    struct job_spec spec;
    char folder[64];
    struct message form;
    struct rig_engine e[RIG_ENGINES];
};

struct rig *rig_open(void);
void rig_close(struct rig *rig);
/* Engine i on its memory, which is new where it has none. */
void rig_start(struct rig *rig, int i, engine_open_backend *backend);
void rig_end(struct rig *rig, int i);

/* A command of one engine; true where its outcome is OUTCOME_OK. */
bool rig_run(struct rig *rig, int i, enum elastic_command command);
bool rig_run_action(struct rig *rig, int i, const struct elastic_action *action);
/* The same command of the first `world` engines at once, whatever comes of it. */
void rig_each(struct rig *rig, int world, enum elastic_command command);
/* Likewise; all must be OK. */
void rig_all(struct rig *rig, int world, enum elastic_command command);
/* The next ring of the first `world` engines. */
void rig_connect(struct rig *rig, int world);
/* A whole step of that ring. */
void rig_step(struct rig *rig, int world);

/* SHA-256 of an engine's parameters, as text; lasts until the next. */
const char *rig_digest(struct rig *rig, int i);
/* An area that engine i shares with its agent: params | m | v. */
float *rig_area(struct rig *rig, int i, enum snapshot_area area, size_t *ret_bytes);
/* Slice `part` of a snapshot by engine i; the area's bytes, 0 where it has none, for free(). */
float *rig_snapshot(struct rig *rig, int i, int part, int parts, size_t *ret_bytes);
/* Loads what engine i's last snapshot said, out of these bytes. */
bool rig_load(struct rig *rig, int i, const struct msg_snapshot *snapshot, const void *bytes);
/* Receives or catches up from the other one's state. */
bool rig_take(struct rig *rig, int i, int from, enum elastic_command command);

#endif
