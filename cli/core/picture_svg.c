/* Draws the picture of a run as SVG: losses, the workers' bars, rings, checkpoints and recoveries, all in
 * one file that needs no other. Pure. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/picture_draw.h"

/* All lengths in SVG's units, which are pixels where nobody scales. */
enum {
    WIDTH = 960,
    LEFT = 100,
    RIGHT = 936,
    LOSS_TOP = 92,
    LOSS_BOTTOM = 312,
    BADGES = 328, /* middle of the recoveries' numbers */
    ROWS_TOP = 350,
    ROWS_HEIGHT = 320, /* of all workers at most */
    TICKS = 6,
    LISTED = 24, /* recoveries told below the chart */
    BADGE_APART = 19,
    LABEL_APART = 84,
};

static const char *const ink = "#1f2933", *const pale = "#6b7785", *const grid = "#e6eaef",
                         *const blue = "#2463c5", *const orange = "#d9730d", *const red = "#cf2e2e",
                         *const amber = "#b7791f", *const green = "#1f8a4c", *const bar = "#9db8d9",
                         *const paper = "#fff", *const violet = "#8a5cc9", *const teal = "#14867e";

/* Rules of a style sheet go before attributes: where pages are dark, each colour has another one. */
static const char *const dark[][2] = {{"#fff", "#0d1117"},    {"#1f2933", "#e3e8ee"}, {"#6b7785", "#98a4b3"},
                                      {"#e6eaef", "#27303b"}, {"#2463c5", "#6ea8fe"}, {"#d9730d", "#f0a35e"},
                                      {"#cf2e2e", "#ff7b72"}, {"#b7791f", "#e3b341"}, {"#1f8a4c", "#56d364"},
                                      {"#9db8d9", "#3f5f8a"}, {"#8a5cc9", "#bc9df0"}, {"#14867e", "#4fd1c5"}};

static const struct {
    const char *name, *colour;
} curves[PICTURE_CURVES] = {
    [PICTURE_NORM] = {"gradient norm", violet}, [PICTURE_RATE] = {"learning rate", teal}};

struct drawing {
    const struct report *report;
    const struct picture *picture;
    const struct picture_facts *facts;
    int64_t first, last;       /* steps */
    double low, high, tick;    /* of the loss axis */
    int row, rows_bottom;      /* row: height of a worker's */
    int place[RM_WORKERS_MAX]; /* row of each worker, -1: none */
    bool held_out;
    double curve_high[PICTURE_CURVES]; /* at the chart's top; 0: it is not drawn */
    struct str *out;
};

static double at_step(const struct drawing *d, double step)
{
    return LEFT + (RIGHT - LEFT) * (step - (double)d->first) / (double)(d->last - d->first);
}

static double at_loss(const struct drawing *d, double loss)
{
    return LOSS_BOTTOM - (LOSS_BOTTOM - LOSS_TOP) * (loss - d->low) / (d->high - d->low);
}

/* Bytes of the UTF-8 character there; 0: none, or one of the rare ranges whose checks aren't worth it here.
 */
static size_t utf8_length(const char *text)
{
    unsigned char c = (unsigned char)*text;
    size_t n = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c > 0xe0 && c < 0xef && c != 0xed ? 3 : 0;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)text[i] & 0xc0) != 0x80)
            return 0;
    return n;
}

/* Writes text as XML wants it; what is no character, or can't stand in XML, becomes a question mark. */
static void escaped(const char *text, struct str *out)
{
    size_t n;
    for (; *text; text += n ? n : 1) {
        n = utf8_length(text);
        if (*text == '&')
            str_adds(out, "&amp;");
        else if (*text == '<')
            str_adds(out, "&lt;");
        else if (*text == '>')
            str_adds(out, "&gt;");
        else if (*text == '"')
            str_adds(out, "&quot;");
        else if (!n || (unsigned char)*text < 0x20 || *text == 0x7f)
            str_adds(out, "?");
        else
            str_add(out, text, n);
    }
}

static void text_open(const struct drawing *d, double x, double y, const char *anchor, const char *colour)
{
    str_addf(d->out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">", x, y, anchor, colour);
}

static void text_close(const struct drawing *d)
{
    str_adds(d->out, "</text>\n");
}

static void line(const struct drawing *d, double x1, double y1, double x2, double y2, const char *style)
{
    str_addf(d->out, "<path d=\"M%.1f %.1fL%.1f %.1f\" %s/>\n", x1, y1, x2, y2, style);
}

/* 1, 2 or 5 times a power of ten, so that a range has about TICKS of it. */
static double round_tick(double range)
{
    double rough = range / TICKS, power = pow(10, floor(log10(rough)));
    double share = rough / power;
    return power * (share <= 1 ? 1 : share <= 2 ? 2 : share <= 5 ? 5 : 10);
}

static void measure_drawing(struct drawing *d)
{
    struct worker_set all = picture_everybody(d->picture);
    int rows = 0, count = set_count(all);
    double low, high;
    if (!picture_range(d->picture, &low, &high))
        low = high = 0;
    if (!(high - low > 1e-6 * fabs(high)))
        high = low + fmax(fabs(low), 1) / 10;
    d->tick = round_tick(high - low);
    d->low = floor(low / d->tick) * d->tick;
    d->high = ceil(high / d->tick) * d->tick;
    for (int i = 0; i < d->picture->bins; i++)
        d->held_out |= d->picture->bin[i].evaluated;
    for (int c = 0; c < PICTURE_CURVES; c++)
        d->curve_high[c] = picture_curve_high(d->picture, (enum picture_curve)c);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        d->place[w] = set_has(all, w) ? rows++ : -1;
    d->row = count && ROWS_HEIGHT / count < 22 ? ROWS_HEIGHT / count : 22;
    d->rows_bottom = ROWS_TOP + d->row * count;
}

/* --- the title --- */

/* "300 steps in ", "50 of 300 steps in ", "steps 201 to 250 of 300 in " */
static void span(const struct drawing *d)
{
    const struct report *r = d->report;
    bool whole = r->step == r->steps;
    if (r->first_step) {
        str_adds(d->out, "steps ");
        show_count(r->first_step + 1, d->out);
        str_adds(d->out, " to ");
    }
    show_count(r->step, d->out);
    if (!whole) {
        str_adds(d->out, " of ");
        show_count(r->steps, d->out);
    }
    str_adds(d->out, r->first_step ? " in " : r->steps == 1 ? " step in " : " steps in ");
}

/* Who computed what, when, and which bits came out. */
static void origin(const struct drawing *d)
{
    const struct report *r = d->report;
    text_open(d, RIGHT, 36, "end", pale);
    if (d->facts->parameters) {
        show_count(d->facts->parameters, d->out);
        str_adds(d->out, " parameters");
    }
    if (*d->facts->date)
        str_addf(d->out, "%s%s", d->facts->parameters ? " · " : "", d->facts->date);
    if (r->ended && *r->end.weights_sha256)
        str_addf(d->out, " · weights %.12s", r->end.weights_sha256);
    text_close(d);
}

static void title(const struct drawing *d)
{
    const struct report *r = d->report;
    struct str *out = d->out;
    str_addf(out, "<text x=\"24\" y=\"36\" font-size=\"20\" font-weight=\"600\" fill=\"%s\">", ink);
    escaped(d->facts->name, out);
    if (r->first_step)
        str_addf(out, ", from step %lld", (long long)r->first_step);
    text_close(d);
    text_open(d, 24, 58, "start", pale);
    span(d);
    show_time(picture_time(d->picture, r->step), out);
    if (isfinite(r->first_loss) && isfinite(r->loss))
        str_addf(out, " · loss %.4f to %.4f", r->first_loss, r->loss);
    if (!isnan(r->evaluated))
        str_addf(out, " · held-out %.4f", r->evaluated);
    if (r->ended && !isnan(r->end.goodput))
        str_addf(out, " · goodput %.1f %%", 100 * r->end.goodput);
    if (r->ended && r->end.kind == EVENT_INTERRUPTED)
        str_adds(out, " · interrupted");
    if (r->ended && r->end.kind == EVENT_FAILED)
        str_adds(out, " · ended early");
    text_close(d);
    origin(d);
}

/* --- the loss --- */

static void loss_axis(const struct drawing *d)
{
    int digits = d->tick < 1 ? (int)ceil(-log10(d->tick) - 1e-9) : 0;
    char style[64];
    snprintf(style, sizeof style, "stroke=\"%s\"", grid);
    for (double y = d->low; y < d->high + d->tick / 2; y += d->tick) {
        line(d, LEFT, at_loss(d, y), RIGHT, at_loss(d, y), style);
        text_open(d, LEFT - 8, at_loss(d, y) + 4, "end", pale);
        str_addf(d->out, "%.*f", digits, fabs(y) < d->tick / 2 ? 0 : y);
        text_close(d);
    }
    text_open(d, LEFT, LOSS_TOP - 12, "start", blue);
    str_adds(d->out, "training loss");
    if (d->held_out)
        str_addf(d->out, "<tspan dx=\"16\" fill=\"%s\">● held-out loss</tspan>", orange);
    for (int c = 0; c < PICTURE_CURVES; c++)
        if (d->curve_high[c] > 0)
            str_addf(d->out, "<tspan dx=\"16\" fill=\"%s\">%s, 0 to %.3g</tspan>", curves[c].colour,
                     curves[c].name, d->curve_high[c]);
    text_close(d);
}

/* Over the chart of the loss, from 0 at its bottom to the highest value at its top: what counts is the shape.
 */
static void thin_curve(const struct drawing *d, enum picture_curve curve)
{
    bool pen = false; /* the point just before is known */
    if (!(d->curve_high[curve] > 0))
        return;
    str_addf(d->out,
             "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1\" stroke-opacity=\"0.75\" "
             "stroke-linecap=\"round\" d=\"M0 0",
             curves[curve].colour);
    for (int i = 0; i < picture_curve_points(d->picture); i++) {
        int64_t step;
        double value = picture_curve(d->picture, curve, i, &step), share = value / d->curve_high[curve];
        if (!isnan(value))
            str_addf(d->out, "%s%.1f %.1f%s", pen ? "L" : "M", at_step(d, (double)step),
                     LOSS_BOTTOM - (LOSS_BOTTOM - LOSS_TOP) * share, pen ? "" : "h0");
        pen = !isnan(value);
    }
    str_addf(d->out, "\"><title>%s</title></path>\n", curves[curve].name);
}

/* Where bins hold more than one step: from their lowest to their highest loss. */
static void loss_band(const struct drawing *d)
{
    const struct picture *p = d->picture;
    bool begun = false;
    if (p->stride == 1)
        return;
    str_addf(d->out, "<path fill=\"%s\" fill-opacity=\"0.16\" d=\"", blue);
    for (int i = 0; i < 2 * p->bins; i++) {
        bool back = i >= p->bins;
        const struct picture_bin *b = &p->bin[back ? 2 * p->bins - 1 - i : i];
        if (!b->count)
            continue;
        str_addf(d->out, "%s%.1f %.1f", begun ? "L" : "M", at_step(d, (double)b->step),
                 at_loss(d, back ? b->low : b->high));
        begun = true;
    }
    str_adds(d->out, begun ? "Z\"/>\n" : "M0 0\"/>\n");
}

static void loss_line(const struct drawing *d)
{
    const struct picture *p = d->picture;
    bool pen = false; /* the bin just before has a loss */
    str_addf(d->out,
             "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.8\" stroke-linecap=\"round\" "
             "stroke-linejoin=\"round\" d=\"M0 0",
             blue);
    for (int i = 0; i < p->bins; i++) {
        const struct picture_bin *b = &p->bin[i];
        if (b->count)
            str_addf(d->out, "%s%.1f %.1f%s", pen ? "L" : "M", at_step(d, (double)b->step),
                     at_loss(d, b->sum / b->count), pen ? "" : "h0"); /* h0: one alone is a dot */
        pen = b->count > 0;
    }
    str_adds(d->out, "\"/>\n");
}

static void held_out(const struct drawing *d)
{
    const struct picture *p = d->picture;
    int count = 0;
    if (!d->held_out)
        return;
    str_addf(d->out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.4\" d=\"", orange);
    for (int i = 0; i < p->bins; i++)
        if (p->bin[i].evaluated)
            str_addf(d->out, "%s%.1f %.1f", count++ ? "L" : "M", at_step(d, (double)p->bin[i].step),
                     at_loss(d, p->bin[i].held_out));
    str_adds(d->out, "\"/>\n");
    /* Dots are lines of no length with round ends: a few bytes each. */
    str_addf(d->out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"%d\" stroke-linecap=\"round\" d=\"",
             orange, count > 100 ? 3 : 6);
    for (int i = 0; i < p->bins; i++)
        if (p->bin[i].evaluated)
            str_addf(d->out, "M%.1f %.1fh0", at_step(d, (double)p->bin[i].step),
                     at_loss(d, p->bin[i].held_out));
    str_adds(d->out, "\"/>\n");
}

/* --- the workers --- */

static double row_middle(const struct drawing *d, int worker)
{
    return ROWS_TOP + d->row * (d->place[worker] + 0.5);
}

static void worker_bar(const struct drawing *d, int worker)
{
    const struct picture *p = d->picture;
    double y = row_middle(d, worker);
    if (d->row >= 10) {
        text_open(d, LEFT - 8, y + 4, "end", ink);
        str_addf(d->out, "worker %d", worker);
        text_close(d);
    }
    str_addf(d->out, "<path stroke=\"%s\" stroke-width=\"%.1f\" d=\"M0 0", bar, d->row * 0.62);
    for (int i = 0; i < p->rings; i++) {
        int end = i;
        while (end < p->rings && set_has(p->ring[end].members, worker))
            end++;
        if (end == i)
            continue;
        int64_t to = end < p->rings ? p->ring[end].step : d->last;
        str_addf(d->out, "M%.1f %.1fH%.1f", at_step(d, (double)p->ring[i].step), y, at_step(d, (double)to));
        i = end;
    }
    str_adds(d->out, "\"/>\n");
}

static void mark(const struct drawing *d, const struct picture_mark *m)
{
    double r = fmin(5, d->row * 0.3), y = row_middle(d, m->worker);
    double x = fmin(fmax(at_step(d, (double)m->step), LEFT + r), RIGHT - r);
    switch (m->kind) {
    case PICTURE_LOST:
        str_addf(d->out,
                 "<path d=\"M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f\" stroke=\"%s\" stroke-width=\"2.4\"/>\n",
                 x - r, y - r, 2 * r, 2 * r, -2 * r, -2 * r, 2 * r, red);
        break;
    case PICTURE_LEFT:
        str_addf(d->out, "<path d=\"M%.1f %.1fl%.1f %.1fv%.1fz\" fill=\"%s\"/>\n", x - r, y, 2 * r, -r, 2 * r,
                 amber);
        break;
    case PICTURE_JOINED:
        str_addf(d->out,
                 "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\" fill=\"#fff\" stroke=\"%s\" "
                 "stroke-width=\"2.2\"/>\n",
                 x, y, r * 0.9, green);
        break;
    }
}

static void workers(const struct drawing *d)
{
    if (d->row < 10) {
        text_open(d, LEFT - 8, ROWS_TOP + 12, "end", ink);
        str_addf(d->out, "%d workers", set_count(picture_everybody(d->picture)));
        text_close(d);
    }
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        if (d->place[w] >= 0)
            worker_bar(d, w);
    for (int i = 0; i < d->picture->marks; i++)
        mark(d, &d->picture->mark[i]);
}

/* Their numbers, where there is room, under the workers. */
static void generations(const struct drawing *d)
{
    double free_from = 0;
    text_open(d, LEFT - 8, d->rows_bottom + 16, "end", pale);
    str_adds(d->out, "generation");
    text_close(d);
    for (int i = 0; i < d->picture->rings; i++) {
        double x = at_step(d, (double)d->picture->ring[i].step);
        if (x < free_from || x > RIGHT - 16)
            continue;
        text_open(d, x + 2, d->rows_bottom + 16, "start", pale);
        char name[PICTURE_NAME_MAX];
        picture_ring_name(&d->picture->ring[i], name);
        str_adds(d->out, name);
        text_close(d);
        free_from = x + 10 + 7 * (double)strlen(name);
    }
}

/* In tenths of a second where whole ones would say the same again and again. */
static void clock_label(const struct drawing *d, int64_t step)
{
    rm_time at = picture_time(d->picture, step);
    if (picture_time(d->picture, d->last) < 20 * RM_S)
        str_addf(d->out, "%.1f s", (double)at / (double)RM_S);
    else
        show_time(at, d->out);
}

static void step_label(const struct drawing *d, int64_t step)
{
    double x = at_step(d, (double)step), y = d->rows_bottom + 28;
    const char *anchor = x > RIGHT - 24 ? "end" : x < LEFT + 24 ? "start" : "middle";
    text_open(d, x, y + 18, anchor, ink);
    show_count(step, d->out);
    text_close(d);
    text_open(d, x, y + 35, anchor, pale);
    clock_label(d, step);
    text_close(d);
}

/* A square on the axis each. */
static void checkpoints(const struct drawing *d)
{
    bool any = false;
    for (int i = 0; i < d->picture->bins; i++)
        any |= d->picture->bin[i].saved > 0;
    if (!any)
        return;
    str_addf(d->out, "<path fill=\"%s\" d=\"", ink);
    for (int i = 0; i < d->picture->bins; i++)
        if (d->picture->bin[i].saved)
            str_addf(d->out, "M%.1f %dh6v6h-6z", at_step(d, (double)d->picture->bin[i].saved) - 3,
                     d->rows_bottom + 25);
    str_adds(d->out, "\"><title>checkpoint saved</title></path>\n");
    text_open(d, RIGHT, LOSS_TOP - 12, "end", ink);
    str_adds(d->out, "■ checkpoint saved");
    text_close(d);
}

/* The last step always has its label; those that would touch it have none. */
static void step_axis(const struct drawing *d)
{
    double tick = fmax(1, round_tick((double)(d->last - d->first)));
    double y = d->rows_bottom + 28, free_from = 0;
    char style[64];
    snprintf(style, sizeof style, "stroke=\"%s\"", pale);
    line(d, LEFT, y, RIGHT, y, style);
    text_open(d, LEFT - 8, y + 18, "end", ink);
    str_adds(d->out, "step</text>\n");
    text_open(d, LEFT - 8, y + 35, "end", pale);
    str_adds(d->out, "time</text>\n");
    for (double s = ceil((double)d->first / tick) * tick; s <= (double)d->last; s += tick) {
        double x = at_step(d, s);
        line(d, x, y, x, y + 4, style);
        if (x < free_from || x > RIGHT - LABEL_APART)
            continue;
        step_label(d, (int64_t)s);
        free_from = x + LABEL_APART;
    }
    step_label(d, d->last);
}

/* --- recoveries --- */

static int kept_recoveries(const struct report *r)
{
    return r->recoveries < REPORT_RECOVERIES_MAX ? r->recoveries : REPORT_RECOVERIES_MAX;
}

/* A line through both charts each, with its number between them where there is room. */
static void recovery_lines(const struct drawing *d)
{
    double free_from = 0;
    char style[96];
    snprintf(style, sizeof style, "stroke=\"%s\" stroke-opacity=\"0.55\" stroke-dasharray=\"2 3\"", pale);
    for (int i = 0; i < kept_recoveries(d->report); i++) {
        double x = at_step(d, (double)d->report->recovery[i].step);
        line(d, x, LOSS_TOP, x, d->rows_bottom + 28, style);
        double middle = fmax(x, free_from); /* beside the one before, but not far from its line */
        if (middle > x + BADGE_APART || i >= LISTED)
            continue;
        str_addf(d->out, "<circle cx=\"%.1f\" cy=\"%d\" r=\"8.5\" fill=\"#fff\" stroke=\"%s\"/>\n", middle,
                 BADGES, pale);
        text_open(d, middle, BADGES + 3.8, "middle", ink);
        str_addf(d->out, "%d", i + 1);
        text_close(d);
        free_from = middle + BADGE_APART;
    }
}

static void recovery_text(const struct drawing *d, int i, double x, double y)
{
    const struct report_recovery *v = &d->report->recovery[i];
    text_open(d, x, y, "start", ink);
    str_addf(d->out, "<tspan fill=\"%s\">%d</tspan>  step ", pale, i + 1);
    show_count(v->step, d->out);
    str_adds(d->out, ": ");
    escaped(v->label, d->out);
    str_addf(d->out, ", <tspan font-weight=\"600\">");
    show_ms(v->total, d->out);
    str_adds(d->out, "</tspan>");
    if (v->steps_redone)
        str_addf(d->out, ", %lld step%s redone", (long long)v->steps_redone, v->steps_redone == 1 ? "" : "s");
    text_close(d);
}

static int listed(const struct report *r)
{
    return r->recoveries < LISTED ? r->recoveries : LISTED;
}

static int list_top(const struct drawing *d)
{
    return d->rows_bottom + 96;
}

static int list_rows(const struct drawing *d)
{
    return (listed(d->report) + 1) / 2;
}

/* In two columns, read downwards; a legend of the marks above. */
static void recovery_list(const struct drawing *d)
{
    int count = listed(d->report), rows = list_rows(d);
    if (!count)
        return;
    text_open(d, 24, list_top(d), "start", ink);
    str_adds(d->out, "<tspan font-weight=\"600\">What happened, and how long until training went on</tspan>");
    str_addf(d->out,
             "<tspan dx=\"14\" fill=\"%s\">✕ lost</tspan><tspan dx=\"10\" fill=\"%s\">◂ left</tspan>"
             "<tspan dx=\"10\" fill=\"%s\">○ joined</tspan>",
             red, amber, green);
    text_close(d);
    for (int i = 0; i < count; i++)
        recovery_text(d, i, i < rows ? 24 : WIDTH / 2.0 + 8, list_top(d) + 22 + 18 * (i % rows));
    if (d->report->recoveries <= count)
        return;
    text_open(d, 24, list_top(d) + 22 + 18 * rows, "start", pale);
    str_addf(d->out, "and %d more", d->report->recoveries - count);
    text_close(d);
}

static int height(const struct drawing *d)
{
    if (!d->report->recoveries)
        return d->rows_bottom + 84;
    return list_top(d) + 22 + 18 * list_rows(d) + (d->report->recoveries > LISTED ? 24 : 6);
}

/* What a reader that sees no picture is told, and the colours. */
static void head(const struct drawing *d)
{
    str_addf(d->out,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
             "width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" role=\"img\" font-family=\"Inter, 'Segoe UI', "
             "'Helvetica Neue', 'DejaVu Sans', sans-serif\" font-size=\"12\">\n<title>",
             WIDTH, height(d), WIDTH, height(d));
    escaped(d->facts->name, d->out);
    str_addf(d->out, ": loss and workers of a training run, %d recover%s</title>\n", d->report->recoveries,
             d->report->recoveries == 1 ? "y" : "ies");
    str_adds(d->out, "<style>@media (prefers-color-scheme:dark){");
    for (size_t i = 0; i < sizeof dark / sizeof *dark; i++)
        str_addf(d->out, "[fill=\"%s\"]{fill:%s}[stroke=\"%s\"]{stroke:%s}", dark[i][0], dark[i][1],
                 dark[i][0], dark[i][1]);
    str_addf(d->out, "}</style>\n<rect width=\"%d\" height=\"%d\" fill=\"%s\"/>\n", WIDTH, height(d), paper);
}

void picture_svg(const struct report *r, const struct picture_facts *facts, struct str *out)
{
    struct drawing d = {.report = r,
                        .picture = &r->picture,
                        .facts = facts,
                        .first = r->first_step,
                        .last = r->step,
                        .out = out};
    if (r->step <= r->first_step)
        return;
    measure_drawing(&d);
    head(&d);
    title(&d);
    loss_axis(&d);
    recovery_lines(&d);
    for (int c = 0; c < PICTURE_CURVES; c++)
        thin_curve(&d, (enum picture_curve)c);
    loss_band(&d);
    loss_line(&d);
    held_out(&d);
    workers(&d);
    generations(&d);
    step_axis(&d);
    checkpoints(&d);
    recovery_list(&d);
    str_adds(out, "</svg>\n");
}
