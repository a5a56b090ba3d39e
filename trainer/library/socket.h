/* Packets over the trainer's Unix socket. Nothing is decided here. */
#ifndef RM_LIBRARY_SOCKET_H
#define RM_LIBRARY_SOCKET_H

#include <stddef.h>
#include <sys/types.h>

/* The path in RINGMASTER_SOCKET, or NULL. */
const char *socket_path(void);

/* A connection, or -1 with errno. */
int socket_connect(const char *path);

/* 0, or -1 with errno; never a signal. */
int socket_send(int fd, const void *packet, size_t bytes);

/* Bytes of the next packet (0: the other side has closed), or -1 with errno: EINTR where a signal came,
 * EAGAIN where nothing did for wait_ms, EMSGSIZE where the packet is longer than `room`. A descriptor that
 * came along goes to *passed, else -1; passed may be NULL. */
ssize_t socket_receive(int fd, void *packet, size_t room, int *passed, int wait_ms);

#endif
