/* Where a program listens, as text: "127.0.0.1:40312", "[fd00::7]:7070", "gpt-coordinator:7070". */
#ifndef RM_BASE_ADDRESS_H
#define RM_BASE_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

/* Takes "HOST:PORT" apart: host without brackets into host[size], a port from 1 to 65535. A host with colons
 * must stand in brackets. false where text is none of that, or its host does not fit. */
bool address_split(const char *text, char *host, size_t size, int *ret_port);

/* The other way, with brackets where the host has a colon; cut where out[size] is too short. */
void address_join(char *out, size_t size, const char *host, int port);

#endif
