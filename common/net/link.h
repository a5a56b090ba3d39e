/* The link between an agent and its trainer: framed messages over a Unix stream socket, on a loop.
 *
 * A frame is a 4-byte little-endian length and that many bytes of text (JSON, common/wire/message.h), at most
 * RM_FRAME_MAX. Takes over fd. A frame over the limit ends the link. */
#ifndef RM_NET_LINK_H
#define RM_NET_LINK_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

struct link;

struct link_options {
    int fd; /* closed by link_free; on an error of link_open still the caller's */
    void (*message)(void *ctx, const char *text, size_t length); /* NUL-terminated */
    void (*closed)(void *ctx, const char *why);                  /* once, unless freed before */
    void *ctx;
};

int link_open(struct link **ret, struct loop *loop, const struct link_options *options, struct error *err);
/* -1 where the other side has closed or does not read (RM_FRAME_MAX * 4 bytes wait). */
int link_send(struct link *link, const char *text, size_t length, struct error *err);
/* Sends what waits, at most until `deadline`; for the end of a program. */
void link_drain(struct link *link, rm_time deadline);
void link_free(struct link *link);

/* A connected pair of such sockets (close-on-exec), for the parent and its child. */
int link_pair(int ret_fds[2], struct error *err);

#endif
