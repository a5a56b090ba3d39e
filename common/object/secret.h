/* Memory for secrets: in no core dump, wiped before it is given back. */
#ifndef RM_OBJECT_SECRET_H
#define RM_OBJECT_SECRET_H

#include <stddef.h>

void *secret_open(size_t bytes); /* zeroed; NULL: no memory */
void secret_free(void *memory, size_t bytes);

#endif
