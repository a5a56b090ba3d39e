/* What all who serve from a source need. */
#include "common/os/clock.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer_parts.h"

int service_send(const struct service *s, const void *bytes, size_t length)
{
    struct patience patience = {s->closing, clock_now() + SERVE_PATIENCE};
    return socket_send(s->fd, bytes, length, &patience, NULL);
}

int service_send_checked(const struct service *s, const void *bytes, size_t length)
{
    uint32_t crc = chunk_crc32c(bytes, length);
    return service_send(s, &crc, 4) < 0 ? -1 : service_send(s, bytes, length);
}

void transfer_ring_ears(struct transfer_source *source)
{
    for (struct ear *ear = source->live.ears; ear; ear = ear->next)
        abort_flag_set(&ear->bell);
}
