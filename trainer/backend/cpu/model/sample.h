/* Drawing a token from logits. */
#ifndef RM_TRAINER_SAMPLE_H
#define RM_TRAINER_SAMPLE_H

/* The token at the place `unit` (in [0, 1)) of softmax(logits / temperature)'s cumulated probabilities, in
 * order of tokens. temperature 0: the likeliest, the first of several. logits (n) become garbage. */
int sample_token(float *logits, int n, float temperature, double unit);

#endif
