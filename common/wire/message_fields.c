/* The rows of every message type: names in JSON, places in the struct, bounds. */
#include "common/wire/message_fields.h"

#define MOST MSG_NUMBER_MOST

#define SIZE(type, member) sizeof(((struct type *)0)->member)

/* Where a member lies and how large it is; bounds may follow. */
#define OF(type, member) .at = offsetof(struct type, member), .size = SIZE(type, member)
#define BODY(member)     OF(message, member)

/* The same of an array, with the size of one entry, the most entries, and where their count lies. */
#define LIST(type, member, count)                                                                            \
    .at = offsetof(struct type, member), .size = SIZE(type, member[0]),                                      \
    .high = SIZE(type, member) / SIZE(type, member[0]), .count_at = offsetof(struct type, count)

const char *const message_role_names[] = {"keep", "catch-up", "follow", "receive", "load", "init"};
const char *const message_phase_names[] = {"idle", "stopped", "forming", "ready", "training"};
const char *const message_fault_names[] = {"trainer-exit", "ring-error", "storage", "not-finite", "lineage",
                                           "data",         "hang",       "machine", "program",    "proof"};
const char *const message_slow_names[] = {"unknown", "cpuLimit", "stolenTime"};
static const char *const stop_names[] = {"now", "boundary"};
static const char *const notice_words[] = {"gone", "may", "will"};

static const struct message_field member_fields[] = {
    {"worker", MSG_FIELD_INT, OF(msg_member, worker), 0, RM_WORKERS_MAX - 1},
    {"attempt", MSG_FIELD_INT, OF(msg_member, attempt), 0, INT32_MAX},
    {"incarnation", MSG_FIELD_ID, OF(msg_member, incarnation)},
    {"address", MSG_FIELD_TEXT, OF(msg_member, address)},
    {"role", MSG_FIELD_ENUM, OF(msg_member, role), 0, MESSAGE_ROLES - 1, .names = message_role_names},
    {0},
};

static const struct message_field piece_fields[] = {
    {"file", MSG_FIELD_TEXT, OF(msg_piece, file)},
    {"offset", MSG_FIELD_INT64, OF(msg_piece, offset), 0, MOST},
    {"bytes", MSG_FIELD_INT64, OF(msg_piece, bytes), 0, MOST},
    {"sha256", MSG_FIELD_HEX, OF(msg_piece, sha256)},
    {0},
};

static const struct message_field checkpoint_fields[] = {
    {"step", MSG_FIELD_INT64, OF(msg_checkpoint, step), 0, MOST},
    {"final", MSG_FIELD_BOOL, OF(msg_checkpoint, final)},
    {"lineage", MSG_FIELD_HEX, OF(msg_checkpoint, lineage)},
    {"fingerprint", MSG_FIELD_TEXT, OF(msg_checkpoint, fingerprint)},
    {"dataSha256", MSG_FIELD_TEXT, OF(msg_checkpoint, data_sha256)},
    {0},
};

static const struct message_field challenge_fields[] = {
    {"nonce", MSG_FIELD_HEX, BODY(challenge.nonce)},
    {0},
};

static const struct message_field welcome_fields[] = {
    {"proof", MSG_FIELD_HEX, BODY(welcome.proof)},
    {"spec", MSG_FIELD_TEXT, BODY(welcome.spec)},
    {0},
};

static const struct message_field ack_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(ack.step), -1, MOST},
    {"evaluated", MSG_FIELD_INT64, BODY(ack.evaluated), -1, MOST},
    {0},
};

static const struct message_field stop_fields[] = {
    {"round", MSG_FIELD_INT64, BODY(stop.round), 0, MOST},
    {"at", MSG_FIELD_ENUM, BODY(stop.at), 0, 1, .names = stop_names},
    {"withinNs", MSG_FIELD_INT64, BODY(stop.within), 0, MOST},
    {0},
};

static const struct message_field form_fields[] = {
    {"members", MSG_FIELD_ROWS, LIST(message, form.member, form.count), .fields = member_fields},
    {"resume", MSG_FIELD_STATE, BODY(form.resume)},
    {"sources", MSG_FIELD_ROWS, LIST(message, form.source, form.sources_count), .fields = member_fields},
    {"evaluated", MSG_FIELD_INT64, BODY(form.evaluated), -1, MOST},
    {"saved", MSG_FIELD_INT64, BODY(form.saved), -1, MOST},
    {"savedAgo", MSG_FIELD_INT64, BODY(form.saved_ago), 0, MOST},
    {"begun", MSG_FIELD_INT64, BODY(form.begun), 0, MOST},
    {"lanes", MSG_FIELD_INTS, LIST(message, form.lane_rank, form.lanes_count), .low = 0,
     .limit = RM_WORKERS_MAX - 1},
    {0},
};

static const struct message_field save_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(save.step), 0, MOST},
    {"final", MSG_FIELD_BOOL, BODY(save.final)},
    {"workers", MSG_FIELD_INTS, LIST(message, save.worker, save.count), .low = 0,
     .limit = RM_WORKERS_MAX - 1},
    {0},
};

static const struct message_field save_every_fields[] = {
    {"everyNs", MSG_FIELD_INT64, BODY(save_every.every), 1, MOST},
    {0},
};

static const struct message_field publish_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(publish.step), 0, MOST},
    {"final", MSG_FIELD_BOOL, BODY(publish.final)},
    {"exact", MSG_FIELD_BOOL, BODY(publish.exact)},
    {"replaces", MSG_FIELD_BOOL, BODY(publish.replaces)},
    {"lineage", MSG_FIELD_HEX, BODY(publish.lineage)},
    {"k", MSG_FIELD_BYTES, LIST(message, publish.k, publish.tensors)},
    {"fingerprint", MSG_FIELD_TEXT, BODY(publish.fingerprint)},
    {"dataSha256", MSG_FIELD_TEXT, BODY(publish.data_sha256)},
    {"dataFiles", MSG_FIELD_INT64, BODY(publish.data_files), 0, MOST},
    {"dataBytes", MSG_FIELD_INT64, BODY(publish.data_bytes), 0, MOST},
    {"loss", MSG_FIELD_REAL, BODY(publish.loss)},
    {"heldOutLoss", MSG_FIELD_REAL, BODY(publish.held_out)},
    {"evaluated", MSG_FIELD_INT64, BODY(publish.evaluated), -1, MOST},
    {"pieces", MSG_FIELD_ROWS, LIST(message, publish.piece, publish.count), .fields = piece_fields},
    {0},
};

static const struct message_field release_fields[] = {
    {"over", MSG_FIELD_BOOL, BODY(release.over)},
    {0},
};

static const struct message_field abandon_fields[] = {
    {"exitCode", MSG_FIELD_INT, BODY(abandon.exit_code), 0, 255},
    {"elsewhere", MSG_FIELD_BOOL, BODY(abandon.elsewhere)},
    {"why", MSG_FIELD_TEXT, BODY(abandon.why)},
    {0},
};

static const struct message_field hello_fields[] = {
    {"protocol", MSG_FIELD_INT, BODY(hello.protocol), 0, INT32_MAX},
    {"job", MSG_FIELD_TEXT, BODY(hello.job)},
    {"worker", MSG_FIELD_INT, BODY(hello.worker), 0, RM_WORKERS_MAX - 1},
    {"attempt", MSG_FIELD_INT, BODY(hello.attempt), 0, INT32_MAX},
    {"incarnation", MSG_FIELD_ID, BODY(hello.incarnation)},
    {"nonce", MSG_FIELD_HEX, BODY(hello.nonce)},
    {"proof", MSG_FIELD_HEX, BODY(hello.proof)},
    {"agentPid", MSG_FIELD_INT64, BODY(hello.agent_pid), 0, MOST},
    {"trainerPid", MSG_FIELD_INT64, BODY(hello.trainer_pid), 0, MOST},
    {"address", MSG_FIELD_TEXT, BODY(hello.address)},
    {"fingerprint", MSG_FIELD_TEXT, BODY(hello.fingerprint)},
    {"probe", MSG_FIELD_TEXT, BODY(hello.probe)},
    {"dataSha256", MSG_FIELD_TEXT, BODY(hello.data_sha256)},
    {"dataFiles", MSG_FIELD_INT64, BODY(hello.data_files), 0, MOST},
    {"dataBytes", MSG_FIELD_INT64, BODY(hello.data_bytes), 0, MOST},
    {"ring", MSG_FIELD_GENERATION, BODY(hello.ring)},
    {"phase", MSG_FIELD_ENUM, BODY(hello.phase), 0, MESSAGE_PHASES - 1, .names = message_phase_names},
    {"state", MSG_FIELD_STATE, BODY(hello.state)},
    {"finished", MSG_FIELD_BOOL, BODY(hello.finished)},
    {"begun", MSG_FIELD_INT64, BODY(hello.begun), 0, MOST},
    {"members", MSG_FIELD_INTS, LIST(message, hello.member, hello.members_count), .low = 0,
     .limit = RM_WORKERS_MAX - 1},
    {0},
};

static const struct message_field heartbeat_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(heartbeat.step), -1, MOST},
    {"counter", MSG_FIELD_INT64, BODY(heartbeat.counter), 0, MOST},
    {"phase", MSG_FIELD_ENUM, BODY(heartbeat.phase), 0, MESSAGE_PHASES - 1, .names = message_phase_names},
    {"waitingFor", MSG_FIELD_INT, BODY(heartbeat.waiting_for), -1, RM_WORKERS_MAX - 1},
    {"bytes", MSG_FIELD_INT64, BODY(heartbeat.bytes), 0, MOST},
    {0},
};

static const struct message_field progress_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(progress.step), 0, MOST},
    {"saves", MSG_FIELD_BOOL, BODY(progress.saves)},
    {"loss", MSG_FIELD_REAL, BODY(progress.loss)},
    {"lossKnown", MSG_FIELD_BOOL, BODY(progress.loss_known)},
    {"gradientNorm", MSG_FIELD_REAL, BODY(progress.numbers.norm)},
    {"clipFactor", MSG_FIELD_REAL, BODY(progress.numbers.clip)},
    {"learningRate", MSG_FIELD_REAL, BODY(progress.numbers.rate)},
    {"tokens", MSG_FIELD_INT64, BODY(progress.tokens), 0, MOST},
    {"stepNs", MSG_FIELD_INT64, BODY(progress.step_time), 0, MOST},
    {"rescaled", MSG_FIELD_INT64, BODY(progress.rescaled), 0, MOST},
    {"dataWaitNs", MSG_FIELD_INT64, BODY(progress.data_wait), 0, MOST},
    {"reduceNs", MSG_FIELD_INT64, BODY(progress.reduce_time), 0, MOST},
    {"reduceBytes", MSG_FIELD_INT64, BODY(progress.reduce_bytes), 0, MOST},
    {"secondTransport", MSG_FIELD_BOOL, BODY(progress.second.used), .late = true},
    {"transportSwitches", MSG_FIELD_INT64, BODY(progress.second.switches), 0, MOST, .late = true},
    {"transportFailures", MSG_FIELD_INT64, BODY(progress.second.failures), 0, MOST, .late = true},
    {"lanes", MSG_FIELD_INT, BODY(progress.pace.lanes), 0, RM_LANES_MAX, .late = true},
    {"laneUs", MSG_FIELD_INT64, BODY(progress.pace.lane_us), 0, UINT32_MAX, .late = true},
    {"slowPercent", MSG_FIELD_INT, BODY(progress.pace.slow), 0, INT32_MAX, .late = true},
    {"slowBy", MSG_FIELD_ENUM, BODY(progress.pace.by), 0, SLOW_BYS - 1, .names = message_slow_names,
     .late = true},
    {"transportWhy", MSG_FIELD_TEXT, BODY(progress.second.why), .late = true},
    {0},
};

static const struct message_field evaluated_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(evaluated.step), 0, MOST},
    {"loss", MSG_FIELD_REAL, BODY(evaluated.loss)},
    {0},
};

static const struct message_field noticed_fields[] = {
    {"word", MSG_FIELD_ENUM, BODY(noticed.word), 0, NOTICED_WILL, .names = notice_words},
    {"source", MSG_FIELD_TEXT, BODY(noticed.source)},
    {"cause", MSG_FIELD_TEXT, BODY(noticed.cause)},
    {"leftNs", MSG_FIELD_INT64, BODY(noticed.left), -1, MOST},
    {"pool", MSG_FIELD_TEXT, BODY(noticed.pool)},
    {"machine", MSG_FIELD_TEXT, BODY(noticed.machine)},
    {0},
};

static const struct message_field leaving_fields[] = {
    {"reason", MSG_FIELD_TEXT, BODY(leaving.reason)},
    {"deadlineNs", MSG_FIELD_INT64, BODY(leaving.deadline), 0, MOST},
    {"trainsOn", MSG_FIELD_BOOL, BODY(leaving.trains_on)},
    {0},
};

static const struct message_field fault_fields[] = {
    {"kind", MSG_FIELD_ENUM, BODY(fault.kind), 0, MESSAGE_FAULTS - 1, .names = message_fault_names},
    {"class", MSG_FIELD_ENUM, BODY(fault.class), 0, FAULT_CLASSES - 1, .names = fault_class_names},
    {"person", MSG_FIELD_BOOL, BODY(fault.person)},
    {"exitCode", MSG_FIELD_INT, BODY(fault.exit_code), 0, 255},
    {"peer", MSG_FIELD_INT, BODY(fault.peer), -1, RM_WORKERS_MAX - 1},
    {"step", MSG_FIELD_INT64, BODY(fault.step), -1, MOST},
    {"lasted", MSG_FIELD_INT64, BODY(fault.lasted), 0, MOST},
    {"reading", MSG_FIELD_BOOL, BODY(fault.reading)},
    {"memory", MSG_FIELD_BOOL, BODY(fault.memory)},
    {"rank", MSG_FIELD_INT, BODY(fault.rank), -1, INT32_MAX},
    {"trainer", MSG_FIELD_INT64, BODY(fault.trainer), 0, MOST},
    {"over", MSG_FIELD_BOOL, BODY(fault.over)},
    {"detail", MSG_FIELD_TEXT, BODY(fault.detail)},
    {"output", MSG_FIELD_TEXT, BODY(fault.output)},
    {0},
};

static const struct message_field stopped_fields[] = {
    {"round", MSG_FIELD_INT64, BODY(stopped.round), 0, MOST},
    {"state", MSG_FIELD_STATE, BODY(stopped.state)},
    {"updateStep", MSG_FIELD_INT64, BODY(stopped.update_step), -1, MOST},
    {"trainerPid", MSG_FIELD_INT64, BODY(stopped.trainer_pid), 0, MOST},
    {"discarded", MSG_FIELD_BOOL, BODY(stopped.discarded)},
    {"lanes", MSG_FIELD_LANES, BODY(stopped.lanes)},
    {0},
};

static const struct message_field ready_fields[] = {
    {"state", MSG_FIELD_STATE, BODY(ready.state)},
    {"trainerPid", MSG_FIELD_INT64, BODY(ready.trainer_pid), 0, MOST},
    {"ringNs", MSG_FIELD_INT64, BODY(ready.ring_time), 0, MOST},
    {"stateNs", MSG_FIELD_INT64, BODY(ready.state_time), 0, MOST},
    {0},
};

static const struct message_field checkpoints_fields[] = {
    {"folder", MSG_FIELD_TEXT, BODY(checkpoints.folder)},
    {"checkpoints", MSG_FIELD_ROWS, LIST(message, checkpoints.checkpoint, checkpoints.count),
     .fields = checkpoint_fields},
    {0},
};

static const struct message_field checkpointed_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(checkpointed.step), 0, MOST},
    {"final", MSG_FIELD_BOOL, BODY(checkpointed.final)},
    {"exact", MSG_FIELD_BOOL, BODY(checkpointed.exact)},
    {"damaged", MSG_FIELD_BOOL, BODY(checkpointed.damaged)},
    {"lineage", MSG_FIELD_HEX, BODY(checkpointed.lineage)},
    {"image", MSG_FIELD_ID, BODY(checkpointed.image)},
    {"k", MSG_FIELD_BYTES, LIST(message, checkpointed.k, checkpointed.tensors)},
    {"part", MSG_FIELD_INT, BODY(checkpointed.part), 0, RM_WORKERS_MAX - 1},
    {"parts", MSG_FIELD_INT, BODY(checkpointed.parts), 1, RM_WORKERS_MAX},
    {"tookNs", MSG_FIELD_INT64, BODY(checkpointed.took), 0, MOST},
    {"pieces", MSG_FIELD_ROWS, LIST(message, checkpointed.piece, checkpointed.count), .fields = piece_fields},
    {0},
};

static const struct message_field save_waits_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(save_waits.step), 0, MOST},
    {"ageNs", MSG_FIELD_INT64, BODY(save_waits.age), 0, MOST},
    {"why", MSG_FIELD_TEXT, BODY(save_waits.why)},
    {0},
};

static const struct message_field published_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(published.step), 0, MOST},
    {"final", MSG_FIELD_BOOL, BODY(published.final)},
    {"bytes", MSG_FIELD_INT64, BODY(published.bytes), 0, MOST},
    {"tookNs", MSG_FIELD_INT64, BODY(published.took), 0, MOST},
    {0},
};

static const struct message_field finished_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(finished.step), 0, MOST},
    {"digest", MSG_FIELD_HEX, BODY(finished.digest)},
    {"loss", MSG_FIELD_REAL, BODY(finished.loss)},
    {"lossKnown", MSG_FIELD_BOOL, BODY(finished.loss_known)},
    {"exact", MSG_FIELD_BOOL, BODY(finished.exact)},
    {0},
};

static const struct message_field setup_fields[] = {
    {"protocol", MSG_FIELD_INT, BODY(setup.protocol), 0, INT32_MAX},
    {"worker", MSG_FIELD_INT, BODY(setup.worker), 0, RM_WORKERS_MAX - 1},
    {"attempt", MSG_FIELD_INT, BODY(setup.attempt), 0, INT32_MAX},
    {"restarts", MSG_FIELD_INT, BODY(setup.restarts), 0, INT32_MAX},
    {"snapshotBusy", MSG_FIELD_BOOL, BODY(setup.snapshot_busy)},
    {"loadBusy", MSG_FIELD_BOOL, BODY(setup.load_busy)},
    {"incarnation", MSG_FIELD_ID, BODY(setup.incarnation)},
    {"dataSha256", MSG_FIELD_TEXT, BODY(setup.data_sha256)},
    {"key", MSG_FIELD_TEXT, BODY(setup.key)},
    {"spec", MSG_FIELD_TEXT, BODY(setup.spec)},
    {"listen", MSG_FIELD_TEXT, BODY(setup.listen)},
    {0},
};

static const struct message_field load_fields[] = {
    {"state", MSG_FIELD_STATE, BODY(load.state)},
    {"parts", MSG_FIELD_INT, BODY(load.parts), 0, RM_WORKERS_MAX},
    {"shares", MSG_FIELD_SET, BODY(load.shares)},
    {"inState", MSG_FIELD_BOOL, BODY(load.in_state)},
    {0},
};

static const struct message_field range_fields[] = {
    {"first", MSG_FIELD_INT64, OF(msg_range, first), 0, MOST},
    {"count", MSG_FIELD_INT64, OF(msg_range, count), 0, MOST},
    {0},
};

static const struct message_field loaded_fields[] = {
    {"state", MSG_FIELD_STATE, BODY(loaded.state)},
    {"parts", MSG_FIELD_INT, BODY(loaded.parts), 0, RM_WORKERS_MAX},
    {"shares", MSG_FIELD_SET, BODY(loaded.shares)},
    {"inState", MSG_FIELD_BOOL, BODY(loaded.in_state)},
    {"exact", MSG_FIELD_BOOL, BODY(loaded.exact)},
    {"k", MSG_FIELD_BYTES, LIST(message, loaded.k, loaded.tensors)},
    {"ranges", MSG_FIELD_ROWS, LIST(message, loaded.range, loaded.ranges), .fields = range_fields},
    {0},
};

static const struct message_field up_fields[] = {
    {"pid", MSG_FIELD_INT64, BODY(up.pid), 0, MOST},
    {"fingerprint", MSG_FIELD_TEXT, BODY(up.fingerprint)},
    {"probe", MSG_FIELD_TEXT, BODY(up.probe)},
    {"address", MSG_FIELD_TEXT, BODY(up.address)},
    {"state", MSG_FIELD_STATE, BODY(up.state)},
    {"dataSha256", MSG_FIELD_TEXT, BODY(up.data_sha256)},
    {"dataFiles", MSG_FIELD_INT64, BODY(up.data_files), 0, MOST},
    {"dataBytes", MSG_FIELD_INT64, BODY(up.data_bytes), 0, MOST},
    {"parameters", MSG_FIELD_INT64, BODY(up.parameters), 0, MOST},
    {"paramsAt", MSG_FIELD_INT64, BODY(up.params_at), -1, MOST},
    {"arrayStep", MSG_FIELD_INT64, BODY(up.array_step), 0, MOST},
    {"imageBytes", MSG_FIELD_INT64, BODY(up.image_bytes), 0, MOST},
    {0},
};

static const struct message_field snapshot_fields[] = {
    {"state", MSG_FIELD_STATE, BODY(snapshot.state)},
    {"final", MSG_FIELD_BOOL, BODY(snapshot.final)},
    {"exact", MSG_FIELD_BOOL, BODY(snapshot.exact)},
    {"first", MSG_FIELD_INT64, BODY(snapshot.first), 0, MOST},
    {"count", MSG_FIELD_INT64, BODY(snapshot.count), 0, MOST},
    {"image", MSG_FIELD_ID, BODY(snapshot.image)},
    {"part", MSG_FIELD_INT, BODY(snapshot.part), 0, RM_WORKERS_MAX - 1},
    {"parts", MSG_FIELD_INT, BODY(snapshot.parts), 1, RM_WORKERS_MAX},
    {"k", MSG_FIELD_BYTES, LIST(message, snapshot.k, snapshot.tensors)},
    {0},
};

static const struct message_field probe_fields[] = {
    {"id", MSG_FIELD_INT64, BODY(probe.id), 0, MOST},
    {"members", MSG_FIELD_ROWS, LIST(message, probe.member, probe.count), .fields = member_fields},
    {0},
};

static const struct message_field listen_fields[] = {
    {"sources", MSG_FIELD_ROWS, LIST(message, listen.source, listen.sources_count), .fields = member_fields},
    {0},
};

static const struct message_field heard_fields[] = {
    {"state", MSG_FIELD_STATE, BODY(heard.state)},
    {"why", MSG_FIELD_TEXT, BODY(heard.why)},
    {0},
};

static const struct message_field probed_fields[] = {
    {"id", MSG_FIELD_INT64, BODY(probed.id), 0, MOST},
    {"peer", MSG_FIELD_INT, BODY(probed.peer), -1, RM_WORKERS_MAX - 1},
    {"why", MSG_FIELD_TEXT, BODY(probed.why)},
    {0},
};

static const struct message_field reported_fields[] = {
    {"step", MSG_FIELD_INT64, BODY(reported.step), 0, MOST},
    {"steps", MSG_FIELD_INT64, BODY(reported.steps), 0, MOST},
    {"loss", MSG_FIELD_REAL, BODY(reported.loss)},
    {"lossKnown", MSG_FIELD_BOOL, BODY(reported.loss_known)},
    {"stillNs", MSG_FIELD_INT64, BODY(reported.still), 0, MOST},
    {0},
};

static const char *const frozen_words[] = {[FROZEN_SAVED] = "saved",
                                           [FROZEN_NOT_SAVED] = "notSaved",
                                           [FROZEN_RESTORED] = "restored",
                                           [FROZEN_HELD] = "held"};

static const struct message_field frozen_fields[] = {
    {"word", MSG_FIELD_ENUM, BODY(frozen.word), 0, FROZEN_HELD, .names = frozen_words},
    {"number", MSG_FIELD_INT64, BODY(frozen.number), 0, MOST},
    {"bytes", MSG_FIELD_INT64, BODY(frozen.bytes), 0, MOST},
    {"frozenNs", MSG_FIELD_INT64, BODY(frozen.frozen), 0, MOST},
    {"tookNs", MSG_FIELD_INT64, BODY(frozen.took), 0, MOST},
    {"why", MSG_FIELD_TEXT, BODY(frozen.why)},
    {0},
};

static const struct message_field hold_fields[] = {
    {"holds", MSG_FIELD_BOOL, BODY(hold.holds)},
    {0},
};

const struct message_kind message_kinds[MSG_TYPES] = {
    [MSG_CHALLENGE] = {"challenge", false, challenge_fields, SIZE(message, challenge)},
    [MSG_WELCOME] = {"welcome", false, welcome_fields, SIZE(message, welcome)},
    [MSG_ACK] = {"ack", false, ack_fields, SIZE(message, ack)},
    [MSG_STOP] = {"stop", false, stop_fields, SIZE(message, stop)},
    [MSG_FORM] = {"form", true, form_fields, SIZE(message, form)},
    [MSG_GO] = {"go", true, NULL, 0},
    [MSG_SAVE] = {"save", false, save_fields, SIZE(message, save)},
    [MSG_LIST] = {"list", false, NULL, 0},
    [MSG_PUBLISH] = {"publish", true, publish_fields, SIZE(message, publish)},
    [MSG_RELEASE] = {"release", false, release_fields, SIZE(message, release)},
    [MSG_ABANDON] = {"abandon", false, abandon_fields, SIZE(message, abandon)},
    [MSG_HELLO] = {"hello", false, hello_fields, SIZE(message, hello)},
    [MSG_HEARTBEAT] = {"heartbeat", true, heartbeat_fields, SIZE(message, heartbeat)},
    [MSG_PROGRESS] = {"progress", true, progress_fields, SIZE(message, progress)},
    [MSG_EVALUATED] = {"evaluated", true, evaluated_fields, SIZE(message, evaluated)},
    [MSG_NOTICED] = {"noticed", false, noticed_fields, SIZE(message, noticed)},
    [MSG_LEAVING] = {"leaving", false, leaving_fields, SIZE(message, leaving)},
    [MSG_FAULT] = {"fault", true, fault_fields, SIZE(message, fault)},
    [MSG_STOPPED] = {"stopped", true, stopped_fields, SIZE(message, stopped)},
    [MSG_READY] = {"ready", true, ready_fields, SIZE(message, ready)},
    [MSG_CHECKPOINTS] = {"checkpoints", false, checkpoints_fields, SIZE(message, checkpoints)},
    [MSG_CHECKPOINTED] = {"checkpointed", false, checkpointed_fields, SIZE(message, checkpointed)},
    [MSG_PUBLISHED] = {"published", false, published_fields, SIZE(message, published)},
    [MSG_SAVE_WAITS] = {"saveWaits", false, save_waits_fields, SIZE(message, save_waits)},
    [MSG_FINISHED] = {"finished", true, finished_fields, SIZE(message, finished)},
    [MSG_PROBE] = {"probe", false, probe_fields, SIZE(message, probe)},
    [MSG_SAVE_EVERY] = {"saveEvery", false, save_every_fields, SIZE(message, save_every)},
    [MSG_LISTEN] = {"listen", true, listen_fields, SIZE(message, listen)},
    [MSG_HEARD] = {"heard", true, heard_fields, SIZE(message, heard)},
    [MSG_PROBED] = {"probed", false, probed_fields, SIZE(message, probed)},
    [MSG_REPORTED] = {"reported", true, reported_fields, SIZE(message, reported)},
    [MSG_FROZEN] = {"frozen", true, frozen_fields, SIZE(message, frozen)},
    [MSG_SETUP] = {"setup", false, setup_fields, SIZE(message, setup)},
    [MSG_LOAD] = {"load", true, load_fields, SIZE(message, load)},
    [MSG_LOADED] = {"loaded", true, loaded_fields, SIZE(message, loaded)},
    [MSG_HOLD] = {"hold", false, hold_fields, SIZE(message, hold)},
    [MSG_SNAPSHOT_FREE] = {"snapshotFree", false, NULL, 0},
    [MSG_UP] = {"up", false, up_fields, SIZE(message, up)},
    [MSG_SNAPSHOT_WANTED] = {"snapshotWanted", false, NULL, 0},
    [MSG_SNAPSHOT] = {"snapshot", false, snapshot_fields, SIZE(message, snapshot)},
};
