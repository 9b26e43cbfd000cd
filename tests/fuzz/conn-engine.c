/*
 * Short versions of the text worker, the engine and the waker: they keep the daemon's rules without
 * a thread, and act when the script lets them.
 */
#include "tests/fuzz/conn-rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ipc/channel.h"
#include "daemon/text/worker.h"

/* ---- the text worker ---- */

bool text_worker(void)
{
        struct text_job *job;
        struct mail mail;

        if (!mailbox_take(world.to_text_worker, &mail, 1, 0))
                return false;
        if (mail.kind == MAIL_STOP)
                return true;
        assert(mail.kind == MAIL_JOB);
        job = mail.what;
        job->result = job->work(job);
        mailbox_post(world.from_text_worker, &(struct mail){ .kind = MAIL_JOB_DONE, .what = job });
        return true;
}

/* ---- the engine ---- */

static void post(enum mail_kind kind, void *what, int result)
{
        mailbox_post(world.to_waker,
                     &(struct mail){ .kind = kind, .what = what, .result = result });
}

static void end_so(struct request *request, enum smv_reason reason, enum smv_code code)
{
        if (request->state == REQUEST_ENDING)
                return;
        request_move(request, REQUEST_ENDING);
        world.ends[request->number] = (struct mail){ .reason = reason, .code = code };
}

static void post_retired(struct request *request)
{
        publish_call_loop(world.publish, request->channel);
        mailbox_post(world.from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
}

/* As in the engine's step: END, RETIRED, then both are shown, then the channel is released. */
bool retire(struct request *request, enum smv_reason reason, enum smv_code code)
{
        struct channel *channel = request->channel;
        const struct mail *end = &world.ends[request->number];
        bool *waits = &world.waits[request->number];

        end_so(request, reason, code);
        *waits = publish_end(world.publish, request, end->reason, end->code, 0);
        if (*waits)
                return false;
        request_move(request, REQUEST_RETIRED);
        world.live[request->number] = NULL;
        channel->live_count--;
        channel->retired++;
        post_retired(request);
        publish_flush(world.publish);
        if (!channel->live_count && channel->hung_up)
                post(MAIL_CHANNEL_GONE, channel, 0);
        return true;
}

static bool say_ends(void)
{
        bool moved = false;

        for (uint32_t i = 0; i < REQUESTS; i++)
                if (world.live[i] && world.waits[i])
                        moved |= retire(world.live[i], SMV_END_CANCELLED, SMV_OK);
        return moved;
}

/* NULL: the parent has ended. */
static struct request *take_parent(struct request *parent)
{
        if (parent->state == REQUEST_RETIRED) {
                post_retired(parent);
                publish_flush(world.publish);
                return NULL;
        }
        parent->mails_taken++;
        return parent->state == REQUEST_ENDING ? NULL : parent;
}

static void branch(struct request *request, const struct request *parent)
{
        uint32_t outputs = world.outputs[parent->number];

        request->prompt_count = parent->prompt_count + outputs;
        if (!request->max_tokens)
                request->max_tokens = parent->max_tokens - outputs;
        assert(request->prompt_count + request->max_tokens <= request->tokens_max);
        assert(request->submitted_count <= request->prompt_count);
        memset(request->sequence.tokens + request->submitted_count, 0,
               (request->prompt_count - request->submitted_count) * sizeof(uint32_t));
        publish_fork(world.publish, request, parent);
}

static void begin(struct request *request, const struct request *parent, bool control_text)
{
        if (parent)
                branch(request, parent);
        else
                publish_begin(world.publish, request, control_text);
        assert(request->prompt_count && !request->max_tokens == !request->record_bytes_max);
        assert(request->prompt_count + request->max_tokens <= request->tokens_max);
        if (world.failed)
                end_so(request, SMV_END_ERROR, SMV_INTERNAL);
}

static void begin_orphan(struct request *request)
{
        publish_begin(world.publish, request, false);
        end_so(request, SMV_END_ERROR, SMV_NO_STREAM);
}

static void on_submit(const struct mail *mail)
{
        struct request *first = mail->what;
        bool forks = first->parent;
        const struct request *parent = forks ? take_parent(first->parent) : NULL;
        struct request *next;

        for (struct request *request = first; request; request = next) {
                next = request->sibling;
                assert(request->number < REQUESTS && !world.live[request->number]);
                assert(request->state == REQUEST_WAITING && !request->channel->hung_up);
                world.live[request->number] = request;
                world.outputs[request->number] = 0;
                world.waits[request->number] = false;
                request->channel->live_count++;
                request->sibling = request->parent = NULL;
                if (forks && !parent)
                        begin_orphan(request);
                else
                        begin(request, parent, mail->control_text);
        }
}

static void on_cancel(const struct mail *mail)
{
        struct request *request = mail->what;

        if (request->state == REQUEST_RETIRED) {
                post_retired(request);
                publish_flush(world.publish);
                return;
        }
        request->mails_taken++;
        end_so(request, mail->reason, mail->code);
}

static void on_room(struct channel *channel)
{
        channel_lower(&channel->resume_sent);
        channel_resume(channel);
}

static void on_hangup(struct channel *channel)
{
        assert(!channel->hung_up);
        channel->shut = channel->hung_up = true;
        if (!channel->live_count)
                post(MAIL_CHANNEL_GONE, channel, 0);
}

bool engine(void)
{
        struct mail mail;

        if (!mailbox_take(world.to_engine, &mail, 1, 0))
                return say_ends();
        if (mail.kind == MAIL_SUBMIT)
                on_submit(&mail);
        else if (mail.kind == MAIL_CANCEL)
                on_cancel(&mail);
        else if (mail.kind == MAIL_SPACE)
                on_room(mail.what);
        else if (mail.kind == MAIL_UNPIN)
                assert(mail.number && mail.number <= ANCHORS);
        else if (mail.kind == MAIL_HANGUP)
                on_hangup(mail.what);
        else if (mail.kind == MAIL_STOP)
                post(MAIL_STOPPED, NULL, 0);
        else
                assert(!"mail that is not for the engine");
        return true;
}

struct request *nth_live(uint32_t n)
{
        for (uint32_t i = 0; i < REQUESTS; i++)
                if (world.live[(n + i) % REQUESTS])
                        return world.live[(n + i) % REQUESTS];
        return NULL;
}

/* Is there room for TOKENS?  Without it the ring is stalled, unless it was read just now. */
static bool has_room(const struct request *request)
{
        struct channel *channel = request->channel;
        uint64_t room;
        int r;

        if (channel->shut)
                return true;
        r = publish_free_bytes(channel, &room);
        assert(!r);
        if (room >= request->record_bytes_max)
                return true;
        if (!channel_is_up(&channel->stalled))
                channel_stall(channel);
        return false;
}

void emit(uint32_t n, uint32_t token, uint32_t times)
{
        static const struct logprob no_logprobs[PICK_LOGPROBS_MAX];
        struct request *request = nth_live(n);
        enum sched_verdict verdict = SCHED_CONTINUE;

        if (!request || request->state == REQUEST_ENDING)
                return;
        if (!request->max_tokens) {
                request->pinned = times > 1;
                end_so(request, SMV_END_LENGTH, SMV_OK);
                return;
        }
        while (times-- && verdict == SCHED_CONTINUE && world.tokens < TOKENS_MAX &&
               has_room(request)) {
                world.tokens++;
                uint32_t *outputs = &world.outputs[request->number];

                if (request->sampling.row_entries)
                        publish_row(world.publish, request, no_logprobs, 0,
                                    request->prompt_count + *outputs);
                if (request->asking)
                        publish_ask(world.publish, request, request->prompt_count + *outputs);
                verdict = publish_token(world.publish, request, token, no_logprobs,
                                        request->prompt_count + *outputs, SCHED_CONTINUE);
                if (++*outputs == request->max_tokens)
                        break;
        }
        publish_flush(world.publish);
        if (verdict == SCHED_STOP)
                end_so(request, SMV_END_STOP, SMV_OK);
        else if (world.outputs[request->number] == request->max_tokens)
                end_so(request, SMV_END_LENGTH, SMV_OK);
}

/* Only work can fail, so an engine without work is never lost. */
void fail(void)
{
        if (world.failed || !nth_live(0))
                return;
        world.failed = true;
        for (uint32_t i = 0; i < REQUESTS; i++)
                if (world.live[i])
                        end_so(world.live[i], SMV_END_ERROR, SMV_INTERNAL);
        post(MAIL_FAILED, NULL, -EIO);
}

/* ---- the waker ---- */

static bool call_loop(struct channel *channel)
{
        if (channel_raise(&channel->draining))
                mailbox_post(world.from_waker,
                             &(struct mail){ .kind = MAIL_WAKE, .what = channel });
        return true;
}

bool waker(void)
{
        struct channel *channel;
        struct mail mail;

        if (!mailbox_take(world.to_waker, &mail, 1, 0))
                return false;
        if (mail.kind != MAIL_WAKE) {
                mailbox_post(world.from_waker, &mail);
                return true;
        }
        channel = mail.what;
        channel_lower(&channel->waking);
        if (channel_lower(&channel->calling) || !channel_is_shared(channel))
                call_loop(channel);
        /* There is one thread, so no other thread holds the send lock. */
        if (channel_is_shared(channel) && channel_is_due(channel))
                assert(!channel_ring(channel));
        return true;
}
