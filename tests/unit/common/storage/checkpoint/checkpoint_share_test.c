/* A checkpoint read in shares: together they are the whole, and each is verified by itself. */
#include "common/storage/checkpoint/share.h"

#include <fcntl.h>

#include "fixture.h"
#include "tests/unit/bits.h"

TestSuite(share, .init = fixture_make, .fini = fixture_remove);

enum { PARTS_MOST = 9 };

static struct manifest m;

static struct checkpoint_share share_of(const struct model_layout *layout, float *state, int parts,
                                        struct worker_set shares)
{
    return (struct checkpoint_share){
        .store = fixture_store,
        .step = m.step,
        .lineage = m.lineage,
        .layout = layout,
        .parts = parts,
        .shares = shares,
        .array = {state, state + layout->parameters, state + 2 * layout->parameters}};
}

static struct model_layout *save(int writers)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save how = {.layout = layout, .step = 5, .seed = 3, .parts = writers};
    fixture_save(&how, &m);
    return layout;
}

/* Marks what a share holds; each element may be marked once. */
static void mark(uint8_t *seen, int64_t parameters, const struct model_range range[MODEL_ARRAYS_MAX])
{
    for (int a = 0; a < MODEL_ARRAYS; a++)
        for (int64_t i = range[a].first; i < range[a].first + range[a].count; i++)
            cr_assert_eq(seen[a * parameters + i]++, 0, "element %lld of array %d is in two shares",
                         (long long)i, a);
}

static void read_in_shares(const struct model_layout *layout, int parts)
{
    size_t elements = 3 * (size_t)layout->parameters;
    float *state = fixture_state(layout, 77), *expected = fixture_state(layout, 3);
    uint8_t *seen = calloc(elements, 1);
    for (int i = 0; i < parts; i++) {
        struct model_range range[MODEL_ARRAYS_MAX];
        struct error err = {0};
        struct checkpoint_share share = share_of(layout, state, parts, set_of(i));
        cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), 0, "%s", err.text);
        mark(seen, layout->parameters, range);
        for (size_t e = 0; e < elements; e++)
            cr_assert(!seen[e] || state[e] == expected[e], "share %d of %d: element %zu", i, parts, e);
    }
    for (size_t e = 0; e < elements; e++)
        cr_assert(seen[e], "element %zu is in no share of %d", e, parts);
    free(seen);
    free(state);
    free(expected);
}

Test(share, any_number_of_readers_gets_each_element_once_and_right)
{
    for (int writers = 1; writers <= 4; writers++) {
        struct model_layout *layout = save(writers);
        for (int parts = 1; parts <= PARTS_MOST; parts++)
            read_in_shares(layout, parts);
        read_in_shares(layout, RM_WORKERS_MAX);
        free(layout);
        fixture_remove();
        fixture_make();
    }
}

Test(share, one_reader_may_read_what_others_did_not_give)
{
    struct model_layout *layout = save(3);
    float *state = fixture_state(layout, 77), *expected = fixture_state(layout, 3);
    struct model_range range[MODEL_ARRAYS_MAX];
    struct error err = {0};
    struct checkpoint_share share = share_of(layout, state, 5, set_of_bits(0x15));
    cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), 0, "%s", err.text);
    share.shares = set_of_bits(0x0a);
    cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), 0, "%s", err.text);
    cr_assert_eq(memcmp(state, expected, 12 * (size_t)layout->parameters), 0);
    free(state);
    free(expected);
    free(layout);
}

Test(share, shares_follow_each_other_and_are_about_as_large)
{
    static struct manifest made;
    for (int i = 0; i < 40; i++)
        made.piece[made.pieces++] = (struct manifest_piece){.bytes = 100 + i};
    for (int parts = 1; parts <= PARTS_MOST; parts++) {
        int64_t bytes[PARTS_MOST] = {0};
        int last = 0;
        for (int i = 0; i < made.pieces; i++) {
            int share = share_of_piece(&made, i, parts);
            cr_assert(share == last || share == last + 1, "piece %d of share %d comes after share %d", i,
                      share, last);
            last = share;
            bytes[share] += made.piece[i].bytes;
        }
        for (int i = 0; i < parts; i++)
            cr_assert(llabs(bytes[i] - manifest_bytes(&made) / parts) <= 140, "share %d of %d has %lld bytes",
                      i, parts, (long long)bytes[i]);
    }
}

static void flip(const struct manifest_piece *piece)
{
    char name[512], path[512];
    uint8_t byte;
    snprintf(name, sizeof name, "step-00000005/%s", piece->file);
    fixture_path(path, name);
    int fd = open(path, O_RDWR);
    cr_assert(fd >= 0, "%s", path);
    off_t at = piece->offset + piece->bytes / 2;
    cr_assert_eq(pread(fd, &byte, 1, at), 1);
    byte ^= 4;
    cr_assert_eq(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static bool is_marked(void)
{
    struct object_info info;
    return object_head(fixture_store, "step-00000005/manifest.damaged.json", &info, NULL) == 0;
}

/* Whoever reads the share with the flipped byte finds it; the others' are as good as before. */
Test(share, a_flipped_byte_is_found_by_who_holds_its_share)
{
    enum { PARTS = 3 };
    for (int flipped = 0; flipped < PARTS; flipped++) {
        struct model_layout *layout = save(4);
        float *state = fixture_state(layout, 77);
        struct model_range range[MODEL_ARRAYS_MAX];
        int piece = 0;
        while (share_of_piece(&m, piece, PARTS) != flipped)
            piece++;
        flip(&m.piece[piece]);
        for (int i = 0; i < PARTS; i++) {
            struct error err = {0};
            struct checkpoint_share share = share_of(layout, state, PARTS, set_of(i));
            cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), i == flipped ? -1 : 0, "%s",
                         err.text);
            cr_assert(i != flipped || (err.code == ERR_DATA && err.class == CLASS_OBJECT &&
                                       strstr(err.text, m.piece[piece].file)),
                      "%s", err.text);
        }
        cr_assert_not(is_marked(), "who reads renames nothing");
        free(state);
        free(layout);
        fixture_remove();
        fixture_make();
    }
}

Test(share, a_state_is_found_by_step_and_lineage)
{
    struct model_layout *layout = save(2);
    float *state = fixture_state(layout, 77);
    struct model_range range[MODEL_ARRAYS_MAX];
    struct error err = {0};
    uint8_t other[RM_HASH_BYTES];
    fixture_lineage(other, 5, 4);
    struct checkpoint_share share = share_of(layout, state, 1, set_of(0));
    share.lineage = other;
    cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    share.lineage = m.lineage;
    share.step = 6;
    cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_NOT_FOUND);
    free(state);
    free(layout);
}

Test(share, who_is_told_to_give_up_blames_nobody)
{
    struct model_layout *layout = save(2);
    float *state = fixture_state(layout, 77);
    struct model_range range[MODEL_ARRAYS_MAX];
    struct error err = {0};
    atomic_int stop = 1;
    struct checkpoint_share share = share_of(layout, state, 1, set_of(0));
    share.stop = &stop;
    cr_assert_eq(checkpoint_load_share(&share, range, NULL, &err), -1);
    cr_assert_eq(err.code, ERR_ABORTED);
    cr_assert_not(is_marked());
    free(state);
    free(layout);
}
