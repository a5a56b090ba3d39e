/* `ringmaster-trainer work`: the control thread. It speaks with the agent over the link, feeds the elastic
 * core (trainer/core/elastic.h) with what happens, and has the other threads do what the core decides. It
 * watches the ring's sockets while they work, and ends when the link does. */
#ifndef RM_TRAINER_TRAIN_LOOP_H
#define RM_TRAINER_TRAIN_LOOP_H

struct train_loop_options {
    int link_fd;     /* Unix stream socket to the agent; owned from here on */
    int state_fd;    /* memfd that outlives this process */
    int snapshot_fd; /* memfd: common/model/snapshot.h */
    int data_fd;     /* socket to the agent for data of an object store (trainer/io/feed.h); -1: none */
    int program_fd;  /* listens for the user's program (mode Elastic); -1: none */
    int shelf_fd;    /* and the number behind it: a shelf (common/os/shelf.h); -1: none */
    int alone;       /* 1: in a pod, whose CPUs are this worker's */
};

/* Runs to the end; returns the exit code. */
int train_loop_run(const struct train_loop_options *options);

#endif
