/* prices.csv on disk, such as a ConfigMap that is mounted: read at the start and again every few seconds,
 * since the kubelet puts another file in its place when the ConfigMap changes. A file that is refused, or
 * gone, leaves the prices as they were; each is said once in the log. */
#ifndef RM_OPERATOR_PRICE_FILE_H
#define RM_OPERATOR_PRICE_FILE_H

#include "common/base/error.h"
#include "operator/core/prices.h"

struct loop;
struct price_file;

/* path: borrowed; changed: other prices count from now on, not called for the first ones. */
int price_file_open(struct price_file **ret, struct loop *loop, const char *path, void (*changed)(void *ctx),
                    void *ctx, struct error *err);
void price_file_free(struct price_file *file); /* NULL is fine */

/* Valid until the loop turns; NULL where file is. */
const struct prices *price_file_prices(const struct price_file *file);
/* Does the file that lies there now not count? */
bool price_file_refused(const struct price_file *file);

#endif
