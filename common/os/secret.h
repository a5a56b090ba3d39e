/* Memory for secrets: in no core dump, wiped before it is given back. And programs that have any. */
#ifndef RM_OS_SECRET_H
#define RM_OS_SECRET_H

#include <stddef.h>

void *secret_open(size_t bytes); /* zeroed; NULL: no memory */
void secret_free(void *memory, size_t bytes);

/* What each program does first. No core dump is written of it and its children, neither to a file nor to a
 * program that collects them, unless RINGMASTER_CORE_DUMPS says so; then they hold no credentials. Those that
 * came with the environment move from its memory, which /proc shows, into memory for secrets. */
void secret_guard(void);

#endif
