#include "cli/core/picture_draw.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- a run made of events --- */

static struct event event_of(enum event_kind kind)
{
    return (struct event){.kind = kind,
                          .step = -1,
                          .worker = -1,
                          .loss = NAN,
                          .norm = NAN,
                          .clip = NAN,
                          .rate = NAN,
                          .goodput = NAN};
}

static void take(struct report *r, struct event e, rm_time now)
{
    report_take(r, &e, now);
}

static void ring(struct report *r, int64_t step, int64_t generation, uint64_t members)
{
    struct event e = event_of(EVENT_RING_FORMED);
    e.step = step;
    e.generation = generation;
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (members >> w & 1)
            e.member[e.members++].worker = w;
    take(r, e, step * RM_S + 1);
}

static bool numbers; /* steps say what their update was made with */

/* A second each; the loss falls from near `high` to 2. */
static void steps(struct report *r, int64_t from, int64_t to, double high)
{
    struct event e = event_of(EVENT_STEP);
    for (int64_t s = from + 1; s <= to; s++) {
        e.step = s;
        e.world = 3;
        e.norm = numbers ? 0.5 + 1 / (double)s : NAN;
        e.rate = numbers ? 6e-4 * (double)s / (double)to : NAN;
        e.loss = 2 + (high - 2) * exp(-4 * (double)s / (double)r->steps);
        take(r, e, s * RM_S);
    }
}

static void change(struct report *r, enum event_kind kind, int worker)
{
    struct event e = event_of(kind);
    e.worker = worker;
    take(r, e, r->step * RM_S + 1);
}

static void recovered(struct report *r, double ms, int64_t redone)
{
    struct event e = event_of(EVENT_RECOVERED);
    e.recovered.total = ms;
    e.recovered.steps_redone = redone;
    text_copy(e.text, sizeof e.text, "TrainerExit");
    take(r, e, r->step * RM_S + 2);
}

static void evaluated(struct report *r, int64_t step, double loss)
{
    struct event e = event_of(EVENT_EVALUATED);
    e.step = step;
    e.loss = loss;
    take(r, e, step * RM_S);
}

/* Three workers; one is lost, one joins, one leaves. */
static void lively_run(struct report *r)
{
    report_init(r, 90, 0, 0);
    ring(r, 0, 1, 7);
    steps(r, 0, 30, 5.5);
    evaluated(r, 30, 4);
    change(r, EVENT_WORKER_LOST, 1);
    ring(r, 30, 2, 5);
    recovered(r, 57, 1);
    steps(r, 30, 60, 5.5);
    evaluated(r, 60, 3);
    change(r, EVENT_WORKER_JOINED, 3);
    ring(r, 60, 3, 13);
    recovered(r, 80, 0);
    steps(r, 60, 75, 5.5);
    change(r, EVENT_WORKER_LEFT, 0);
    ring(r, 75, 4, 12);
    recovered(r, 44, 0);
    steps(r, 75, 90, 5.5);
}

static const struct screen_style plain = {.columns = 80}, unicode = {.columns = 80, .unicode = true};

static struct str drawn(const struct report *r, struct screen_style style)
{
    struct str out = str_init(1 << 16);
    picture_text(r, style, &out);
    return out;
}

static struct str svg_of(const struct report *r, const char *name)
{
    struct str out = str_init(1 << 20);
    picture_svg(r, &(struct picture_facts){.name = name, .date = "2026-11-23", .parameters = 842496}, &out);
    return out;
}

/* --- text --- */

Test(picture_text, a_run_is_drawn_with_its_losses_joins_and_generations)
{
    static struct report r;
    lively_run(&r);
    struct str out = drawn(&r, unicode);
    cr_assert_str_eq(str_text(&out),
                     "  loss       ██▇▇▆▆▅▅▅▄▄▄▃▃▃▃▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  5.348 to 2.064\n"
                     "  held-out                  ▅               ▃                  3\n"
                     "  worker 0   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━<\n"
                     "  worker 1   ━━━━━━━━━━━━━━━━×\n"
                     "  worker 2   ━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━\n"
                     "  worker 3                                   +━━━━━━━━━━━━━━━\n"
                     "  generation 1               2               3       4\n"
                     "  step       0                       45                    90\n"
                     "             × lost   < left   + joined\n");
    str_clear(&out);
}

Test(picture_text, without_a_utf8_locale_it_is_plain_ascii)
{
    static struct report r;
    lively_run(&r);
    struct str out = drawn(&r, plain);
    cr_assert_str_eq(str_text(&out),
                     "  loss       @@##**+++===----::::::::........................  5.348 to 2.064\n"
                     "  held-out                  +               -                  3\n"
                     "  worker 0   ========================================<\n"
                     "  worker 1   ================x\n"
                     "  worker 2   ================================================\n"
                     "  worker 3                                   +===============\n"
                     "  generation 1               2               3       4\n"
                     "  step       0                       45                    90\n"
                     "             x lost   < left   + joined\n");
    str_clear(&out);
}

Test(picture_text, colours_change_nothing_else_and_end_with_their_line)
{
    static struct report r;
    lively_run(&r);
    struct str out = drawn(&r, (struct screen_style){.columns = 80, .colour = true});
    struct str bare = str_init(1 << 16), expected = drawn(&r, plain);
    bool coloured = false;
    cr_assert(strstr(str_text(&out), "\033[31mx\033[0m\n"), "%s", str_text(&out));
    for (const char *c = str_text(&out); *c; c++) {
        if (*c == '\033') {
            c = strchr(c, 'm');
            coloured = c[-1] != '0';
            continue;
        }
        cr_assert(*c != '\n' || !coloured, "%s", str_text(&out));
        str_add(&bare, c, 1);
    }
    cr_assert_str_eq(str_text(&bare), str_text(&expected));
    str_clear(&out);
    str_clear(&bare);
    str_clear(&expected);
}

Test(picture_text, fits_any_terminal)
{
    static struct report r;
    lively_run(&r);
    for (int columns = 50; columns < 200; columns++) {
        struct str out = drawn(&r, (struct screen_style){.columns = columns});
        for (const char *line = str_text(&out); *line; line = strchr(line, '\n') + 1)
            cr_assert_leq(strcspn(line, "\n"), (size_t)columns, "%d columns: %s", columns, line);
        str_clear(&out);
    }
}

Test(picture_text, every_step_of_a_short_run_is_as_wide_as_every_other)
{
    static struct report r;
    report_init(&r, 5, 0, 0);
    ring(&r, 0, 1, 1);
    steps(&r, 0, 5, 4);
    struct str out = drawn(&r, plain);
    cr_assert(strstr(str_text(&out), "@@@@@@@@@=========:::::::::..."), "%s", str_text(&out));
    str_clear(&out);
}

Test(picture_text, a_run_without_a_step_is_not_drawn)
{
    static struct report r;
    report_init(&r, 5, 3, 0);
    ring(&r, 3, 1, 1);
    struct str text = drawn(&r, unicode), svg = svg_of(&r, "x");
    cr_assert_eq(text.length, 0);
    cr_assert_eq(svg.length, 0);
}

Test(picture_text, many_workers_share_one_line_that_shows_how_many_there_are)
{
    static struct report r;
    report_init(&r, 100, 0, 0);
    ring(&r, 0, 1, 0xffff);
    steps(&r, 0, 50, 4);
    ring(&r, 50, 2, 0xff);
    steps(&r, 50, 100, 4);
    struct str out = drawn(&r, plain);
    cr_assert(strstr(str_text(&out), "workers    @@@@@@@@"), "%s", str_text(&out));
    cr_assert(strstr(str_text(&out), "16 at most"), "%s", str_text(&out));
    cr_assert_null(strstr(str_text(&out), "worker 1"));
    str_clear(&out);
}

/* --- what is kept --- */

Test(picture, a_resumed_run_counts_from_where_it_went_on)
{
    static struct report r;
    report_init(&r, 300, 200, 0);
    ring(&r, 200, 1, 3);
    steps(&r, 200, 300, 3);
    cr_assert_eq(r.picture.bins, 100);
    cr_assert_eq(picture_time(&r.picture, 200), 0);
    struct str out = svg_of(&r, "tiny");
    cr_assert(strstr(str_text(&out), "tiny, from step 200<"), "%.600s", str_text(&out));
    cr_assert(strstr(str_text(&out), ">steps 201 to 300 in 5 min 00 s "), "%.600s", str_text(&out));
    str_clear(&out);
}

Test(picture, an_evaluation_of_the_step_that_a_run_went_on_from_is_drawn_at_its_beginning)
{
    static struct report r;
    report_init(&r, 300, 200, 0);
    ring(&r, 200, 1, 3);
    evaluated(&r, 200, 3);
    cr_assert_eq(r.picture.bin[0].step, 200);
    steps(&r, 200, 210, 3);
    cr_assert_eq(picture_held_out(&r.picture, 200, 201), 3);
    struct str out = svg_of(&r, "tiny");
    cr_assert(strstr(str_text(&out), ">steps 201 to 210 of 300 in "), "%.600s", str_text(&out));
    cr_assert_null(strstr(str_text(&out), "M-"));
    str_clear(&out);
}

Test(picture, the_loss_of_a_span_is_its_mean)
{
    static struct report r;
    report_init(&r, 4096, 0, 0);
    struct event e = event_of(EVENT_STEP);
    for (e.step = 1; e.step <= 4096; e.step++) {
        e.loss = (double)e.step;
        take(&r, e, e.step);
    }
    cr_assert_eq(r.picture.stride, 4);
    cr_assert_float_eq(picture_loss(&r.picture, 0, 4), 2.5, 1e-9);
    cr_assert_float_eq(picture_loss(&r.picture, 0, 4096), 2048.5, 1e-9);
    cr_assert_eq(r.picture.bin[0].low, 1);
    cr_assert_eq(r.picture.bin[0].high, 4);
}

Test(picture, a_loss_that_is_no_number_is_left_out)
{
    static struct report r;
    report_init(&r, 3, 0, 0);
    ring(&r, 0, 1, 1);
    struct event e = event_of(EVENT_STEP);
    e.step = 1;
    e.loss = 4;
    take(&r, e, 1);
    e.step = 2;
    e.loss = INFINITY;
    take(&r, e, 2);
    cr_assert(isnan(picture_loss(&r.picture, 1, 2)));
    struct str out = svg_of(&r, "x");
    cr_assert_null(strstr(str_text(&out), "inf"));
    cr_assert_null(strstr(str_text(&out), "nan"));
    str_clear(&out);
}

Test(picture, more_rings_than_are_kept_lose_the_shortest_ones_first)
{
    static struct report r;
    report_init(&r, 100000, 0, 0);
    ring(&r, 0, 1, 7);
    for (int i = 1; i < 500; i++) {
        ring(&r, 100 * i, 2 * i, 3);
        ring(&r, 100 * i + 1, 2 * i + 1, 7);
    }
    cr_assert_eq(r.picture.rings_formed, 999);
    cr_assert_eq(r.picture.rings, PICTURE_RINGS);
    cr_assert_eq(r.picture.ring[0].step, 0);
    cr_assert_eq(r.picture.ring[PICTURE_RINGS - 1].generation, 999);
    for (int i = 1; i < r.picture.rings; i++)
        cr_assert_lt(r.picture.ring[i - 1].step, r.picture.ring[i].step);
}

/* --- SVG --- */

/* Every tag that opens closes, in order; no bare ampersand; nothing below the space but newlines. */
static void well_formed(const char *xml)
{
    char open[8][16];
    int depth = 0;
    for (const char *c = xml; *c; c++) {
        char name[16] = "";
        cr_assert(*c == '\n' || (unsigned char)*c >= ' ');
        if (*c == '&')
            cr_assert(!strncmp(c, "&lt;", 4) || !strncmp(c, "&gt;", 4) || !strncmp(c, "&amp;", 5) ||
                      !strncmp(c, "&quot;", 6));
        if (*c != '<' || c[1] == '?')
            continue;
        const char *end = strchr(c, '>');
        cr_assert_not_null(end);
        memcpy(name, c + 1 + (c[1] == '/'), strcspn(c + 1 + (c[1] == '/'), " />"));
        if (c[1] == '/')
            cr_assert_str_eq(open[--depth], name);
        else if (end[-1] != '/')
            memcpy(open[depth++], name, sizeof name);
        cr_assert(depth >= 0 && depth < 8);
        c = end;
    }
    cr_assert_eq(depth, 0);
}

Test(picture_svg, tells_each_recovery_and_what_it_cost)
{
    static struct report r;
    lively_run(&r);
    struct str out = svg_of(&r, "tiny");
    well_formed(str_text(&out));
    cr_assert(
        strstr(str_text(&out), "step 30: worker 1 lost, <tspan font-weight=\"600\">57 ms</tspan>, 1 step"));
    cr_assert(strstr(str_text(&out), "step 60: worker 3 joined, <tspan font-weight=\"600\">80 ms</tspan><"));
    cr_assert_null(strstr(str_text(&out), "<script"));
    str_clear(&out);
}

/* Where the text stands; its anchor is the end. */
static double place_of(const char *svg, const char *text)
{
    const char *at = strstr(svg, text);
    cr_assert_not_null(at, "%s", text);
    while (strncmp(at, "<text x=\"", 9) != 0)
        at--;
    return strtod(at + 9, NULL);
}

Test(picture_svg, what_stands_left_of_the_rows_is_within_the_margin)
{
    static struct report r;
    lively_run(&r);
    struct str out = svg_of(&r, "tiny");
    const double margin = 24, width = 6.6 * 10; /* ten letters of 12 pixels, of the widest font named */
    cr_assert_geq(place_of(str_text(&out), ">generation<"), margin + width);
    str_clear(&out);
}

Test(picture_svg, the_axis_ends_with_the_last_step_and_has_each_checkpoint)
{
    static struct report r;
    lively_run(&r);
    struct event saved = event_of(EVENT_CHECKPOINT_SAVED);
    struct str before = svg_of(&r, "tiny");
    cr_assert_null(strstr(str_text(&before), "checkpoint"));
    r.step = 87; /* no round number: no tick stands there */
    saved.step = 40;
    take(&r, saved, 91 * RM_S);
    struct str out = svg_of(&r, "tiny");
    well_formed(str_text(&out));
    cr_assert(strstr(str_text(&out), ">87</text>"));
    cr_assert(strstr(str_text(&out), "<title>checkpoint saved</title>"));
    str_clear(&before);
    str_clear(&out);
}

Test(picture_svg, says_which_run_it_is_to_who_sees_it_and_who_does_not)
{
    static struct report r;
    lively_run(&r);
    struct event end = event_of(EVENT_COMPLETE);
    end.step = 90;
    text_copy(end.weights_sha256, sizeof end.weights_sha256, "0123456789abcdef");
    take(&r, end, 91 * RM_S);
    struct str out = svg_of(&r, "a < b");
    well_formed(str_text(&out));
    cr_assert(strstr(str_text(&out), " role=\"img\" "));
    cr_assert(
        strstr(str_text(&out), "<title>a &lt; b: loss and workers of a training run, 3 recoveries</title>"));
    cr_assert(strstr(str_text(&out), ">842,496 parameters · 2026-11-23 · weights 0123456789ab<"));
    str_clear(&out);
}

/* Each colour that is drawn with has one for dark pages, and the two are not the same. */
Test(picture_svg, every_colour_has_another_one_where_pages_are_dark)
{
    static struct report r;
    numbers = true;
    lively_run(&r);
    struct str out = svg_of(&r, "tiny");
    const char *sheet = strstr(str_text(&out), "<style>"), *end = strstr(str_text(&out), "</style>");
    cr_assert(sheet && end && strstr(sheet, "prefers-color-scheme:dark"));
    for (const char *c = end; (c = strchr(c, '#')); c++) {
        char rule[40];
        int length = (int)strspn(c + 1, "0123456789abcdef") + 1;
        snprintf(rule, sizeof rule, "[fill=\"%.*s\"]{fill:#", length, c);
        const char *found = strstr(sheet, rule);
        cr_assert(found && found < end, "%s", rule);
        cr_assert_neq(strncmp(found + strlen(rule) - 1, c, (size_t)length), 0, "%s", rule);
    }
    str_clear(&out);
}

Test(picture_svg, norm_and_rate_are_thin_lines_with_a_legend_where_they_are_known)
{
    static struct report r;
    lively_run(&r);
    struct str without = svg_of(&r, "tiny");
    cr_assert_null(strstr(str_text(&without), "gradient norm"));
    cr_assert_null(strstr(str_text(&without), "learning rate"));
    numbers = true;
    lively_run(&r);
    struct str out = svg_of(&r, "tiny");
    well_formed(str_text(&out));
    cr_assert(strstr(str_text(&out), ">gradient norm, 0 to 1.5</tspan>"));
    cr_assert(strstr(str_text(&out), ">learning rate, 0 to 0.0006</tspan>"));
    /* Step 1 is the highest norm: it touches the chart's top, 92, and half of it would be in the middle. */
    const char *line = strstr(str_text(&out), "stroke=\"#8a5cc9\"");
    cr_assert(line && strstr(line, "M109.3 92.0h0L118.6 165.3L"), "%.200s", line ? line : "no line");
    cr_assert(strstr(str_text(&out), "<title>learning rate</title>"));
    str_clear(&without);
    str_clear(&out);
}

/* A step of which nobody knows them leaves a gap, and no line to 0. */
Test(picture_svg, what_is_not_known_is_a_gap_in_the_thin_lines)
{
    static struct report r;
    report_init(&r, 4, 0, 0);
    ring(&r, 0, 1, 1);
    for (int64_t s = 1; s <= 4; s++) {
        struct event e = event_of(EVENT_STEP);
        e.step = s;
        e.loss = 3;
        e.norm = s == 3 ? NAN : 2;
        take(&r, e, s * RM_S);
    }
    struct str out = svg_of(&r, "tiny");
    const char *line = strstr(str_text(&out), "stroke=\"#8a5cc9\"");
    cr_assert(line && strstr(line, "M309.0 92.0h0L518.0 92.0M936.0 92.0h0\""), "%.300s",
              line ? line : "no line");
    str_clear(&out);
}

Test(picture_svg, a_name_can_not_break_the_file)
{
    static struct report r;
    lively_run(&r);
    struct str out = svg_of(&r, "</svg> & \"größe\" \xff\x01 \xc3");
    well_formed(str_text(&out));
    cr_assert(strstr(str_text(&out), "&lt;/svg&gt; &amp; &quot;größe&quot; ?? ?"), "%.700s", str_text(&out));
    str_clear(&out);
}

Test(picture_svg, the_longest_and_wildest_run_stays_below_its_ceiling)
{
    static struct report r;
    numbers = true;
    report_init(&r, 100000, 0, 0);
    ring(&r, 0, 1, UINT64_MAX);
    for (int64_t i = 1; i < 200; i++) {
        steps(&r, 500 * (i - 1), 500 * i, 9);
        evaluated(&r, 500 * i, 4);
        change(&r, EVENT_WORKER_LOST, (int)(i % 64));
        ring(&r, 500 * i, i + 1, i % 2 ? UINT64_C(0x5555555555555555) : UINT64_C(0xaaaaaaaaaaaaaaaa));
        recovered(&r, 12345, 1);
    }
    struct str out = svg_of(&r, "wild");
    cr_assert_lt(out.length, (size_t)PICTURE_SVG_MAX, "%zu bytes", out.length);
    well_formed(str_text(&out));
    str_clear(&out);
}

Test(picture_text, a_ring_of_a_later_coordinator_is_named_with_its_term)
{
    char name[PICTURE_NAME_MAX];
    picture_ring_name(&(struct picture_ring){.term = 1, .generation = 3}, name);
    cr_assert_str_eq(name, "3");
    picture_ring_name(&(struct picture_ring){.term = 2, .generation = 1}, name);
    cr_assert_str_eq(name, "2.1");
}
