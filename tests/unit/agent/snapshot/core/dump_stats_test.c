/* CRIU's stats-dump: the numbers of a real one, and everything that is none. */
#include <criterion/criterion.h>
#include <string.h>

#include "agent/snapshot/core/words.h"

/* What CRIU 4.1.1 wrote of a small Python. */
static const unsigned char real[] = {
    0x40, 0x59, 0x10, 0x55, 0x06, 0x33, 0x09, 0x57, 0x25, 0x00, 0x00, 0x00, 0x0a, 0x23, 0x08, 0xdc, 0x3e,
    0x10, 0xb0, 0xba, 0x03, 0x18, 0x8b, 0x3e, 0x20, 0xd3, 0x1c, 0x28, 0xe8, 0x06, 0x30, 0x00, 0x38, 0x9b,
    0x06, 0x40, 0x00, 0x48, 0x00, 0x50, 0x08, 0x58, 0x08, 0x60, 0x00, 0x68, 0x00, 0x70, 0x00};

Test(dump_stats, times_and_pages_of_a_dump_are_read)
{
    struct snapshot_stats stats;
    cr_assert(snapshot_stats_read(real, sizeof real, &stats));
    cr_expect_eq(stats.freezing_us, 8028);
    cr_expect_eq(stats.frozen_us, 56624);
    cr_expect_eq(stats.written_us, 3667);
    cr_expect_eq(stats.pages_written, 795);
}

Test(dump_stats, a_file_that_is_cut_anywhere_is_refused_and_nothing_is_written)
{
    for (size_t length = 0; length < sizeof real; length++) {
        struct snapshot_stats stats = {.frozen_us = 4711};
        cr_expect_not(snapshot_stats_read(real, length, &stats), "%zu bytes", length);
        cr_expect_eq(stats.frozen_us, 4711);
    }
}

/* The length in the head fits, what stands behind it is cut: no read goes past the end (ASan). */
Test(dump_stats, a_message_that_is_cut_behind_a_right_length_is_refused)
{
    for (size_t length = 13; length < sizeof real; length++) {
        unsigned char cut[sizeof real];
        struct snapshot_stats stats;
        memcpy(cut, real, length);
        cut[8] = (unsigned char)(length - 12);
        cr_expect_not(snapshot_stats_read(cut, length, &stats), "%zu bytes", length);
    }
}

Test(dump_stats, another_files_magic_numbers_are_refused)
{
    for (size_t i = 0; i < 8; i++) {
        unsigned char changed[sizeof real];
        struct snapshot_stats stats;
        memcpy(changed, real, sizeof real);
        changed[i] ^= 1;
        cr_expect_not(snapshot_stats_read(changed, sizeof changed, &stats), "byte %zu", i);
    }
}

/* criu restore writes its numbers as field 2 of the same message. */
Test(dump_stats, a_restores_numbers_are_not_a_dumps)
{
    unsigned char changed[sizeof real];
    struct snapshot_stats stats;
    memcpy(changed, real, sizeof real);
    changed[12] = 2 << 3 | 2;
    cr_expect_not(snapshot_stats_read(changed, sizeof changed, &stats));
}
