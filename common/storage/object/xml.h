/* Answers of an object store, which are XML without surprises (expat stays inside xml.c). No document type,
 * no entities but the five of XML, nothing of unknown depth or length. */
#ifndef RM_OBJECT_XML_H
#define RM_OBJECT_XML_H

#include <stddef.h>

#include "common/base/error.h"

enum {
    XML_DEPTH_MAX = 8,
    XML_PATH_MAX = 256,      /* "ListBucketResult/Contents/Key", with its NUL */
    XML_TEXT_MAX = 16 << 10, /* of one element, with its NUL */
};

/* Calls closed() at the end of each element: path is its name behind those it lies in, without prefixes of
 * namespaces; text is what stands directly in it, "" for one that holds only elements and white space. Both
 * are borrowed for the call. Returning -1 ends the reading with that error. What isn't well-formed, too deep
 * or too long is ERR_DATA. */
int xml_read(const void *bytes, size_t length,
             int (*closed)(void *ctx, const char *path, const char *text, struct error *err), void *ctx,
             struct error *err);

#endif
