/* CRIU's stats-dump: the few numbers of it that are wanted. */
#include <string.h>

#include "agent/snapshot/core/words.h"

/* CRIU's own, of its header of magic numbers. */
static const uint32_t service_magic = 0x55105940, stats_magic = 0x57093306;

struct wire_reader {
    const unsigned char *at, *end;
};

static bool read_varint(struct wire_reader *r, uint64_t *ret)
{
    *ret = 0;
    for (int shift = 0; r->at < r->end && shift < 64; shift += 7) {
        unsigned char byte = *r->at++;
        *ret |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return true;
    }
    return false;
}

/* The next field: its number, and its value where it is a varint, its bytes where it has a length. */
static bool read_field(struct wire_reader *r, uint64_t *ret_number, uint64_t *ret_value,
                       struct wire_reader *ret_inner)
{
    uint64_t key;
    if (!read_varint(r, &key) || !read_varint(r, ret_value))
        return false;
    *ret_number = key >> 3;
    *ret_inner = (struct wire_reader){NULL, NULL};
    if ((key & 7) == 0)
        return true;
    if ((key & 7) != 2 || *ret_value > (uint64_t)(r->end - r->at))
        return false; /* none of its fields has a fixed width */
    *ret_inner = (struct wire_reader){r->at, r->at + *ret_value};
    r->at += *ret_value;
    return true;
}

static bool read_dump(struct wire_reader inner, struct snapshot_stats *ret)
{
    uint64_t number, value;
    struct wire_reader none;
    while (inner.at < inner.end) {
        if (!read_field(&inner, &number, &value, &none))
            return false;
        uint64_t *const places[] = {[1] = &ret->freezing_us,
                                    [2] = &ret->frozen_us,
                                    [4] = &ret->written_us,
                                    [7] = &ret->pages_written};
        if (number < sizeof places / sizeof *places && places[number])
            *places[number] = value;
    }
    return true;
}

bool snapshot_stats_read(const void *bytes, size_t length, struct snapshot_stats *ret)
{
    struct head {
        uint32_t service, stats, size;
    } head;
    if (length < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (head.service != service_magic || head.stats != stats_magic || head.size != length - sizeof head)
        return false;
    struct wire_reader all = {(const unsigned char *)bytes + sizeof head,
                              (const unsigned char *)bytes + length};
    struct snapshot_stats read = {0};
    bool found = false;
    while (all.at < all.end) {
        uint64_t number, value;
        struct wire_reader inner;
        if (!read_field(&all, &number, &value, &inner))
            return false;
        if (number != 1 || !inner.at)
            continue;
        if (!read_dump(inner, &read))
            return false;
        found = true;
    }
    *ret = found ? read : *ret;
    return found;
}
