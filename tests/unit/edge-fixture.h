/*
 * An edge of its own for a test: its loop and its text worker run in threads.  The test plays the
 * engine and the waker through the mailboxes.
 */
#ifndef TESTS_UNIT_EDGE_FIXTURE_H
#define TESTS_UNIT_EDGE_FIXTURE_H

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/ipc/channel.h"
#include "daemon/edge/accept.h"
#include "daemon/edge/edge.h"
#include "base/log.h"
#include "base/sys.h"
#include "daemon/text/worker.h"

#define VOCAB   300u
#define BOS     256u
#define LIVE    64u
#define WAIT_MS 10000

struct edge_fixture {
        struct config config;
        struct stats stats;
        struct usage_snapshot *usage_snapshot;
        struct served served;
        int bell, drain_bell, arrive_bell;
        int arriving;
        struct mailbox *to_engine, *from_engine, *from_waker, *to_text_worker, *from_text_worker;
        struct text_worker *text_worker;
        struct loop *loop;
        struct edge *edge;
        struct loop_watch *drain_watch, *arrive_watch;
        pthread_t thread;
        int result;

        /* The state of the engine, which the test plays. */
        struct request *live[LIVE];
        uint32_t live_count;
        uint32_t said[LIVE]; /* records of each request, by its index */
        struct channel *hung_up[LIVE];
        uint32_t hung_up_count;
        struct mail last_cancel;
        uint32_t submits, cancels, rooms, hangups, lifts, last_lift;
        bool lose_cancel; /* retire the request first, and take the CANCEL afterwards */
        bool stopped;
};

static inline size_t record_bytes_max(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs)
{
        return (24 + 4 + piece_max + stop_bytes_max + 24 + 8 * logprobs + 7) & ~(size_t)7;
}

static inline size_t end_bytes_max(size_t stop_bytes_max)
{
        return 128 + stop_bytes_max;
}

static inline size_t parts_bytes_max(const struct dialect *dialect, size_t stop_bytes_max,
                                     size_t *ret_held)
{
        (void)dialect;
        *ret_held = 64;
        return 256 + stop_bytes_max;
}

static inline uint64_t seed(void)
{
        return 42;
}

static inline void on_drain(void *arg, unsigned mask)
{
        struct edge_fixture *fixture = arg;
        uint64_t times;

        (void)mask;
        assert_int_equal(read(fixture->drain_bell, &times, sizeof(times)), sizeof(times));
        while (times--)
                edge_drain(fixture->edge);
}

static inline void on_arrive(void *arg, unsigned mask)
{
        struct edge_fixture *fixture = arg;
        uint64_t fd;

        (void)mask;
        assert_int_equal(read(fixture->arrive_bell, &fd, sizeof(fd)), sizeof(fd));
        accept_peer(fixture->edge, (int)fd);
}

static inline void *loop_main(void *arg)
{
        struct edge_fixture *fixture = arg;

        fixture->result = edge_run(fixture->edge);
        return NULL;
}

static inline void drain(struct edge_fixture *fixture, uint64_t times)
{
        assert_int_equal(write(fixture->drain_bell, &times, sizeof(times)), sizeof(times));
}

/* Waits until the loop has begun to drain: anything it reads from now on comes later. */
static inline void drain_begun(struct edge_fixture *fixture, uint64_t times)
{
        drain(fixture, times);
        while (poll(&(struct pollfd){ .fd = fixture->drain_bell, .events = POLLIN }, 1, 0) == 1)
                usleep(100);
}

static inline struct edge_fixture *edge_fixture_new(void)
{
        struct edge_fixture *fixture = calloc(1, sizeof(*fixture));

        fixture->config = (struct config){
                .fd = -1,
                .max_seqs = 8,
                .max_tokens = 16,
                .uid_connections = 64,
                .uid_requests = 32,
                .uid_prompt_bytes = 64 << 20,
                .uid_handles = 8,
                .uid_blocks_percent = 100,
                .uid_cached_percent = 50,
                .uid_pinned_percent = 10,
                .uid_resumable = 4,
                .uid_resumable_bytes = 64 << 10,
                .resumable = 6,
                .uid_connects_burst = 1000,
                .uid_connects_per_s = 1000,
                .uid_ring_bytes = 16 << 20,
                .ring_bytes = 64 << 10,
                .frame_bytes = 1 << 20,
                .reply_bytes = 64 << 10,
                .hello_timeout_ms = 10000,
                .frame_timeout_ms = 10000,
                .connections = 16,
                .requests = 32,
                .stall_timeout_ms = 60000,
                .drain_timeout_ms = 10000,
        };
        strcpy(fixture->served.name, "tiny");
        fixture->served.context = 2048;
        fixture->served.traits = (struct traits){ .vocab = VOCAB, .context = 2048, .bos = BOS };
        return fixture;
}

static inline void edge_fixture_start(struct edge_fixture *fixture, bool with_text_worker)
{
        struct edge_conf conf = {
                .config = &fixture->config,
                .admission = { .sched = { .blocks = 64,
                                          .user_blocks = 64,
                                          .slots = 8,
                                          .rows = 64,
                                          .context = 2048,
                                          .depth = 1,
                                          .requests_max = fixture->config.requests,
                                          .channels = fixture->config.connections * 2,
                                          .prefix.pins = 2 },
                               .max_tokens = fixture->config.max_tokens,
                               .requests_max = fixture->config.requests,
                               .record_bytes_max = record_bytes_max,
                               .end_bytes_max = end_bytes_max,
                               .parts_bytes_max = parts_bytes_max,
                               .seed = seed },
                .served = &fixture->served,
                .stats = &fixture->stats,
        };

        log_open(LOG_ERROR);
        assert_int_equal(usage_snapshot_new(fixture->config.connections, &fixture->usage_snapshot),
                         0);
        conf.usage_snapshot = fixture->usage_snapshot;
        assert_int_equal(tokenizer_open_bytes(VOCAB, &fixture->served.tokenizer), 0);
        fixture->bell = sys_eventfd();
        fixture->drain_bell = sys_eventfd();
        fixture->arrive_bell = sys_eventfd();
        assert_int_equal(mailbox_new(256, -1, &fixture->to_engine), 0);
        assert_int_equal(mailbox_new(256, -1, &fixture->from_engine), 0);
        assert_int_equal(mailbox_new(256, fixture->bell, &fixture->from_waker), 0);
        assert_int_equal(mailbox_new(64, -1, &fixture->to_text_worker), 0);
        assert_int_equal(mailbox_new(64, fixture->bell, &fixture->from_text_worker), 0);
        conf.bell = fixture->bell;
        conf.to_engine = fixture->to_engine;
        conf.from_engine = fixture->from_engine;
        conf.from_waker = fixture->from_waker;
        conf.to_text_worker = fixture->to_text_worker;
        conf.from_text_worker = fixture->from_text_worker;
        conf.started_ns = sys_clock_ns();
        assert_int_equal(loop_new(&fixture->loop), 0);
        conf.loop = fixture->loop;
        assert_int_equal(edge_new(&conf, &fixture->edge), 0);
        assert_int_equal(loop_watch_new(fixture->loop, fixture->drain_bell, LOOP_READ, on_drain,
                                        fixture, &fixture->drain_watch),
                         0);
        assert_int_equal(loop_watch_new(fixture->loop, fixture->arrive_bell, LOOP_READ, on_arrive,
                                        fixture, &fixture->arrive_watch),
                         0);
        if (with_text_worker)
                assert_int_equal(text_worker_start(fixture->to_text_worker,
                                                   fixture->from_text_worker,
                                                   &fixture->text_worker),
                                 0);
        assert_int_equal(pthread_create(&fixture->thread, NULL, loop_main, fixture), 0);
}

/* ---- the engine ---- */

static inline void up(struct edge_fixture *fixture, enum mail_kind kind, void *what)
{
        mailbox_post(fixture->from_waker, &(struct mail){ .kind = kind, .what = what });
}

static inline bool is_hung_up(struct edge_fixture *fixture, const struct channel *channel)
{
        for (uint32_t i = 0; i < fixture->hung_up_count; i++)
                if (fixture->hung_up[i] == channel)
                        return true;
        return false;
}

static inline void wake(struct edge_fixture *fixture, struct channel *channel)
{
        ring_publish(&channel->writer);
        channel_show(channel);
        if (channel_raise(&channel->draining))
                up(fixture, MAIL_WAKE, channel);
}

static inline void retired(struct edge_fixture *fixture, struct request *request)
{
        struct channel *channel = request->channel;

        mailbox_post(fixture->from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
        wake(fixture, channel);
}

/* false: its ring is full. */
static inline bool say(struct edge_fixture *fixture, struct request *request, uint32_t token)
{
        struct channel *channel = request->channel;
        uint8_t *payload;
        struct smv_record_tokens head = { .token_count = 1, .text_bytes = 1 };
        uint64_t room;

        /* as the engine does in each step */
        assert_int_equal(ring_free_bytes(&channel->writer, 64, &room), 0);
        if (ring_put(&channel->writer, SMV_RECORD_TOKENS, 0, request->stream,
                     fixture->said[request->number], sizeof(head) + 5, (void **)&payload))
                return false;
        fixture->said[request->number]++;
        memcpy(payload, &head, sizeof(head));
        memcpy(payload + sizeof(head), &token, 4);
        payload[sizeof(head) + 4] = (uint8_t)token;
        wake(fixture, channel);
        return true;
}

static inline void put_end(struct edge_fixture *fixture, struct request *request,
                           enum smv_reason reason, enum smv_code code)
{
        struct channel *channel = request->channel;
        struct smv_record_end *end;
        uint64_t room;

        if (is_hung_up(fixture, channel))
                return;
        assert_int_equal(ring_free_bytes(&channel->writer, 128, &room), 0);
        assert_int_equal(ring_put(&channel->writer, SMV_RECORD_END, 0, request->stream,
                                  fixture->said[request->number], sizeof(*end), (void **)&end),
                         0);
        memset(end, 0, sizeof(*end));
        end->reason = (uint8_t)reason;
        end->code = code;
}

static inline void forget(struct edge_fixture *fixture, struct request *request)
{
        for (uint32_t i = 0; i < fixture->live_count; i++)
                if (fixture->live[i] == request) {
                        fixture->live[i] = fixture->live[--fixture->live_count];
                        request->channel->retired++;
                }
}

static inline void end(struct edge_fixture *fixture, struct request *request,
                       enum smv_reason reason, enum smv_code code)
{
        put_end(fixture, request, reason, code);
        forget(fixture, request);
        retired(fixture, request);
}

static inline bool is_live(struct edge_fixture *fixture, const struct request *request)
{
        for (uint32_t i = 0; i < fixture->live_count; i++)
                if (fixture->live[i] == request)
                        return true;
        return false;
}

/* Forks of a request that is gone end as the engine ends them. */
static inline void on_submit(struct edge_fixture *fixture, struct request *first)
{
        struct request *parent = first->parent, *next;
        bool orphans = parent && !is_live(fixture, parent);

        fixture->submits++;
        for (struct request *request = first; request; request = next) {
                next = request->sibling;
                request->sibling = request->parent = NULL;
                if (parent && !orphans)
                        request->prompt_count = parent->prompt_count;
                fixture->live[fixture->live_count++] = request;
                fixture->said[request->number] = 0;
                if (orphans)
                        end(fixture, request, SMV_END_ERROR, SMV_NO_STREAM);
        }
        if (orphans)
                retired(fixture, parent);
        else if (parent)
                parent->mails_taken++;
}

static inline void on_cancel(struct edge_fixture *fixture, const struct mail *mail)
{
        struct request *request = mail->what;

        fixture->cancels++;
        fixture->last_cancel = *mail;
        if (!is_live(fixture, request)) {
                retired(fixture, request);
                return;
        }
        if (fixture->lose_cancel) {
                end(fixture, request, SMV_END_EOS, SMV_OK);
                retired(fixture, request);
                return;
        }
        request->mails_taken++;
        end(fixture, request, mail->reason, mail->code);
}

static inline void let_channels_go(struct edge_fixture *fixture)
{
        for (uint32_t i = 0; i < fixture->hung_up_count;) {
                bool busy = false;

                for (uint32_t j = 0; j < fixture->live_count; j++)
                        busy |= fixture->live[j]->channel == fixture->hung_up[i];
                if (busy) {
                        i++;
                        continue;
                }
                up(fixture, MAIL_CHANNEL_GONE, fixture->hung_up[i]);
                fixture->hung_up[i] = fixture->hung_up[--fixture->hung_up_count];
        }
}

/* Takes mail for up to `ms`; false if none came. */
static inline bool engine(struct edge_fixture *fixture, uint64_t ms)
{
        struct mail mail;

        if (!mailbox_take(fixture->to_engine, &mail, 1, sys_clock_ns() + ms * 1000000u))
                return false;
        if (mail.kind == MAIL_SUBMIT) {
                on_submit(fixture, mail.what);
        } else if (mail.kind == MAIL_CANCEL) {
                on_cancel(fixture, &mail);
        } else if (mail.kind == MAIL_HANGUP) {
                fixture->hung_up[fixture->hung_up_count++] = mail.what;
                fixture->hangups++;
        } else if (mail.kind == MAIL_SPACE) {
                channel_lower(&((struct channel *)mail.what)->resume_sent);
                fixture->rooms++;
        } else if (mail.kind == MAIL_UNPIN) {
                fixture->lifts++;
                fixture->last_lift = mail.number;
        } else {
                assert_int_equal(mail.kind, MAIL_STOP);
                up(fixture, MAIL_STOPPED, NULL);
                fixture->stopped = true;
        }
        let_channels_go(fixture);
        return true;
}

#define ENGINE_UNTIL(fixture, condition)                                                           \
        do {                                                                                       \
                uint64_t until_ns = sys_clock_ns() + WAIT_MS * 1000000ull;                         \
                while (!(condition)) {                                                             \
                        engine(fixture, 2);                                                        \
                        assert_true(sys_clock_ns() < until_ns);                                    \
                }                                                                                  \
        } while (0)

/*
 * Waits until the loop has stopped.  Everything must have come back, else edge_free() reports
 * it.
 */
static inline int edge_fixture_stop(struct edge_fixture *fixture)
{
        int result;

        ENGINE_UNTIL(fixture, fixture->stopped);
        pthread_join(fixture->thread, NULL);
        if (fixture->text_worker)
                text_worker_join(fixture->text_worker);
        loop_watch_free(fixture->drain_watch);
        loop_watch_free(fixture->arrive_watch);
        assert_int_equal(fixture->served.references, 0);
        edge_free(fixture->edge);
        loop_free(fixture->loop);
        usage_snapshot_free(fixture->usage_snapshot);
        mailbox_free(fixture->to_engine);
        mailbox_free(fixture->from_engine);
        mailbox_free(fixture->from_waker);
        mailbox_free(fixture->to_text_worker);
        mailbox_free(fixture->from_text_worker);
        tokenizer_close(fixture->served.tokenizer);
        close(fixture->bell);
        close(fixture->drain_bell);
        close(fixture->arrive_bell);
        result = fixture->result;
        free(fixture);
        return result;
}

static inline void edge_fixture_close(struct edge_fixture *fixture)
{
        drain(fixture, 2);
        assert_int_equal(edge_fixture_stop(fixture), 0);
}

#endif
