#include "operator/answers.h"

#include <criterion/criterion.h>

#include "common/os/clock.h"

enum { READERS = 4 };

/* Who waits for an answer, and takes as long as it likes to read it. */
struct reader {
    struct answers *answers;
    struct answers_place place;
    rm_time takes;
    int reads, again; /* so often it comes again */
};

static void read_one(void *ctx)
{
    struct reader *reader = ctx;
    rm_time until = clock_now() + reader->takes;
    while (clock_now() < until)
        continue;
    reader->reads++;
    if (reader->again-- > 0)
        answers_add(reader->answers, &reader->place);
}

struct room {
    struct loop *loop;
    struct answers *answers;
    struct reader reader[READERS];
};

static void arrange(struct room *room, rm_time takes)
{
    *room = (struct room){0};
    cr_assert_eq(loop_open(&room->loop, NULL), 0);
    cr_assert_eq(answers_open(&room->answers, room->loop, NULL), 0);
    for (int i = 0; i < READERS; i++) {
        struct reader *reader = &room->reader[i];
        *reader = (struct reader){.answers = room->answers, .takes = takes};
        reader->place = (struct answers_place){.read = read_one, .ctx = reader};
    }
}

static void dismiss(struct room *room)
{
    answers_free(room->answers);
    loop_free(room->loop);
}

static int reads(const struct room *room)
{
    int count = 0;
    for (int i = 0; i < READERS; i++)
        count += room->reader[i].reads;
    return count;
}

TestSuite(answers, .timeout = 60);

/* Else who asks for /healthz would wait for all of them. */
Test(answers, of_those_that_take_long_one_is_read_in_a_turn)
{
    struct room room;
    arrange(&room, 2 * ANSWERS_PORTION);
    for (int i = 0; i < READERS; i++)
        answers_add(room.answers, &room.reader[i].place);
    cr_assert_eq(reads(&room), 0, "none is read where it is added");
    for (int i = 0; i < READERS; i++) {
        loop_turn(room.loop, true);
        cr_assert_eq(reads(&room), i + 1);
        cr_assert_eq(room.reader[i].reads, 1, "they are read in the order in which they came");
    }
    dismiss(&room);
}

Test(answers, one_that_comes_again_stands_behind_the_others)
{
    struct room room;
    arrange(&room, 2 * ANSWERS_PORTION);
    room.reader[0].again = 1;
    answers_add(room.answers, &room.reader[0].place);
    answers_add(room.answers, &room.reader[1].place);
    answers_add(room.answers, &room.reader[0].place); /* it waits already */
    loop_turn(room.loop, true);
    loop_turn(room.loop, true);
    cr_assert_eq(room.reader[1].reads, 1);
    cr_assert_eq(room.reader[0].reads, 1);
    loop_turn(room.loop, true);
    cr_assert_eq(room.reader[0].reads, 2);
    dismiss(&room);
}

Test(answers, who_has_gone_is_not_read)
{
    struct room room;
    arrange(&room, 0);
    answers_add(room.answers, &room.reader[0].place);
    answers_add(room.answers, &room.reader[1].place);
    answers_remove(room.answers, &room.reader[0].place);
    answers_remove(room.answers, &room.reader[2].place); /* it does not wait */
    while (!room.reader[1].reads)
        loop_turn(room.loop, true);
    cr_assert_eq(reads(&room), 1);
    dismiss(&room);
}
