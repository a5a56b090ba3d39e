/* Taints by which others say that a Node is about to go. Pure. */
#ifndef RM_NOTICE_TAINT_H
#define RM_NOTICE_TAINT_H

#include "common/notice/notice.h"

/* The source that a taint's key (the part before = and :) stands for; NOTICE_SOURCES where it says nothing of
 * the Node's end. */
enum notice_source notice_of_taint(const char *key);

#endif
