/* `ringmaster-trainer bench-step [--preset gpt2-124m] ...`: how fast one lane goes forward and backward here.
 */
#ifndef RM_TRAINER_BENCH_STEP_H
#define RM_TRAINER_BENCH_STEP_H

/* argv[0] is "bench-step". Options, each with a number: --layers --heads --width --context --vocabulary
 * --sequences --threads --steps; by default gpt2-124m's sizes with 4 sequences of 256 tokens, 2 threads and
 * 5 steps after one that is not counted. Prints one JSON object on one line: the shape, seconds (the median
 * step), tokensPerSecond, loss. Returns the exit code. */
int bench_step_main(int argc, char **argv);

#endif
