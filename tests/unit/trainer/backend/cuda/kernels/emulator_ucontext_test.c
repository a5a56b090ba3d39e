/* The emulator's tests, with stacks changed as on processors other than x86-64 and arm64. */
#include "emulator_test.c"
