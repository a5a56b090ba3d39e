#include "operator/price_file.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/base/time.h"
#include "common/loop/loop.h"
#include "common/os/file.h"
#include "common/os/log.h"

static const rm_time look_every = 10 * RM_S;

struct price_file {
    struct loop *loop;
    struct loop_timer *timer;
    const char *path;
    void (*changed)(void *ctx);
    void *ctx;
    struct str text; /* as it was read last, good or not */
    struct prices prices;
    struct error why; /* said of that text; ERR_NONE: it counts */
};

/* What is wrong with it is said when that changes. */
static void refuse_prices(struct price_file *file, const struct error *why)
{
    bool said = file->why.code == why->code && !strcmp(file->why.text, why->text);
    file->why = *why;
    if (!said)
        log_warn("prices are refused", "path=%s why=\"%s\" meanwhile=\"%s\"", file->path, why->text,
                 file->prices.count ? "the prices before count" : "status.cost has hours alone");
}

/* true where other prices count now. */
static bool take_prices(struct price_file *file)
{
    struct prices prices;
    struct error err = {0};
    if (prices_parse(&prices, str_text(&file->text), file->text.length, &err) < 0) {
        refuse_prices(file, &err);
        return false;
    }
    prices_clear(&file->prices);
    file->prices = prices;
    file->why = (struct error){0};
    log_info("prices are read", "path=%s lines=%d currency=%s", file->path, prices.count, prices.currency);
    return true;
}

static bool look_at_file(struct price_file *file)
{
    struct error err = {0};
    struct str text = str_init(PRICES_BYTES_MAX);
    if (file_read(file->path, &text, &err) < 0) {
        refuse_prices(file, &err);
        str_clear(&text);
        return false;
    }
    bool same = file->text.length == text.length && file->text.data && !file->why.code &&
                !memcmp(str_text(&file->text), str_text(&text), text.length);
    str_clear(&file->text);
    file->text = text;
    return !same && take_prices(file);
}

static void look_again(void *ctx)
{
    struct price_file *file = ctx;
    if (look_at_file(file))
        file->changed(file->ctx);
    loop_timer_set(file->timer, loop_now(file->loop) + look_every);
}

int price_file_open(struct price_file **ret, struct loop *loop, const char *path, void (*changed)(void *ctx),
                    void *ctx, struct error *err)
{
    struct price_file *file = calloc(1, sizeof *file);
    if (!file)
        return err_set(err, ERR_MACHINE, "no memory for the prices");
    file->loop = loop;
    file->path = path;
    file->changed = changed;
    file->ctx = ctx;
    if (loop_timer_open(&file->timer, loop, look_again, file, err) < 0) {
        price_file_free(file);
        return -1;
    }
    look_at_file(file);
    loop_timer_set(file->timer, loop_now(loop) + look_every);
    *ret = file;
    return 0;
}

void price_file_free(struct price_file *file)
{
    if (!file)
        return;
    loop_timer_free(file->timer);
    prices_clear(&file->prices);
    str_clear(&file->text);
    free(file);
}

const struct prices *price_file_prices(const struct price_file *file)
{
    return file ? &file->prices : NULL;
}

bool price_file_refused(const struct price_file *file)
{
    return file && file->why.code;
}
