/* Checks that stay in every build.
 *
 * A state machine that finds its own state impossible must not go on with it: it would write wrong weights,
 * or wait for ever. RM_ASSERT ends the process (SIGABRT) with one sentence that names file, line, what should
 * hold, and the values that it was given; for whoever watches the process that is a death like any other, and
 * what others hold stands. It is for what the code itself promises: bad input, a full disk or a silent peer
 * get an error. */
#ifndef RM_COMMON_ASSERT_H
#define RM_COMMON_ASSERT_H

/* RM_ASSERT(world <= most, "a ring of %d, the job takes %d", world, most): condition, then a printf format.
 */
#define RM_ASSERT(condition, ...)                                                                            \
    ((condition) ? (void)0 : assertion_failed(__FILE__, __LINE__, #condition, __VA_ARGS__))

_Noreturn void assertion_failed(const char *file, int line, const char *condition, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

/* Tests set it, each for its own thread: it is called with the sentence first, and may jump out. NULL: none.
 */
extern _Thread_local void (*assertion_hook)(const char *sentence);

#endif
