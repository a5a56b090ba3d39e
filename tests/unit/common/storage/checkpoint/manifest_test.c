/* manifest.json: comes back as it was, and no changed bit passes. */
#include "fixture.h"

#include "common/os/crypto.h"

TestSuite(manifest, .init = fixture_make, .fini = fixture_remove);

static void make(struct manifest *m, int parts)
{
    struct model_layout *layout = fixture_layout(&fixture_shape);
    struct fixture_save save = {.layout = layout, .step = 200, .seed = 5, .parts = parts};
    fixture_save(&save, m);
    free(layout);
}

/* Name of a part of three. */
static const char *optimizer(const struct manifest *m, int part)
{
    static char name[2][MANIFEST_FILE_MAX];
    static int turn;
    turn = 1 - turn;
    manifest_optimizer_name(name[turn], part, 3, m->lineage);
    return name[turn];
}

static struct str text_of(const struct manifest *m)
{
    struct str text = str_init(MANIFEST_TEXT_MAX);
    manifest_write(m, &text);
    return text;
}

Test(manifest, comes_back_as_it_was)
{
    static struct manifest m, again;
    struct error err = {0};
    make(&m, 3);
    struct str text = text_of(&m);
    cr_assert_eq(manifest_read(&again, str_text(&text), text.length, "manifest.json", &err), 0, "%s",
                 err.text);
    struct str second = text_of(&again);
    cr_assert_str_eq(str_text(&text), str_text(&second));
    cr_assert_str_eq(again.compared, m.compared);
    cr_assert_str_eq(again.fingerprint, m.fingerprint);
    cr_assert_eq(memcmp(again.k, m.k, sizeof m.k), 0);
    cr_assert_eq(again.pieces, 1 + 3 + 1);
    cr_assert_eq(manifest_parts(&again), 3);
    cr_assert_eq(memcmp(again.lineage, m.lineage, RM_HASH_BYTES), 0);
    str_clear(&text);
    str_clear(&second);
}

Test(manifest, every_flipped_bit_is_found)
{
    static struct manifest m, again;
    make(&m, 2);
    struct str text = text_of(&m);
    for (size_t i = 0; i < text.length; i++)
        for (int bit = 0; bit < 8; bit++) {
            struct error err = {0};
            text.data[i] ^= (char)(1 << bit);
            cr_assert_eq(manifest_read(&again, text.data, text.length, "manifest.json", &err), -1,
                         "byte %zu bit %d", i, bit);
            cr_assert_eq(err.code, ERR_DATA, "%s", err.text);
            text.data[i] ^= (char)(1 << bit);
        }
    str_clear(&text);
}

Test(manifest, every_truncation_is_found)
{
    static struct manifest m, again;
    struct error err = {0};
    make(&m, 2);
    struct str text = text_of(&m);
    for (size_t length = 0; length < text.length; length++) {
        cr_assert_eq(manifest_read(&again, text.data, length, "manifest.json", &err), -1, "cut to %zu",
                     length);
        cr_assert_eq(err.code, ERR_DATA);
    }
    str_clear(&text);
}

/* The text with one part replaced, and its hash made right again. */
static struct str forge(const char *from, const char *to)
{
    static struct manifest m;
    make(&m, 2);
    struct str text = text_of(&m), forged = str_init(MANIFEST_TEXT_MAX);
    char *at = strstr(text.data, from), *tail = strstr(text.data, ",\n  \"manifestSha256\"");
    uint8_t hash[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    cr_assert(at && tail, "%s", from);
    str_add(&forged, text.data, (size_t)(at - text.data));
    str_adds(&forged, to);
    at += strlen(from);
    str_add(&forged, at, (size_t)(tail - at));
    sha256_once(forged.data, forged.length, hash);
    hex_encode(hash, RM_HASH_BYTES, hex);
    str_addf(&forged, ",\n  \"manifestSha256\": \"%s\"\n}\n", hex);
    str_clear(&text);
    return forged;
}

static void forged_is_refused(const char *from, const char *to, enum error_code code, const char *part)
{
    static struct manifest m;
    struct error err = {0};
    struct str text = forge(from, to);
    cr_assert_eq(manifest_read(&m, text.data, text.length, "x/manifest.json", &err), -1, "%s", to);
    cr_assert_eq(err.code, code);
    cr_assert(strstr(err.text, part) && !strncmp(err.text, "x/manifest.json: ", 17), "%s", err.text);
    str_clear(&text);
}

Test(manifest, a_newer_version_is_named_and_is_no_damage)
{
    forged_is_refused("\"version\": 4", "\"version\": 5", ERR_USAGE, "version 5 is newer than version 4");
}

Test(manifest, those_of_older_versions_are_read_and_stay_what_they_are)
{
    static struct manifest m, read;
    struct error err = {0};
    make(&m, 2);
    m.has_weights = true;
    for (m.version = 1; m.version < MANIFEST_VERSION; m.version++) {
        m.hash = m.version == 1 ? MANIFEST_WHOLE : MANIFEST_SHA256;
        struct str text = text_of(&m);
        cr_assert(strstr(str_text(&text), "\"weightsSha256\": \"") && !strstr(str_text(&text), "\"hash\""));
        cr_assert_eq(manifest_read(&read, text.data, text.length, "x/manifest.json", &err), 0, "%s",
                     err.text);
        cr_assert(read.version == m.version && read.hash == m.hash && read.has_weights);
        struct str again = text_of(&read);
        cr_assert_str_eq(str_text(&again), str_text(&text));
        str_clear(&text);
        str_clear(&again);
    }
}

Test(manifest, it_names_its_hash_and_the_weights_where_they_are_known)
{
    static struct manifest m, read;
    make(&m, 2);
    for (int i = 0; i < 4; i++) {
        m.hash = i % 2 ? MANIFEST_SHA256 : MANIFEST_XXH3;
        m.has_weights = i / 2;
        struct str text = text_of(&m);
        cr_assert(strstr(str_text(&text), i % 2 ? "\"hash\": \"sha256\"" : "\"hash\": \"xxh3\""));
        cr_assert_eq(!strstr(str_text(&text), "\"weightsSha256\": null"), m.has_weights);
        cr_assert_eq(manifest_read(&read, text.data, text.length, "manifest.json", NULL), 0);
        cr_assert(read.hash == m.hash && read.has_weights == m.has_weights);
        str_clear(&text);
    }
}

Test(manifest, wrong_fields_are_named_even_where_the_hash_is_right)
{
    forged_is_refused("\"step\": 200", "\"step\": -1", ERR_DATA, "step is -1, outside");
    forged_is_refused("\"step\": 200", "\"step\": \"200\"", ERR_DATA, "step is a string");
    forged_is_refused("\"exact\": true,", "", ERR_DATA, "16 fields, not 17");
    forged_is_refused("\"exact\"", "\"exactly\"", ERR_DATA, "exact is missing");
    forged_is_refused("\"exact\": true", "\"exact\": true, \"more\": 1", ERR_DATA, "fields");
    forged_is_refused("\"hash\": \"xxh3\"", "\"hash\": \"md5\"", ERR_DATA, "hash is md5");
    forged_is_refused("\"layers\": 2", "\"layers\": 1", ERR_DATA, "k has 28 exponents");
    forged_is_refused("\"k\": [", "\"k\": [101, ", ERR_DATA, "k has 29 exponents");
    forged_is_refused("-3,", "-101,", ERR_DATA, "k[1] is no exponent");
    forged_is_refused("\"heads\": 2", "\"heads\": 3", ERR_DATA, "3 heads don't divide");
    forged_is_refused("\"compared\": {", "\"compared\": 1, \"x\": {", ERR_DATA, "fields");
    forged_is_refused("\"sha256\": \"abab", "\"sha256\": \"xbab", ERR_DATA, "not a SHA-256");
    forged_is_refused("\"offset\": 0", "\"offset\": 1", ERR_DATA, "gaps");
    forged_is_refused("\"name\": \"config.json\"", "\"name\": \"../../x.json\"", ERR_DATA, "does not belong");
    forged_is_refused("\"term\"", "\"step\": 1, \"term\"", ERR_DATA, "not valid JSON");
}

static void piece_trouble(struct manifest *m, const char *part)
{
    struct error err = {0};
    cr_assert_eq(manifest_check_pieces(m, &err), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert(strstr(err.text, part), "%s", err.text);
}

static struct manifest_piece *find(struct manifest *m, const char *file)
{
    for (int i = 0; i < m->pieces; i++)
        if (!strcmp(m->piece[i].file, file))
            return &m->piece[i];
    cr_assert(false, "%s is not there", file);
    return NULL;
}

/* As if three had written it: only large models have more than one writer. */
static void split_model(struct manifest *m)
{
    struct manifest_piece *whole = find(m, "model.safetensors");
    for (int i = 0; i < 2; i++) {
        struct manifest_piece *half = &m->piece[m->pieces++];
        *half = *whole;
        half->bytes = whole->bytes / 2 & ~INT64_C(3);
        whole->offset += half->bytes;
        whole->bytes -= half->bytes;
    }
}

Test(manifest, pieces_that_do_not_make_a_checkpoint_are_refused)
{
    static struct manifest good, m;
    make(&good, 3);

    m = good;
    m.pieces = 0;
    piece_trouble(&m, "files are missing: model.safetensors, config.json, 0 of 0");

    m = good; /* the last is optimizer 3 of 3 */
    m.pieces--;
    piece_trouble(&m, "2 of 3 optimizer files");

    m = good;
    *find(&m, optimizer(&m, 1)) = *find(&m, optimizer(&m, 2));
    piece_trouble(&m, "does not belong here");

    m = good;
    split_model(&m);
    cr_assert_eq(manifest_check_pieces(&m, NULL), 0);
    good = m;
    find(&m, "model.safetensors")->bytes--;
    piece_trouble(&m, "model.safetensors leave gaps or overlap");

    m = good;
    find(&m, "model.safetensors")[1].offset -= 4;
    piece_trouble(&m, "leave gaps or overlap");

    m = good;
    find(&m, "model.safetensors")[2].bytes += 4;
    piece_trouble(&m, "bytes instead of");

    m = good;
    snprintf(find(&m, "config.json")->file, MANIFEST_FILE_MAX, "../config.json");
    piece_trouble(&m, "../config.json does not belong here");

    m = good; /* of another split of the same state */
    manifest_optimizer_name(find(&m, optimizer(&m, 0))->file, 0, 2, m.lineage);
    piece_trouble(&m, "");
}

Test(manifest, optimizer_files_may_be_called_as_they_once_were)
{
    static struct manifest m;
    struct error err = {0};
    make(&m, 3);
    for (int part = 0; part < 3; part++) {
        struct manifest_piece *piece = find(&m, optimizer(&m, part));
        manifest_optimizer_name(piece->file, part, 3, NULL);
    }
    cr_assert_eq(manifest_check_pieces(&m, &err), 0, "%s", err.text);
    uint8_t other[RM_HASH_BYTES] = {1};
    manifest_optimizer_name(find(&m, "optimizer-00002-of-00003.safetensors")->file, 1, 3, other);
    cr_assert_eq(manifest_check_pieces(&m, &err), -1, "a file of another history");
}
