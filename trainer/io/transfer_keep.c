/* Keeps an update for those who listen for as long as the next step takes: a thread of its own copies its
 * words aside before the sum of the next ones is written over them. Only this machine's memory is waited for.
 */
#include <stdlib.h>
#include <string.h>

#include "trainer/io/transfer_parts.h"

enum { PORTION = 1 << 20 }; /* bytes, copied under the gate at once */

static bool has_room(struct transfer_keep *keep, int64_t words, int64_t header)
{
    if (keep->words && keep->words_count == words && keep->header_count == header)
        return true;
    free(keep->words);
    keep->words = malloc((size_t)(words + header) * 4);
    keep->words_count = words;
    keep->header_count = header;
    return keep->words != NULL;
}

/* Head and place of the words; false where they are kept no more. */
static bool look_at_update(struct transfer_source *source, int64_t step, struct state_update *ret)
{
    struct transfer_keep *keep = &source->keep;
    pthread_rwlock_rdlock(&source->gate);
    const struct state_update *u = &source->live.update;
    bool there = source->live.kept && source->live.point.step == step &&
                 has_room(keep, u->words_count, u->header_count);
    if (there) {
        memcpy(keep->k, u->k, (size_t)source->tensors * 4);
        memcpy(keep->words + u->words_count, u->header, (size_t)u->header_count * 4);
    }
    *ret = *u;
    pthread_rwlock_unlock(&source->gate);
    return there;
}

static bool copy_portion(struct transfer_source *source, int64_t step, const struct state_update *u,
                         int64_t at)
{
    int64_t bytes = u->words_count * 4 - at;
    pthread_rwlock_rdlock(&source->gate);
    bool there = source->live.kept && source->live.point.step == step &&
                 memory_read(u->in, (char *)source->keep.words + at, far_add(u->words, at),
                             (size_t)(bytes < PORTION ? bytes : PORTION), NULL) == 0;
    pthread_rwlock_unlock(&source->gate);
    return there;
}

static bool copy_update(struct transfer_source *source, int64_t step)
{
    struct state_update u;
    bool there = look_at_update(source, step, &u);
    for (int64_t at = 0; there && at < u.words_count * 4; at += PORTION)
        there = copy_portion(source, step, &u, at);
    return there;
}

static void *keep_main(void *arg)
{
    struct transfer_source *source = arg;
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_lock(&keep->lock);
    while (!keep->quit) {
        if (keep->wanted == keep->tried) {
            pthread_cond_wait(&keep->moved, &keep->lock);
            continue;
        }
        int64_t step = keep->wanted;
        keep->step = -1;
        pthread_mutex_unlock(&keep->lock);
        bool there = copy_update(source, step);
        pthread_mutex_lock(&keep->lock);
        keep->step = there ? step : -1;
        keep->tried = step;
        pthread_cond_broadcast(&keep->moved);
        pthread_mutex_unlock(&keep->lock);
        pthread_rwlock_rdlock(&source->gate);
        transfer_ring_ears(source);
        pthread_rwlock_unlock(&source->gate);
        pthread_mutex_lock(&keep->lock);
    }
    pthread_mutex_unlock(&keep->lock);
    return NULL;
}

void transfer_keep_init(struct transfer_source *source)
{
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_init(&keep->lock, NULL);
    pthread_cond_init(&keep->moved, NULL);
    keep->step = keep->wanted = keep->tried = -1;
}

void transfer_keep_clear(struct transfer_source *source)
{
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_lock(&keep->lock);
    keep->quit = true;
    pthread_cond_broadcast(&keep->moved);
    pthread_mutex_unlock(&keep->lock);
    if (keep->on)
        pthread_join(keep->thread, NULL);
    free(keep->words);
    pthread_cond_destroy(&keep->moved);
    pthread_mutex_destroy(&keep->lock);
}

void transfer_keep_want(struct transfer_source *source)
{
    struct transfer_keep *keep = &source->keep;
    if (!source->live.ears || !source->live.kept)
        return;
    pthread_mutex_lock(&keep->lock);
    if (!keep->on)
        keep->on = !pthread_create(&keep->thread, NULL, keep_main, source);
    if (keep->on)
        keep->wanted = source->live.point.step;
    pthread_cond_broadcast(&keep->moved);
    pthread_mutex_unlock(&keep->lock);
}

void transfer_keep_wait(struct transfer_source *source)
{
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_lock(&keep->lock);
    while (keep->on && !keep->quit && keep->wanted != keep->tried)
        pthread_cond_wait(&keep->moved, &keep->lock);
    pthread_mutex_unlock(&keep->lock);
}

bool transfer_keep_comes(struct transfer_source *source, int64_t step)
{
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_lock(&keep->lock);
    bool comes = keep->on && keep->wanted == step && keep->tried != step;
    pthread_mutex_unlock(&keep->lock);
    return comes;
}

bool transfer_keep_head(struct transfer_source *source, int64_t step, int64_t count, int32_t *k,
                        uint32_t *header)
{
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_lock(&keep->lock);
    bool there = keep->step == step && keep->header_count == count;
    if (there) {
        memcpy(k, keep->k, (size_t)source->tensors * 4);
        memcpy(header, keep->words + keep->words_count, (size_t)keep->header_count * 4);
    }
    pthread_mutex_unlock(&keep->lock);
    return there;
}

bool transfer_keep_words(struct transfer_source *source, int64_t step, int64_t first, int64_t count, void *to)
{
    struct transfer_keep *keep = &source->keep;
    pthread_mutex_lock(&keep->lock);
    bool there = keep->step == step && first <= keep->words_count && count <= keep->words_count - first;
    if (there)
        memcpy(to, keep->words + first, (size_t)count * 4);
    pthread_mutex_unlock(&keep->lock);
    return there;
}

void transfer_keep_drop(struct transfer_source *source)
{
    struct transfer_keep *keep = &source->keep;
    transfer_keep_wait(source);
    pthread_mutex_lock(&keep->lock);
    if (keep->wanted == keep->tried) {
        free(keep->words);
        keep->words = NULL;
        keep->step = keep->wanted = keep->tried = -1;
    }
    pthread_mutex_unlock(&keep->lock);
}
