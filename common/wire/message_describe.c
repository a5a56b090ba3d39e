/* One line about a message, for logs and the simulator's traces. */
#include <inttypes.h>
#include <stdio.h>

#include "common/wire/message.h"

/* "17:3fa2" (step and the lineage's first bytes) or "nothing". */
static const char *state_text(const struct msg_state *s, char out[40])
{
    if (!s->held)
        return "nothing";
    snprintf(out, 40, "%" PRId64 ":%02x%02x", s->step, s->lineage[0], s->lineage[1]);
    return out;
}

static void form_text(const struct msg_form *f, struct str *out)
{
    char state[40];
    str_addf(out, " resume=%s members=", state_text(&f->resume, state));
    for (int i = 0; i < f->count; i++)
        str_addf(out, "%s%d/%d:%s", i ? "," : "", f->member[i].worker, f->member[i].attempt,
                 msg_role_name(f->member[i].role));
    for (int i = 0; i < f->sources_count; i++)
        str_addf(out, "%s%d", i ? "," : " sources=", f->source[i].worker);
}

static void shares_text(int64_t step, struct worker_set shares, int parts, struct str *out)
{
    char text[SET_TEXT_MAX];
    set_describe(shares, text);
    str_addf(out, " step=%" PRId64 " shares=%s/%d", step, text, parts);
}

static void checkpoint_text(const struct message *m, struct str *out)
{
    switch (m->type) {
    case MSG_SAVE:
        str_addf(out, " step=%" PRId64 "%s parts=%d", m->save.step, m->save.final ? " final" : "",
                 m->save.count);
        break;
    case MSG_PUBLISH:
        str_addf(out, " step=%" PRId64 "%s pieces=%d%s", m->publish.step, m->publish.final ? " final" : "",
                 m->publish.count, m->publish.replaces ? " replaces" : "");
        break;
    case MSG_CHECKPOINTS:
        str_addf(out, " count=%d newest=%" PRId64, m->checkpoints.count,
                 m->checkpoints.count ? m->checkpoints.checkpoint[0].step : -1);
        break;
    case MSG_CHECKPOINTED:
        str_addf(out, " step=%" PRId64 " part=%d/%d", m->checkpointed.step, m->checkpointed.part,
                 m->checkpointed.parts);
        break;
    case MSG_PUBLISHED:
        str_addf(out, " step=%" PRId64 "%s", m->published.step, m->published.final ? " final" : "");
        break;
    case MSG_FROZEN:
        str_addf(out, " number=%" PRId64 " \"%s\"", m->frozen.number, m->frozen.why);
        break;
    case MSG_SAVE_WAITS:
        str_addf(out, " step=%" PRId64 " \"%s\"", m->save_waits.step, m->save_waits.why);
        break;
    case MSG_SNAPSHOT:
        str_addf(out, " step=%" PRId64 " part=%d/%d%s", m->snapshot.state.step, m->snapshot.part,
                 m->snapshot.parts, m->snapshot.final ? " final" : "");
        break;
    case MSG_SAVE_EVERY:
        str_addf(out, " every=%.1fs", (double)m->save_every.every / RM_S);
        break;
    case MSG_LOAD:
        shares_text(m->load.state.step, m->load.shares, m->load.parts, out);
        break;
    case MSG_LOADED:
        shares_text(m->loaded.state.step, m->loaded.shares, m->loaded.parts, out);
        break;
    default:
        break;
    }
}

static void stop_text(const struct msg_stop *stop, struct str *out)
{
    str_addf(out, " round=%" PRId64 " at=%s", stop->round, stop->at == STOP_NOW ? "now" : "boundary");
    if (stop->within)
        str_addf(out, " within=%.1fs", (double)stop->within / RM_S);
}

static void probe_text(const struct msg_probe *probe, struct str *out)
{
    str_addf(out, " id=%" PRId64 " members=[", probe->id);
    for (int i = 0; i < probe->count; i++)
        str_addf(out, "%s%d", i ? " " : "", probe->member[i].worker);
    str_adds(out, "]");
}

static void listen_text(const struct msg_listen *listen, struct str *out)
{
    str_adds(out, " sources=[");
    for (int i = 0; i < listen->sources_count; i++)
        str_addf(out, "%s%d", i ? " " : "", listen->source[i].worker);
    str_adds(out, "]");
}

static void noticed_text(const struct msg_noticed *said, struct str *out)
{
    str_addf(out, " source=%s cause=%s left=%.1fs", said->source, said->cause, (double)said->left / RM_S);
}

static void reported_text(const struct msg_reported *said, struct str *out)
{
    str_addf(out, " step=%" PRId64 "/%" PRId64 " still=%.1fs", said->step, said->steps,
             (double)said->still / RM_S);
}

static void stopped_text(const struct msg_stopped *said, struct str *out)
{
    char state[40];
    str_addf(out, " round=%" PRId64 " holds=%s update=%" PRId64, said->round, state_text(&said->state, state),
             said->update_step);
    if (!lane_set_is_empty(&said->lanes))
        str_addf(out, " lanes=%d", lane_set_count(&said->lanes));
}

static void other_text(const struct message *m, struct str *out)
{
    char state[40];
    if (m->type == MSG_LISTEN)
        listen_text(&m->listen, out);
    else if (m->type == MSG_HEARD)
        str_addf(out, " holds=%s why=\"%s\"", state_text(&m->heard.state, state), m->heard.why);
    else
        checkpoint_text(m, out);
}

static void body_text(const struct message *m, struct str *out)
{
    char state[40];
    switch (m->type) {
    case MSG_ACK:
        str_addf(out, " step=%" PRId64, m->ack.step);
        break;
    case MSG_STOP:
        stop_text(&m->stop, out);
        break;
    case MSG_FORM:
        form_text(&m->form, out);
        break;
    case MSG_ABANDON:
        str_addf(out, "%s why=\"%s\"", m->abandon.elsewhere ? " elsewhere" : "", m->abandon.why);
        break;
    case MSG_HELLO:
        str_addf(out, " worker=%d/%d phase=%s trainer=%" PRId64 " holds=%s", m->hello.worker,
                 m->hello.attempt, msg_phase_name(m->hello.phase), m->hello.trainer_pid,
                 state_text(&m->hello.state, state));
        break;
    case MSG_PROGRESS:
        str_addf(out, " step=%" PRId64 " loss=%.4f", m->progress.step, m->progress.loss);
        break;
    case MSG_EVALUATED:
        str_addf(out, " step=%" PRId64, m->evaluated.step);
        break;
    case MSG_FAULT:
        str_addf(out, " kind=%s class=%s peer=%d \"%s\"", msg_fault_name(m->fault.kind),
                 fault_class_names[m->fault.class], m->fault.peer, m->fault.detail);
        break;
    case MSG_STOPPED:
        stopped_text(&m->stopped, out);
        break;
    case MSG_READY:
        str_addf(out, " holds=%s", state_text(&m->ready.state, state));
        break;
    case MSG_FINISHED:
        str_addf(out, " step=%" PRId64, m->finished.step);
        break;
    case MSG_PROBE:
        probe_text(&m->probe, out);
        break;
    case MSG_PROBED:
        str_addf(out, " id=%" PRId64 " peer=%d", m->probed.id, m->probed.peer);
        break;
    case MSG_NOTICED:
        noticed_text(&m->noticed, out);
        break;
    case MSG_REPORTED:
        reported_text(&m->reported, out);
        break;
    case MSG_UP:
        str_addf(out, " holds=%s", state_text(&m->up.state, state));
        break;
    default:
        other_text(m, out);
    }
}

void message_describe(const struct message *message, char *out, size_t size)
{
    struct str s = str_init(2048);
    str_adds(&s, msg_type_name(message->type));
    if (message->generation.n)
        str_addf(&s, " g=%" PRId64 ".%" PRId64, message->generation.term, message->generation.n);
    body_text(message, &s);
    text_copy(out, size, str_text(&s));
    str_clear(&s);
}
