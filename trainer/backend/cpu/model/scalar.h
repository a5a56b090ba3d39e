/* Elementary functions of one number, made of + - * / only, so that they have the same bits everywhere (the C
 * library picks other code on other CPUs). */
#ifndef RM_TRAINER_SCALAR_H
#define RM_TRAINER_SCALAR_H

/* Natural logarithm, relative error below 1e-15; x > 0 and finite. NaN and infinity come back as they are. */
double scalar_log(double x);

/* cos and sin of 2 pi turn, absolute error below 1e-15; 0 <= turn < 1. */
void scalar_circle(double turn, double *cosine, double *sine);

#endif
