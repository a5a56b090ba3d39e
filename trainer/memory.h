/* ringmaster-trainer memory: what a worker of a job needs on this machine, before there is one. */
#ifndef RM_TRAINER_MEMORY_MAIN_H
#define RM_TRAINER_MEMORY_MAIN_H

/* Prints `lane BYTES` and `state BYTES` (struct backend_needs), and `gpu BYTES` of a GPU's memory; the exit
 * code. */
int memory_main(int argc, char **argv);

#endif
