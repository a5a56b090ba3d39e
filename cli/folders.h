/* Places that lie within others: what is written into the one would become part of the other. */
#ifndef RM_CLI_FOLDERS_H
#define RM_CLI_FOLDERS_H

#include <stdbool.h>

/* Is one place the other, or inside it? Both are absolute, without "." and "..": a folder's path or URI, or
 * a bucket's URI. Links of folders are followed. */
bool folder_within(const char *inner_uri, const char *outer_uri);

#endif
