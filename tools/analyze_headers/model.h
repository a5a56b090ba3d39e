/* What the analyzer can't see, since it looks at one file at a time: an error function returns -1.
 * tools/analyze includes this in front of every file but error.c; no program is built with it. */
#ifndef RM_TOOLS_ANALYZE_HEADERS_MODEL_H
#define RM_TOOLS_ANALYZE_HEADERS_MODEL_H

#include "common/base/err_system.h"
#include "common/base/error.h"

#define err_set(...)         (err_set(__VA_ARGS__), -1)
#define err_errno(...)       (err_errno(__VA_ARGS__), -1)
#define err_wrap(...)        (err_wrap(__VA_ARGS__), -1)
#define err_from(...)        (err_from(__VA_ARGS__), -1)
#define err_class(...)       (err_class(__VA_ARGS__), -1)
#define err_person(...)      (err_person(__VA_ARGS__), -1)
#define err_system(...)      (err_system(__VA_ARGS__), -1)
#define err_system_data(...) (err_system_data(__VA_ARGS__), -1)

#endif
