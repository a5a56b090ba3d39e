/* Log lines on stderr: a constant message plus key=value pairs, `why=` where something was decided.
 *     log_info("ring formed", "generation=%d world=%d why=\"%s\"", g, n, why);
 * Only programs log; libraries return errors. The level comes from RINGMASTER_LOG (default warn). */
#ifndef RM_OS_LOG_H
#define RM_OS_LOG_H

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN };

void log_name(const char *program); /* "agent 2": put before each line */
/* From now on one JSON object a line,
 * {"time":ms,"level":"info","program":"...","message":"...","key":"value"}, for whoever collects the logs of
 * a cluster; the level is info where RINGMASTER_LOG says nothing. */
void log_as_json(void);
void log_line(enum log_level level, const char *message, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)
#define log_info(...)  log_line(LOG_INFO, __VA_ARGS__)
#define log_warn(...)  log_line(LOG_WARN, __VA_ARGS__)

#endif
