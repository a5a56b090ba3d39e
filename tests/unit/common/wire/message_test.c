/* The codec: what is written is read back, and nothing else is accepted. */
#include <criterion/criterion.h>
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/message.h"

static int read_text(struct message *m, const char *text, struct error *err)
{
    return message_read(m, text, strlen(text), err);
}

static void round_trip(const struct message *m, struct message *back)
{
    struct str first = str_init(RM_FRAME_MAX), second = str_init(RM_FRAME_MAX);
    struct error err = {0};
    message_write(m, &first);
    cr_assert_eq(message_read(back, first.data, first.length, &err), 0, "%s: %s", msg_type_name(m->type),
                 err.text);
    message_write(back, &second);
    cr_assert_str_eq(str_text(&first), str_text(&second));
    cr_assert_not(first.truncated);
    str_clear(&first);
    str_clear(&second);
}

Test(message, every_type_comes_back_as_it_was)
{
    static struct message m, back;
    for (int type = 0; type < MSG_TYPES; type++) {
        message_init(&m, (enum msg_type)type);
        m.term = 3;
        m.generation = (struct msg_generation){3, 9};
        if (type == MSG_CHECKPOINTED)
            m.checkpointed.parts = 1;
        if (type == MSG_SNAPSHOT)
            m.snapshot.parts = 1;
        if (type == MSG_SAVE_EVERY)
            m.save_every.every = 60 * RM_S;
        round_trip(&m, &back);
        cr_assert_eq(back.type, type);
        cr_assert_eq(back.term, 3);
    }
}

Test(message, a_form_at_its_ceilings_fits_a_frame)
{
    static struct message m, back;
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){1, 5};
    m.form.count = m.form.sources_count = RM_WORKERS_MAX;
    m.form.resume = (struct msg_state){.held = true, .step = 1 << 30, .lineage = {1, 2, 255}};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        m.form.member[i] =
            (struct msg_member){i, 2, UINT64_MAX - (uint64_t)i, "127.0.0.1:40001", ROLE_CATCH_UP};
        m.form.source[i] = m.form.member[i];
    }
    round_trip(&m, &back);
    cr_assert_eq(back.form.member[63].incarnation, UINT64_MAX - 63);
    cr_assert_eq(back.form.member[63].role, ROLE_CATCH_UP);
    cr_assert_eq(back.form.resume.lineage[2], 255);
}

Test(message, a_publish_at_its_ceilings_fits_a_frame)
{
    static struct message m, back;
    message_init(&m, MSG_PUBLISH);
    m.publish.tensors = RM_TENSORS_MAX;
    m.publish.count = MSG_PIECES_MAX;
    for (int i = 0; i < RM_TENSORS_MAX; i++)
        m.publish.k[i] = (int8_t)(i % 201 - 100);
    for (int i = 0; i < MSG_PIECES_MAX; i++) {
        memset(m.publish.piece[i].file, 'f', MSG_FILE_MAX - 1);
        m.publish.piece[i].offset = (int64_t)1 << 50;
    }
    round_trip(&m, &back);
    cr_assert_eq(back.publish.k[200], 100);
    cr_assert_eq(back.publish.piece[MSG_PIECES_MAX - 1].offset, (int64_t)1 << 50);
}

Test(message, an_unknown_loss_is_null_and_stays_unknown)
{
    struct message m, back;
    message_init(&m, MSG_PROGRESS);
    m.progress.loss = NAN;
    round_trip(&m, &back);
    cr_assert(isnan(back.progress.loss));
}

Test(message, what_an_update_was_made_with_comes_back_and_what_nobody_knows_is_no_0)
{
    struct message m, back;
    message_init(&m, MSG_PROGRESS);
    m.progress.numbers = (struct msg_numbers){.norm = 0.1, .clip = 0.25, .rate = 6e-4};
    round_trip(&m, &back);
    cr_assert(back.progress.numbers.norm == 0.1 && back.progress.numbers.clip == 0.25 &&
              back.progress.numbers.rate == 6e-4);
    m.progress.numbers = msg_numbers_unknown();
    round_trip(&m, &back);
    cr_assert(isnan(back.progress.numbers.norm) && isnan(back.progress.numbers.clip) &&
              isnan(back.progress.numbers.rate));
}

Test(message, a_fault_says_whose_it_is)
{
    struct message m, back;
    message_init(&m, MSG_FAULT);
    for (int which = 0; which < FAULT_CLASSES; which++) {
        m.fault.class = (enum fault_class)which;
        m.fault.person = true;
        m.fault.exit_code = 3;
        round_trip(&m, &back);
        cr_assert_eq(back.fault.class, which);
        cr_assert(back.fault.person && back.fault.exit_code == 3);
    }
    static const char unheard_of[] =
        "{\"type\":\"fault\",\"generation\":[1,1],\"kind\":\"storage\",\"class\":\"fate\"}";
    struct error err = {0};
    cr_assert_eq(read_text(&m, unheard_of, &err), -1);
    cr_assert(strstr(err.text, "class is none of the known names"), "%s", err.text);
}

/* Where a seed is older than its type, the fuzzer knows nothing behind the first member that it lacks. */
Test(message, each_type_has_a_seed_of_all_its_members_for_the_fuzzer)
{
    static struct message m;
    static char seed[1 << 16];
    struct str written = str_init(RM_FRAME_MAX);
    for (int type = 0; type < MSG_TYPES; type++) {
        struct error err = {0};
        char path[512];
        snprintf(path, sizeof path, RM_SOURCE "/tests/fuzz/corpus/message/%s",
                 msg_type_name((enum msg_type)type));
        FILE *file = fopen(path, "r");
        cr_assert(file, "there is no %s", path);
        seed[fread(seed, 1, sizeof seed - 1, file)] = 0;
        fclose(file);
        cr_assert_eq(read_text(&m, seed, &err), 0, "%s: %s", path, err.text);
        str_reset(&written);
        message_write(&m, &written);
        cr_expect_str_eq(str_text(&written), seed, "%s should hold %s", path, str_text(&written));
    }
    str_clear(&written);
}

struct refusal {
    const char *text, *sentence;
};

Test(message, malformed_frames_are_refused_with_a_sentence)
{
    static const struct refusal cases[] = {
        {"", "not valid JSON"},
        {"[]", "a message is a JSON object, not a list"},
        {"{}", "without a known type"},
        {"{\"type\":\"dance\"}", "without a known type"},
        {"{\"type\":\"stop\"}", "stop: "},
        {"{\"type\":\"stop\",\"round\":-1,\"at\":\"now\"}", "round"},
        {"{\"type\":\"stop\",\"round\":1,\"at\":\"later\"}", "at is none of the known names"},
        {"{\"type\":\"go\"}", "generation is not [term, n]"},
        {"{\"type\":\"go\",\"generation\":[1,-1]}", "generation is not [term, n]"},
        {"{\"type\":\"go\",\"generation\":[1,9007199254740992]}", "generation is not [term, n]"},
        {"{\"type\":\"go\",\"term\":9007199254740992,\"generation\":[1,1]}", "term is 9007199254740992"},
        {"{\"type\":\"challenge\",\"nonce\":\"00\"}", "nonce is not 64 hex digits"},
        {"{\"type\":\"save\",\"step\":1,\"final\":false,\"workers\":[64]}",
         "workers[0] is not a number from 0 to 63"},
        {"{\"type\":\"save\",\"step\":1,\"final\":1,\"workers\":[]}", "final"},
        {"{\"type\":\"checkpoints\",\"folder\":\"\",\"checkpoints\":[3]}", "checkpoints[0] is"},
        {"{\"type\":\"noticed\",\"word\":\"perhaps\",\"source\":\"\",\"cause\":\"\",\"leftNs\":1}",
         "word is none of the known names"},
        {"{\"type\":\"noticed\",\"word\":\"will\",\"source\":\"a-source-of-more-than-31-characters\","
         "\"cause\":\"\",\"leftNs\":1}",
         "source"},
        {"{\"type\":\"noticed\",\"word\":\"will\",\"source\":\"\",\"cause\":\"\",\"leftNs\":-2}", "leftNs"},
        {"{\"type\":\"ack\",\"step\":1e3,\"evaluated\":1}", "step"},
        {"{\"type\":\"ack\",\"step\":1,\"step\":2,\"evaluated\":1}", "not valid JSON"},
    };
    static struct message m;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct error err = {0};
        cr_assert_eq(read_text(&m, cases[i].text, &err), -1, "%s", cases[i].text);
        cr_assert_eq(err.code, ERR_PROTOCOL);
        cr_assert(strstr(err.text, cases[i].sentence), "'%s' gives '%s'", cases[i].text, err.text);
    }
}

Test(message, more_entries_than_the_ceiling_are_refused)
{
    static struct message m;
    struct str text = str_init(1 << 16);
    struct error err = {0};
    str_adds(&text, "{\"type\":\"save\",\"step\":1,\"final\":false,\"workers\":[0");
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        str_adds(&text, ",0");
    str_adds(&text, "]}");
    cr_assert_eq(read_text(&m, text.data, &err), -1);
    cr_assert(strstr(err.text, "at most 64 are allowed"), "%s", err.text);
    str_clear(&text);
}

Test(message, frames_cut_short_anywhere_are_refused)
{
    static struct message m, back;
    struct str text = str_init(RM_FRAME_MAX);
    message_init(&m, MSG_HELLO);
    message_write(&m, &text);
    for (size_t length = 0; length < text.length; length++)
        cr_assert_eq(message_read(&back, text.data, length, NULL), -1);
    str_clear(&text);
}

Test(message, a_newer_program_may_say_more)
{
    static struct message m;
    cr_assert_eq(read_text(&m,
                           "{\"type\":\"stop\",\"round\":1,\"at\":\"now\",\"withinNs\":0,\"mood\":\"calm\"}",
                           NULL),
                 0);
    cr_assert_eq(m.stop.round, 1);
}

/* Its memory ends where that type does: whoever touches more is seen by the sanitizers, and here by the bytes
 * behind it. */
Test(message, one_in_an_arena_has_room_for_its_type_alone)
{
    enum { BEHIND = 64 };
    for (int type = 0; type < MSG_TYPES; type++) {
        size_t room = message_room((enum msg_type)type);
        unsigned char *memory = malloc(2 * room + BEHIND);
        struct message plain;
        struct str written = str_init(RM_FRAME_MAX), expected = str_init(RM_FRAME_MAX);
        memset(memory, 0x5a, 2 * room + BEHIND);
        struct arena arena = arena_over(memory, 2 * room);
        struct message *m = message_place(&arena, (enum msg_type)type);
        message_init(&plain, (enum msg_type)type);
        m->term = plain.term = 7;
        struct message *copy = message_place_copy(&arena, m);
        m->term = 8;
        message_write(copy, &written);
        message_write(&plain, &expected);
        cr_assert_str_eq(str_text(&written), str_text(&expected));
        message_keep(copy, m);
        cr_assert_eq(copy->term, 8);
        cr_assert_eq(arena.used, arena.room);
        for (int i = 0; i < BEHIND; i++)
            cr_assert_eq(memory[2 * room + (size_t)i], 0x5a, "%s", msg_type_name((enum msg_type)type));
        str_clear(&written);
        str_clear(&expected);
        free(memory);
    }
}

static jmp_buf out_of_it;

static void jump(const char *sentence)
{
    cr_assert(strstr(sentence, "publish in the place of stop"), "%s", sentence);
    longjmp(out_of_it, 1);
}

Test(message, a_place_keeps_the_type_that_it_has_room_for)
{
    static struct message small, large;
    message_init(&small, MSG_STOP);
    message_init(&large, MSG_PUBLISH);
    assertion_hook = jump;
    if (!setjmp(out_of_it)) {
        message_keep(&small, &large);
        cr_assert_fail("it was written over what lies behind");
    }
    cr_assert_eq(small.type, MSG_STOP);
}
