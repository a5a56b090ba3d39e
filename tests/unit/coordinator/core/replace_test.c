/* A checkpoint that stands in the store and is damaged, as somebody says: who may replace it. */
#include "tests/unit/coordinator/core/story.h"

/* Of this many workers, who have all finished and save the last step. */
static void save_the_last(struct story *s, int workers)
{
    struct rdzv_settings settings = story_settings(1);
    settings.save_patience = 600 * RM_S;
    story_begin(s, settings);
    train_with(s, workers);
    progress(s, 0, 100);
    for (int w = 0; w < workers; w++)
        finished(s, w);
    forget(s);
}

static void piece(struct story *s, int w, int parts, bool damaged)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.step = 100;
    m.checkpointed.final = true;
    m.checkpointed.exact = true;
    m.checkpointed.damaged = damaged;
    memcpy(m.checkpointed.lineage, state_of(100).lineage, RM_HASH_BYTES);
    m.checkpointed.part = w;
    m.checkpointed.parts = parts;
    m.checkpointed.count = 1;
    hear(s, w, &m);
}

static void finds_damage(struct story *s, int w)
{
    fault_says(s, w,
               &(struct msg_fault){.kind = FAULT_STORAGE,
                                   .class = CLASS_OBJECT,
                                   .step = 100,
                                   .detail = "what is there is damaged as this machine reads it"});
}

Test(replace, who_alone_finds_damaged_what_stands_there_replaces_nothing_and_another_one_looks)
{
    struct story s;
    save_the_last(&s, 3);
    for (int w = 0; w < 3; w++)
        piece(&s, w, 3, w == 0);
    cr_assert(said(&s, "send 0 publish") && !said(&s, "replaces"), "%s", str_text(&s.log));
    finds_damage(&s, 0);
    forget(&s);
    after(&s, RM_S);
    for (int w = 0; w < 3; w++)
        piece(&s, w, 3, w == 0);
    cr_assert(said(&s, "send 1 publish"), "%s", str_text(&s.log));
    published(&s, 1, 100, true);
    cr_assert_eq(s.ended, 0, "%s", str_text(&s.log));
    story_end(&s);
}

Test(replace, what_another_one_has_found_damaged_too_makes_way)
{
    struct story s;
    save_the_last(&s, 3);
    for (int w = 0; w < 3; w++)
        piece(&s, w, 3, w == 2);
    cr_assert(said(&s, "send 0 publish") && said(&s, "replaces"), "%s", str_text(&s.log));
    story_end(&s);
}

Test(replace, where_there_is_nobody_else_what_is_damaged_makes_way)
{
    struct story s;
    save_the_last(&s, 1);
    piece(&s, 0, 1, true);
    cr_assert(said(&s, "send 0 publish") && said(&s, "replaces"), "%s", str_text(&s.log));
    story_end(&s);
}

/* Both trainers died while worker 0 published step 240, which stands there already: they load it. */
Test(replace, who_can_not_publish_what_it_loads_holds_up_no_ring_and_nothing_that_is_saved_later)
{
    struct story s;
    struct rdzv_settings settings = story_settings(2);
    settings.steps = 1000;
    settings.max_restarts = 9;
    story_begin(&s, settings);
    train_with(&s, 2);
    for (int w = 0; w < 2; w++)
        progress(&s, w, 240);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 231, w, 2, false);
    published(&s, 0, 231, false);
    forget(&s);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 240, w, 2, false);
    cr_assert(said(&s, "send 0 publish"), "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++) {
        struct message m;
        fault_of(&s, w, FAULT_TRAINER_EXIT, -1, -1);
        s.trainer[w]++;
        hello_message(&s, w, -1, &m);
        hear(&s, w, &m);
    }
    all_stop(&s, 2);
    for (int w = 0; w < 2; w++)
        listed(&s, w, 240, 231);
    cr_assert_eq(s.form.form.resume.step, 240, "%s", str_text(&s.log));
    write_fails(&s, 0, 240, CLASS_OBJECT);
    cr_assert_eq(rdzv_state(s.st), RDZV_FORMING, "%s", str_text(&s.log));
    for (int w = 0; w < 2; w++)
        ready(&s, w, 240);
    for (int w = 0; w < 2; w++)
        progress(&s, w, 250);
    forget(&s);
    for (int w = 0; w < 2; w++)
        checkpointed(&s, w, 250, w, 2, false);
    cr_assert(said(&s, " publish"), "%s", str_text(&s.log));
    story_end(&s);
}
