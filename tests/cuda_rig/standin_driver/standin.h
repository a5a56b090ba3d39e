/* A stand-in for libcuda.so.1, for tests: a GPU's memory in memfds, its work done by the calling thread.
 *
 * It is found as the real one is: by RINGMASTER_CUDA_LIBRARY. What kind of machine it plays, and what goes
 * wrong when, says RINGMASTER_STANDIN_CUDA (script.c has the words), read at the first call, and at cuInit
 * again where it has changed and nobody has a context.
 *
 * Work is done late: when somebody waits or asks, not when it is handed over, in an order that the seed
 * draws, streams' and events' own order kept. The seed also says how much is done early (seed % 4; 0:
 * nothing). A copy's target in host memory is spoilt until the copy is done, and a GPU's memory can't be
 * touched by the host at all.
 *
 * What the real driver answers with an error gets that error here, and a line on standard error that says
 * why. What it would take without a word, or do who knows what with, ends the process with such a line: a
 * copy beyond an allocation or of host memory that is not pinned, memory freed or unmapped and streams
 * destroyed while work is under way in them, a kernel started with another number of threads than it is
 * written for.
 *
 * Lock: one for everything, taken by ENTER. */
#ifndef RM_TESTS_STANDIN_H
#define RM_TESTS_STANDIN_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/cuda_rig/emulator.h"
#include "trainer/backend/cuda/driver/calls.h"

#define EXPORTED(name, arguments) __attribute__((visibility("default"))) CUresult name arguments;
CUDA_CALLS(EXPORTED)

enum { DEVICES_MAX = 8, RULES_MAX = 16, NODE_DEPENDS = 2 };

/* ---- what is played (script.c) ---- */

struct rule {
    enum { FAILS, LOST, HANGS, SKIPS, DIES } kind;
    char name[48];  /* of a call, without _v2; "kernel": one that is run; SKIPS, DIES: of a kernel */
    int64_t turn;   /* from 1 */
    int64_t moment; /* DIES: at which it ends */
    CUresult code;
    int64_t seen;
};

struct script {
    uint64_t seed;
    int devices, version, processors, major, minor;
    size_t memory, taken; /* bytes of each device; of them others' */
    bool prohibited, no_export, empty;
    char name[96];
    struct rule rule[RULES_MAX];
    int rules;
};

void script_read(struct script *s, const char *text);
/* The first rule whose turn this is, counting it; NULL. */
struct rule *script_turn(struct script *s, const char *name);
const char *result_name(CUresult code);

/* ---- everything that there is ---- */

struct allocation { /* of a device's memory */
    struct allocation *next;
    int fd, device;
    size_t bytes;
    int handles, mappings;
    bool exportable;
};

struct range { /* of addresses; or of pinned host memory */
    struct range *next;
    char *at;
    size_t bytes;
    bool pinned, access;
    struct allocation *mapped;
};

/* A place in a stream's work, as an event knows it. */
struct moment {
    int holders;
    bool done;
    double ms;
};

enum op_kind {
    OP_COPY_IN,
    OP_COPY_OUT,
    OP_COPY,
    OP_SET,
    OP_LAUNCH,
    OP_RECORD,
    OP_WAIT,
    OP_GRAPH,
    OP_JOIN,
    OP_OTHER
};

struct nodes; /* of a graph: counted */

struct op {
    struct op *next;
    enum op_kind kind;
    char *to, *from;
    size_t bytes;
    uint32_t word;
    const struct emulated_kernel *kernel;
    void *arguments;
    void (*run)(const void *arguments);   /* of another library */
    bool (*ready)(const void *arguments); /* NULL: at once; else it may be done when this says so */
    int blocks;
    struct moment *moment;
    struct nodes *graph;
    int after[NODE_DEPENDS]; /* in a graph: nodes before it; -1: none */
};

struct capture {
    struct CUstream_st *origin;
    struct nodes *nodes;
    uint64_t thread;
    bool broken;
};

struct CUctx_st {
    int device, users;
};

struct CUstream_st {
    struct CUstream_st *next;
    struct CUctx_st *context;
    struct op *first, *last;
    struct capture *capture;
    int tip; /* while it is captured: its newest node, -1 none */
};

struct CUevent_st {
    struct CUevent_st *next;
    struct CUctx_st *context;
    bool timed;
    struct moment *moment;   /* NULL: never recorded */
    struct capture *capture; /* it was recorded in: then this node is what it is */
    int node;
};

struct standin {
    bool read, started, hangs;
    struct script script;
    CUresult lost; /* what every call answers from now on */
    uint64_t random;
    double ms; /* of virtual time */
    struct CUctx_st context[DEVICES_MAX];
    struct allocation *allocation;
    struct range *range;
    struct CUstream_st *stream;
    struct CUevent_st *event;
};
extern struct standin standin;

/* ---- entering (device.c) ---- */

enum needs { NEEDS_NOTHING, NEEDS_START, NEEDS_CONTEXT };

struct call {
    bool locked;
};
CUresult enter(struct call *call, const char *name, enum needs needs);
void leave_call(struct call *call);
struct CUctx_st *current_context(void);
/* Lets other threads in for a while: for waits that may never end. */
void wait_a_moment(void);

#define ENTER(name, needs)                                                                                   \
    struct call entered __attribute__((cleanup(leave_call))) = {false};                                      \
    do {                                                                                                     \
        CUresult early = enter(&entered, #name, needs);                                                      \
        if (early != CUDA_SUCCESS)                                                                           \
            return early;                                                                                    \
    } while (0)

/* A line on standard error; misuse ends the process with it. */
CUresult answer(CUresult code, const char *format, ...) __attribute__((format(printf, 2, 3)));
_Noreturn void misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
void *fresh(size_t bytes); /* zeroed, or the process ends */
int draw(int bound);

/* ---- memory (memory.c) ---- */

/* Ends the process unless all of it is mapped device memory, or pinned. */
void check_device_memory(const char *what, CUdeviceptr at, size_t bytes);
void check_pinned(const char *what, const void *at, size_t bytes);
/* For who works on the device; it stays open until the call ends or waits. Each time is two system calls for
 * all of it, and a call may do hundreds of pieces of work. */
void device_memory_opens(void);
void device_memory_closes(void);
bool work_is_under_way(void);

/* ---- work (work.c) ---- */

struct op *op_new(enum op_kind kind);
/* Into the stream, or its capture; and some work is done, by the seed. */
CUresult hand_over(struct CUstream_st *s, struct op *op);
/* One piece of work, of any stream whose next one may be done; false: there is none. */
bool work_a_step(void);
CUresult work_until_empty(struct CUstream_st *s);
CUresult work_until(struct moment *m);
void moment_drop(struct moment *m);
void op_drop(struct op *op);
void run_op(struct op *op);

/* For other stand-ins: work of theirs in a stream, with a copy of its arguments; and whether what it touches
 * is there. */
__attribute__((visibility("default"))) int
standin_hand_over(CUstream stream, void (*run)(const void *arguments), const void *arguments, size_t bytes);
/* The same, of what waits for somebody outside: it may be done once `ready` says so, which is asked when the
 * stream has come to it, with the device's memory open. */
__attribute__((visibility("default"))) int standin_hand_over_when(CUstream stream,
                                                                  bool (*ready)(const void *arguments),
                                                                  void (*run)(const void *arguments),
                                                                  const void *arguments, size_t bytes);
__attribute__((visibility("default"))) void standin_check(const char *what, CUdeviceptr at, size_t bytes);

/* ---- graphs (graph.c) ---- */

CUresult capture_op(struct CUstream_st *s, struct op *op);
CUresult capture_record(struct CUstream_st *s, struct CUevent_st *e);
CUresult capture_wait(struct CUstream_st *s, struct CUevent_st *e);
/* For calls that a thread may not make while it captures. */
CUresult refuse_while_capturing(const char *what);
void run_graph(struct nodes *nodes);
void each_node(struct nodes *nodes, void (*visit)(struct op *op, void *with), void *with);
void nodes_drop(struct nodes *nodes);

#endif
