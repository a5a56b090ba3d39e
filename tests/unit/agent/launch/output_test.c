/* What a program writes is passed on in whole lines, and the last of it kept. */
#include "agent/launch/output.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct output *output;
static int into[2], out[2]; /* a process writes to into[1]; what is passed on comes out of out[0] */

static void arrange(void)
{
    struct error err = {0};
    cr_assert_eq(output_open(&output, &err), 0, "%s", err.text);
    cr_assert(pipe(into) == 0 && pipe(out) == 0);
}

static void dismiss(void)
{
    output_free(output);
}

TestSuite(output, .init = arrange, .fini = dismiss, .timeout = 60);

static void watch(int index, int rank)
{
    struct error err = {0};
    cr_assert_eq(output_add(output, index, into[0], out[1], rank, &err), 0, "%s", err.text);
}

static void say(const char *text)
{
    cr_assert_eq(write(into[1], text, strlen(text)), (ssize_t)strlen(text));
}

/* Everything that was passed on, when nothing more comes. */
static const char *heard(int index)
{
    static char text[1 << 16];
    close(into[1]);
    output_drain(output, index, 30 * RM_S);
    close(out[1]);
    size_t n = 0;
    for (ssize_t got; (got = read(out[0], text + n, sizeof text - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = 0;
    return text;
}

Test(output, lines_get_their_rank_in_front_and_come_out_whole)
{
    watch(0, 3);
    say("one\ntw");
    say("o\nthree");
    cr_assert_str_eq(heard(0), "[3] one\n[3] two\n[3] three\n");
}

Test(output, a_stream_of_ones_own_is_passed_on_as_it_is)
{
    watch(0, -1);
    say("10 %\r20 %\rdone\n");
    cr_assert_str_eq(heard(0), "10 %\r20 %\rdone\n");
}

Test(output, the_last_lines_are_kept_and_begin_with_a_whole_one)
{
    char line[64];
    struct str tail = str_init(100);
    watch(5, -1);
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof line, "line %d of what it said before it failed\n", i);
        say(line);
    }
    heard(5);
    output_tail(output, 5, &tail);
    cr_assert_str_eq(
        str_text(&tail),
        "line 198 of what it said before it failed\nline 199 of what it said before it failed\n");
    str_clear(&tail);
    output_forget(output, 5);
    output_tail(output, 5, &tail);
    cr_assert_eq(tail.length, 0);
    str_clear(&tail);
}

Test(output, a_line_without_an_end_is_passed_on_in_parts)
{
    static char flood[40000];
    memset(flood, 'x', sizeof flood - 1);
    watch(0, 1);
    say(flood);
    const char *text = heard(0);
    size_t crosses = 0;
    for (const char *p = text; *p; p++)
        crosses += *p == 'x';
    cr_assert_eq(crosses, sizeof flood - 1, "nothing of it is lost");
    cr_assert(!strncmp(text, "[1] x", 5) && strstr(text, "\n[1] x"));
}
