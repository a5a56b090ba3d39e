/* Draws the picture of a run as text for a terminal. Pure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/picture_draw.h"

enum {
    LABEL = 13,    /* columns left of the chart */
    NOTE = 19,     /* right of it */
    CELLS = 96,    /* columns of the chart at most */
    ROWS_MAX = 12, /* workers that get a line each; with more there is one line with their number */
    LEVELS = 8,
};

struct cell {
    const char *glyph; /* one column wide */
    const char *colour;
};

struct chart {
    const struct report *report;
    struct screen_style style;
    int64_t first, steps; /* steps first + 1 ... first + steps */
    int width;
    struct cell cell[CELLS];
};

static const char *const red = "\033[31m", *const green = "\033[32m", *const yellow = "\033[33m",
                         *const cyan = "\033[36m", *const dim = "\033[2m";

static const char *level(const struct chart *c, double value, double low, double high)
{
    static const char *const blocks[LEVELS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char *const ascii[LEVELS] = {".", ":", "-", "=", "+", "*", "#", "@"};
    double share = high > low ? (value - low) / (high - low) : 0;
    int i = (int)(share * LEVELS);
    i = i < 0 ? 0 : i < LEVELS ? i : LEVELS - 1;
    return c->style.unicode ? blocks[i] : ascii[i];
}

/* The steps of a cell are *ret_from + 1 ... *ret_to, one at least. */
static void cell_steps(const struct chart *c, int i, int64_t *ret_from, int64_t *ret_to)
{
    *ret_from = c->first + i * c->steps / c->width;
    *ret_to = c->first + (i + 1) * c->steps / c->width;
    if (*ret_to == *ret_from)
        ++*ret_to;
}

/* The cell that is the first to show what followed a step. */
static int cell_of(const struct chart *c, int64_t step)
{
    int64_t from, to = c->first;
    for (int i = 0; i < c->width; i++) {
        cell_steps(c, i, &from, &to);
        if (to > step)
            return i;
    }
    return c->width - 1;
}

static void blank(struct chart *c)
{
    for (int i = 0; i < c->width; i++)
        c->cell[i] = (struct cell){.glyph = " "};
}

static void print_row(const struct chart *c, const char *label, const char *note, struct str *out)
{
    const char *now = NULL;
    int end = c->width;
    while (end > 0 && !*note && !strcmp(c->cell[end - 1].glyph, " "))
        end--;
    str_addf(out, "  %-*s", LABEL - 2, label);
    for (int i = 0; i < end; i++) {
        if (c->style.colour && c->cell[i].colour != now) {
            str_adds(out, now ? "\033[0m" : "");
            str_adds(out, c->cell[i].colour ? c->cell[i].colour : "");
            now = c->cell[i].colour;
        }
        str_adds(out, c->cell[i].glyph);
    }
    str_addf(out, "%s%s%s\n", now ? "\033[0m" : "", *note ? "  " : "", note);
}

static void losses(struct chart *c, struct str *out)
{
    const struct report *r = c->report;
    double low, high;
    char note[NOTE];
    int64_t from, to;
    if (!picture_range(&r->picture, &low, &high))
        return;
    blank(c);
    for (int i = 0; i < c->width; i++) {
        cell_steps(c, i, &from, &to);
        double loss = picture_loss(&r->picture, from, to);
        if (!isnan(loss))
            c->cell[i] = (struct cell){.glyph = level(c, loss, low, high), .colour = cyan};
    }
    snprintf(note, sizeof note, "%.4g to %.4g", r->first_loss, r->loss);
    print_row(c, "loss", note, out);
    if (isnan(r->evaluated))
        return;
    blank(c);
    for (int i = 0; i < c->width; i++) {
        cell_steps(c, i, &from, &to);
        double loss = picture_held_out(&r->picture, from, to);
        if (!isnan(loss))
            c->cell[i] = (struct cell){.glyph = level(c, loss, low, high), .colour = yellow};
    }
    snprintf(note, sizeof note, "%.4g", r->evaluated);
    print_row(c, "held-out", note, out);
}

static struct cell mark_cell(const struct chart *c, enum picture_mark_kind kind)
{
    bool unicode = c->style.unicode;
    switch (kind) {
    case PICTURE_LOST:
        return (struct cell){.glyph = unicode ? "×" : "x", .colour = red};
    case PICTURE_LEFT:
        return (struct cell){.glyph = "<", .colour = yellow};
    case PICTURE_JOINED:
        break;
    }
    return (struct cell){.glyph = "+", .colour = green};
}

static void worker_row(struct chart *c, int worker, struct str *out)
{
    const struct picture *p = &c->report->picture;
    char label[24];
    int64_t from, to;
    blank(c);
    for (int i = 0; i < c->width; i++) {
        cell_steps(c, i, &from, &to);
        if (set_has(picture_members(p, to), worker))
            c->cell[i] = (struct cell){.glyph = c->style.unicode ? "━" : "=", .colour = NULL};
    }
    for (int i = 0; i < p->marks; i++)
        if (p->mark[i].worker == worker)
            c->cell[cell_of(c, p->mark[i].step)] = mark_cell(c, p->mark[i].kind);
    snprintf(label, sizeof label, "worker %d", worker);
    print_row(c, label, "", out);
}

static void crowd_row(struct chart *c, struct str *out)
{
    const struct picture *p = &c->report->picture;
    int64_t from, to;
    int most = 1;
    char note[NOTE];
    for (int i = 0; i < p->rings; i++)
        most = set_count(p->ring[i].members) > most ? set_count(p->ring[i].members) : most;
    blank(c);
    for (int i = 0; i < c->width; i++) {
        cell_steps(c, i, &from, &to);
        c->cell[i].glyph = level(c, set_count(picture_members(p, to)), 0, most);
    }
    snprintf(note, sizeof note, "%d at most", most);
    print_row(c, "workers", note, out);
}

static void workers(struct chart *c, struct str *out)
{
    struct worker_set all = picture_everybody(&c->report->picture);
    if (set_count(all) > ROWS_MAX) {
        crowd_row(c, out);
        return;
    }
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (set_has(all, w))
            worker_row(c, w, out);
}

/* Puts digits and points into cells, where they and the space around them are free. */
static bool digits(struct chart *c, int at, const char *text)
{
    static const char *const glyphs[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    int length = (int)strlen(text);
    if (at + length > c->width)
        at = c->width - length;
    for (int i = at - 1; i <= at + length; i++)
        if (at < 0 || (i >= 0 && i < c->width && *c->cell[i].glyph != ' '))
            return false;
    for (int i = 0; i < length; i++)
        c->cell[at + i] = (struct cell){.glyph = text[i] == '.' ? "." : glyphs[text[i] - '0'], .colour = dim};
    return true;
}

static void number(struct chart *c, int at, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)value);
    digits(c, at, text);
}

static void axes(struct chart *c, struct str *out)
{
    const struct picture *p = &c->report->picture;
    blank(c);
    bool all = p->rings_formed == p->rings;
    for (int i = 0; i < p->rings; i++) {
        char name[PICTURE_NAME_MAX];
        picture_ring_name(&p->ring[i], name);
        all &= digits(c, cell_of(c, p->ring[i].step), name);
    }
    print_row(c, "generation", all ? "" : "(not all shown)", out);
    blank(c);
    number(c, 0, c->first);
    number(c, c->width, c->first + c->steps);
    number(c, cell_of(c, c->first + c->steps / 2), c->first + c->steps / 2);
    print_row(c, "step", "", out);
}

static void legend(const struct chart *c, struct str *out)
{
    bool seen[3] = {false};
    for (int i = 0; i < c->report->picture.marks; i++)
        seen[c->report->picture.mark[i].kind] = true;
    if (!seen[PICTURE_LOST] && !seen[PICTURE_LEFT] && !seen[PICTURE_JOINED])
        return;
    str_addf(out, "  %-*s", LABEL - 2, "");
    if (seen[PICTURE_LOST])
        str_addf(out, "%s lost   ", c->style.unicode ? "×" : "x");
    if (seen[PICTURE_LEFT])
        str_adds(out, "< left   ");
    if (seen[PICTURE_JOINED])
        str_adds(out, "+ joined");
    while (out->data[out->length - 1] == ' ')
        out->data[--out->length] = 0;
    str_adds(out, "\n");
}

void picture_text(const struct report *r, struct screen_style style, struct str *out)
{
    struct chart c = {.report = r, .style = style, .first = r->first_step, .steps = r->step - r->first_step};
    if (c.steps <= 0 || !r->picture.rings)
        return;
    int room = style.columns - LABEL - NOTE;
    c.width = room < 16 ? 16 : room < CELLS ? room : CELLS;
    if (c.steps < c.width) /* every step gets as many cells as every other */
        c.width = (int)(c.width / c.steps * c.steps);
    losses(&c, out);
    workers(&c, out);
    axes(&c, out);
    if (set_count(picture_everybody(&r->picture)) <= ROWS_MAX)
        legend(&c, out);
}
