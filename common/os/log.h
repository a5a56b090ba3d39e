/* Log lines on stderr: a constant message plus key=value pairs, `why=` where something was decided.
 *     log_info("ring formed", "generation=%d world=%d why=\"%s\"", g, n, why);
 * Only programs log; libraries return errors. The level comes from RINGMASTER_LOG (default warn). With
 * RINGMASTER_LOG_FORMAT=json each line is one JSON object, for whoever collects the logs of a cluster:
 * {"time":ms,"level":"info","program":"...","worker":2,"term":1,"message":"...","key":"value"}, worker and
 * term where the program said which it is; the level is info then where RINGMASTER_LOG says nothing. */
#ifndef RM_OS_LOG_H
#define RM_OS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN };

void log_name(const char *program); /* "agent 2": put before each line */
void log_worker(int worker);        /* this program is one of that worker */
void log_term(int64_t term);        /* this coordinator is that of this term */
void log_as_json(void);             /* from now on, and in the programs that this one starts */
/* ERR_USAGE where the environment asks for a level or a format that there is not: for a program to which a
 * person sets it. Elsewhere such a word means nothing. */
int log_check(struct error *err);
bool log_shows(enum log_level level); /* would such a line be written? for those that cost something */
void log_line(enum log_level level, const char *message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)

#endif
