/* The manifest of frozen processes: what it holds comes back, a changed byte does not, and whose it is is
 * told by the key alone. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/frozen_manifest.h"

static struct frozen_manifest made, again;
static uint8_t mine[RM_HASH_BYTES], other[RM_HASH_BYTES];
static struct str text;

static void make_manifest(void)
{
    frozen_key("my job's key", 12, mine);
    frozen_key("another one", 11, other);
    made = (struct frozen_manifest){.number = 12,
                                    .job = "prog",
                                    .ground = {.image = "prog@sha256:ab",
                                               .machine = "x86_64",
                                               .features = "avx avx2 sse4_1",
                                               .kernel = "6.18.0 \"odd\"",
                                               .criu = 40101},
                                    .object = "image-00000000000000ab",
                                    .bytes = FROZEN_PIECE_LEAST + 5,
                                    .piece_bytes = FROZEN_PIECE_LEAST,
                                    .files = 2,
                                    .pieces = 2,
                                    .file = {{"core-1000.img", 5}, {"pages-1.img", FROZEN_PIECE_LEAST}}};
    memset(made.piece_sha256[0], 0xab, RM_HASH_BYTES);
    memset(made.piece_sha256[1], 0xcd, RM_HASH_BYTES);
    text = str_init(FROZEN_TEXT_MAX);
    frozen_manifest_write(&made, mine, &text);
}

static void forget_manifest(void)
{
    str_clear(&text);
}

TestSuite(frozen_manifest, .init = make_manifest, .fini = forget_manifest);

Test(frozen_manifest, what_is_written_comes_back_and_is_sealed_by_its_own_key_alone)
{
    struct error err = {0};
    cr_assert_eq(frozen_manifest_read(&again, str_text(&text), text.length, "m", &err), 0, "%s", err.text);
    cr_assert(frozen_is_sealed_by(&again, mine));
    cr_assert_not(frozen_is_sealed_by(&again, other));
    cr_assert_eq(again.number, 12);
    cr_assert_str_eq(again.ground.kernel, "6.18.0 \"odd\"");
    cr_assert_eq(again.ground.criu, 40101);
    cr_assert_str_eq(again.file[1].name, "pages-1.img");
    cr_assert_eq(memcmp(again.piece_sha256, made.piece_sha256, sizeof made.piece_sha256), 0);
    cr_assert_eq(frozen_piece_length(&again, 0), FROZEN_PIECE_LEAST);
    cr_assert_eq(frozen_piece_length(&again, 1), 5);
}

Test(frozen_manifest, a_byte_that_is_another_is_refused_or_leaves_no_seal)
{
    for (size_t i = 0; i < text.length; i++)
        for (int bit = 0; bit < 8; bit++) {
            text.data[i] ^= (char)(1 << bit);
            bool taken = frozen_manifest_read(&again, text.data, text.length, "m", NULL) == 0 &&
                         frozen_is_sealed_by(&again, mine);
            cr_assert_not(taken, "bit %d of byte %zu", bit, i);
            text.data[i] ^= (char)(1 << bit);
        }
    for (size_t length = 0; length < text.length; length += 7)
        cr_assert_lt(frozen_manifest_read(&again, text.data, length, "m", NULL), 0, "%zu bytes", length);
}

/* Who has no key can still name a hash that fits. */
static void refused(const struct frozen_manifest *m, const char *sentence)
{
    struct error err = {0};
    struct str written = str_init(FROZEN_TEXT_MAX);
    frozen_manifest_write(m, mine, &written);
    cr_assert_lt(frozen_manifest_read(&again, str_text(&written), written.length, "m", &err), 0,
                 "accepted, wanted: %s", sentence);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_str_eq(err.text, sentence);
    str_clear(&written);
}

Test(frozen_manifest, files_that_lead_elsewhere_and_pieces_that_do_not_fit_are_refused)
{
    struct frozen_manifest *m = malloc(sizeof *m);
    *m = made;
    text_copy(m->file[0].name, sizeof m->file[0].name, "../x");
    refused(m, "m: files: \"../x\" is no name, or stands at the wrong place");
    *m = made;
    text_copy(m->file[1].name, sizeof m->file[1].name, "core-1000.img");
    refused(m, "m: files: \"core-1000.img\" is no name, or stands at the wrong place");
    *m = made;
    text_copy(m->object, sizeof m->object, "../image-1");
    refused(m, "m: object is \"../image-1\", which is no name");
    *m = made;
    m->pieces = 1;
    refused(m, "m: 1 pieces of 16777216 bytes are not 16777221 bytes");
    *m = made;
    m->file[0].bytes = 4;
    refused(m, "m: its files have 16777220 bytes, and not 16777221");
    *m = made;
    m->files = 0;
    refused(m, "m: it has 0 files, and not 1 to 8192");
    free(m);
}

Test(frozen_manifest, any_size_that_may_be_is_cut_into_no_more_pieces_than_there_may_be)
{
    static const int64_t sizes[] = {1,
                                    FROZEN_PIECE_LEAST,
                                    FROZEN_PIECE_LEAST + 1,
                                    INT64_C(1) << 35,
                                    (INT64_C(1) << 35) + 1,
                                    (INT64_C(1) << 40)};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t piece = frozen_piece_bytes(sizes[i]);
        int pieces = frozen_pieces(sizes[i], piece);
        cr_assert(pieces >= 1 && pieces <= FROZEN_PIECES_MAX && pieces * piece >= sizes[i] &&
                      (pieces - 1) * piece < sizes[i],
                  "%lld bytes", (long long)sizes[i]);
    }
}

static void refused_here(const struct frozen_ground *here, const char *sentence)
{
    struct error err = {0};
    cr_assert_lt(frozen_refuse_ground(&made.ground, here, &err), 0, "accepted, wanted: %s", sentence);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert_str_eq(err.text, sentence);
}

Test(frozen_manifest, where_it_can_not_live_is_said_and_a_better_processor_is_fine)
{
    struct frozen_ground here = made.ground;
    cr_assert_eq(frozen_refuse_ground(&made.ground, &here, NULL), 0);
    text_copy(here.features, sizeof here.features, "avx avx2 avx512f sse4_1");
    text_copy(here.kernel, sizeof here.kernel, "7.0");
    here.criu = 40200;
    cr_assert_eq(frozen_refuse_ground(&made.ground, &here, NULL), 0);
    text_copy(here.features, sizeof here.features, "avx512f sse4_1 sse4_12");
    refused_here(&here,
                 "this processor lacks avx, avx2, by which a program that was frozen on another one may "
                 "compute; keep the job to machines of one kind");
    here = made.ground;
    text_copy(here.image, sizeof here.image, "prog@sha256:cd");
    refused_here(&here, "it was frozen in image prog@sha256:ab, and this is prog@sha256:cd: what it has open "
                        "would be other files; give the job its image back");
    here.image[0] = 0; /* the first pod of a job can't know its digest */
    cr_assert_eq(frozen_refuse_ground(&made.ground, &here, NULL), 0);
    cr_assert_eq(frozen_refuse_ground(&here, &made.ground, NULL), 0);
    here = made.ground;
    text_copy(here.machine, sizeof here.machine, "aarch64");
    refused_here(&here, "it was frozen on a machine of kind x86_64, and this is one of kind aarch64");
    here = made.ground;
    here.criu = 40099;
    refused_here(&here, "it was frozen by CRIU 4.1, and this is 4.0, which is older");
}
