/*
 * Mail from the loop: new requests, cancellations, readers that have read on, and closed channels.
 */
#include "daemon/engine/engine-state.h"

#include <assert.h>
#include <string.h>

#include "daemon/draw/reasoning-limit.h"
#include "daemon/engine/model.h"

#define MAILS_AT_ONCE 64

void engine_post_retired(struct engine *engine, struct request *request)
{
        publish_call_loop(engine->publish, request->channel);
        mailbox_post(engine->conf.loop, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
}

void engine_cancel(struct engine *engine, struct request *request, enum smv_reason reason,
                   enum smv_code code)
{
        engine_note(engine, &(struct sched_event){ .kind = SCHED_CANCEL,
                                                   .request = request,
                                                   .reason = reason,
                                                   .code = code });
}

void engine_cancel_all(struct engine *engine, const struct channel *channel, enum smv_reason reason,
                       enum smv_code code)
{
        for (uint32_t i = 0; i < engine->conf.sched.requests_max; i++) {
                struct request *request = engine->requests[i];

                if (request && (!channel || request->channel == channel))
                        engine_cancel(engine, request, reason, code);
        }
}

void engine_fail(struct engine *engine, int r)
{
        const char *lost = model_lost(engine->conf.served->model), *why = lost;

        if (engine->failed)
                return;
        if (!why && engine->conf.loading.why && *engine->conf.loading.why)
                why = engine->conf.loading.why;
        engine->failed = r;
        engine->failed_code = lost ? SMV_BACKEND : SMV_INTERNAL;
        engine_cancel_all(engine, NULL, SMV_END_ERROR, engine->failed_code);
        mailbox_post(engine->conf.waker,
                     &(struct mail){ .kind = MAIL_FAILED, .result = r, .why = why });
}

/*
 * The parent of forks that were just taken; NULL: it has ended.  The loop kept the parent until
 * now.  If it had already retired, the loop gets RETIRED once more.
 */
static struct request *take_parent(struct engine *engine, struct request *parent)
{
        if (engine->requests[parent->number] != parent) {
                engine_post_retired(engine, parent);
                return NULL;
        }
        parent->mails_taken++;
        return parent->state == REQUEST_ENDING || parent->state == REQUEST_RETIRED ? NULL : parent;
}

/* Copies all tokens that the parent has by now, and the part of its text that is not shown. */
static void start_fork(struct engine *engine, struct request *request, const struct request *parent)
{
        const struct sequence *from = &parent->sequence;
        struct sequence *to = &request->sequence;

        to->token_count = request->prompt_count = from->token_count;
        if (!request->max_tokens)
                request->max_tokens = parent->prompt_count + parent->max_tokens - from->token_count;
        assert((uint64_t)request->prompt_count + request->max_tokens <= request->tokens_max);
        memcpy(to->tokens + request->submitted_count, from->tokens + request->submitted_count,
               (from->token_count - request->submitted_count) * sizeof(*to->tokens));
        request->mu = parent->mu;
        if (request->reasoning_limit)
                reasoning_limit_follow(request->reasoning_limit, parent->reasoning_limit);
        publish_fork(engine->publish, request, parent);
        counter_add(&engine->conf.stats->forks, 1);
}

/* Ends a fork without a parent: there is nothing to start from.  The core never sees it. */
static void end_orphan(struct engine *engine, struct request *request)
{
        publish_begin(engine->publish, request, false);
        request_move(request, REQUEST_ENDING);
        request_move(request, REQUEST_RETIRED);
        assert(engine->end_count < engine->conf.sched.requests_max);
        engine->ends[engine->end_count++] = (struct plan_end){ .request = request,
                                                               .reason = SMV_END_ERROR,
                                                               .code = SMV_NO_STREAM };
        counter_add(&engine->conf.stats->streams_ended, 1);
}

/* Adds the request to the live ones; its channel has one more stream. */
static void add_live(struct engine *engine, struct request *request)
{
        struct channel *channel = request->channel;

        assert(!engine->requests[request->number]);
        engine->requests[request->number] = request;
        if (channel->live_count++ == 0)
                engine->active[engine->active_count++] = channel;

        request->accepted_ns = engine_now(engine);
}

static void submit(struct engine *engine, struct request *request, struct request *parent)
{
        struct channel *channel = request->channel;

        engine_note(engine, &(struct sched_event){ .kind = SCHED_SUBMIT,
                                                   .request = request,
                                                   .channel = channel->number });
        if (request->guide && parent)
                masks_fork(engine->masks, request, parent);
        else if (request->guide)
                masks_begin(engine->masks, request);
        engine_await_masks(engine, request, request->prompt_count);
        if (engine->failed)
                engine_cancel(engine, request, SMV_END_ERROR, engine->failed_code);
        else if (channel->shut) /* no client would read it, and no stall would stop it */
                engine_cancel(engine, request, SMV_END_CANCELLED, SMV_OK);
}

/* Submits a request with its siblings, so that all forks begin at the same position. */
static void on_submit(struct engine *engine, const struct mail *mail)
{
        struct request *first = mail->what;
        bool forks = first->parent;
        struct request *parent = forks ? take_parent(engine, first->parent) : NULL;
        struct request *next;

        for (struct request *request = first; request; request = next) {
                next = request->sibling;
                request->sibling = request->parent = NULL;
                add_live(engine, request);
                if (forks && !parent) {
                        end_orphan(engine, request);
                        continue;
                }
                if (forks)
                        start_fork(engine, request, parent);
                else
                        publish_begin(engine->publish, request, mail->control_text);
                submit(engine, request, parent);
        }
}

static void on_cancel(struct engine *engine, const struct mail *mail)
{
        struct request *request = mail->what;

        if (engine->requests[request->number] != request) {
                engine_post_retired(engine, request);
        } else {
                request->mails_taken++;
                engine_cancel(engine, request, mail->reason, mail->code);
        }
}

static void on_space(struct channel *channel)
{
        channel_lower(&channel->resume_sent);
        channel_resume(channel);
}

static void on_hangup(struct engine *engine, struct channel *channel)
{
        channel->shut = true;
        channel->hung_up = true;
        if (channel->live_count == 0)
                engine->gone[engine->gone_count++] = channel;
}

static void on_mail(struct engine *engine, const struct mail *mail)
{
        switch (mail->kind) {
        case MAIL_SUBMIT:
                on_submit(engine, mail);
                break;
        case MAIL_CANCEL:
                on_cancel(engine, mail);
                break;
        case MAIL_SPACE:
                on_space(mail->what);
                break;
        case MAIL_UNPIN:
                engine_note(engine,
                            &(struct sched_event){ .kind = SCHED_UNPIN, .pin = mail->number });
                break;
        case MAIL_HANGUP:
                on_hangup(engine, mail->what);
                break;
        case MAIL_PING:
                counter_add(&engine->conf.stats->pings_taken, 1);
                break;
        case MAIL_POOL:
                assert(!engine->pool_map);
                engine->pool_map = mail->what;
                break;
        case MAIL_STOP:
                assert(engine->active_count == 0);
                engine->stopped = true;
                break;
        default:
                assert(!"mail that is not for the engine");
        }
}

void engine_take_mail(struct engine *engine, uint64_t deadline_ns)
{
        struct mail mails[MAILS_AT_ONCE];
        uint32_t count;

        do {
                count = mailbox_take(engine->conf.inbox, mails, MAILS_AT_ONCE, deadline_ns);
                for (uint32_t i = 0; i < count; i++)
                        on_mail(engine, &mails[i]);
                deadline_ns = 0;
        } while (count == MAILS_AT_ONCE);
}
