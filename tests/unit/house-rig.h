/*
 * An edge of its own for a test: its loop and its scribe run in threads.  The test plays the
 * engine and the waker through the mailboxes.
 */
#ifndef TESTS_UNIT_HOUSE_RIG_H
#define TESTS_UNIT_HOUSE_RIG_H

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

#include "daemon/channel.h"
#include "daemon/edge/edge.h"
#include "daemon/log.h"
#include "daemon/sys.h"
#include "daemon/text/scribe.h"

#define VOCAB   300u
#define BOS     256u
#define LIVE    64u
#define WAIT_MS 10000

struct house {
        struct config config;
        struct stats stats;
        struct board *board;
        struct served served;
        int bell, drain_bell, arrive_bell;
        int arriving;
        struct mailbox *to_engine, *from_engine, *from_waker, *to_scribe, *from_scribe;
        struct scribe *scribe;
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

static inline uint64_t seed(void)
{
        return 42;
}

static inline void on_drain(void *arg, unsigned mask)
{
        struct house *house = arg;
        uint64_t times;

        (void)mask;
        assert_int_equal(read(house->drain_bell, &times, sizeof(times)), sizeof(times));
        while (times--)
                edge_drain(house->edge);
}

static inline void on_arrive(void *arg, unsigned mask)
{
        struct house *house = arg;
        uint64_t fd;

        (void)mask;
        assert_int_equal(read(house->arrive_bell, &fd, sizeof(fd)), sizeof(fd));
        edge_arrive(house->edge, (int)fd);
}

static inline void *loop_main(void *arg)
{
        struct house *house = arg;

        house->result = edge_run(house->edge);
        return NULL;
}

static inline void drain(struct house *house, uint64_t times)
{
        assert_int_equal(write(house->drain_bell, &times, sizeof(times)), sizeof(times));
}

/* Waits until the loop has begun to drain: anything it reads from now on comes later. */
static inline void drain_begun(struct house *house, uint64_t times)
{
        drain(house, times);
        while (poll(&(struct pollfd){ .fd = house->drain_bell, .events = POLLIN }, 1, 0) == 1)
                usleep(100);
}

static inline struct house *house_new(void)
{
        struct house *house = calloc(1, sizeof(*house));

        house->config = (struct config){
                .fd = -1,
                .max_seqs = 8,
                .max_tokens = 16,
                .uid_connections = 64,
                .uid_requests = 32,
                .uid_prompt_bytes = 64 << 20,
                .uid_handles = 8,
                .uid_blocks_percent = 100,
                .uid_cached_percent = 50,
                .uid_held_percent = 10,
                .uid_kept = 4,
                .uid_kept_bytes = 64 << 10,
                .kept = 6,
                .uid_connects_burst = 1000,
                .uid_connects_per_s = 1000,
                .uid_ring_bytes = 16 << 20,
                .ring_bytes = 64 << 10,
                .frame_bytes = 1 << 20,
                .reply_bytes = 64 << 10,
                .hello_ms = 10000,
                .frame_ms = 10000,
                .connections = 16,
                .requests = 32,
                .stall_ms = 60000,
                .drain_ms = 10000,
        };
        strcpy(house->served.name, "tiny");
        house->served.context = 2048;
        house->served.traits = (struct traits){ .vocab = VOCAB, .context = 2048, .bos = BOS };
        return house;
}

static inline void house_start(struct house *house, bool with_scribe)
{
        struct edge_conf conf = {
                .config = &house->config,
                .admit = { .sched = { .blocks = 64,
                                      .user_blocks = 64,
                                      .slots = 8,
                                      .rows = 64,
                                      .context = 2048,
                                      .depth = 1,
                                      .requests_max = house->config.requests,
                                      .channels = house->config.connections * 2,
                                      .prefix.anchors = 2 },
                           .max_tokens = house->config.max_tokens,
                           .requests_max = house->config.requests,
                           .record_bytes_max = record_bytes_max,
                           .end_bytes_max = end_bytes_max,
                           .seed = seed },
                .served = &house->served,
                .stats = &house->stats,
        };

        log_open(LOG_ERROR);
        assert_int_equal(board_new(house->config.connections, &house->board), 0);
        conf.board = house->board;
        assert_int_equal(tokenizer_open_bytes(VOCAB, &house->served.tokenizer), 0);
        house->bell = sys_eventfd();
        house->drain_bell = sys_eventfd();
        house->arrive_bell = sys_eventfd();
        assert_int_equal(mailbox_new(256, -1, &house->to_engine), 0);
        assert_int_equal(mailbox_new(256, -1, &house->from_engine), 0);
        assert_int_equal(mailbox_new(256, house->bell, &house->from_waker), 0);
        assert_int_equal(mailbox_new(64, -1, &house->to_scribe), 0);
        assert_int_equal(mailbox_new(64, house->bell, &house->from_scribe), 0);
        conf.bell = house->bell;
        conf.to_engine = house->to_engine;
        conf.from_engine = house->from_engine;
        conf.from_waker = house->from_waker;
        conf.to_scribe = house->to_scribe;
        conf.from_scribe = house->from_scribe;
        conf.started_ns = sys_clock_ns();
        assert_int_equal(loop_new(&house->loop), 0);
        conf.loop = house->loop;
        assert_int_equal(edge_new(&conf, &house->edge), 0);
        assert_int_equal(loop_watch_new(house->loop, house->drain_bell, LOOP_READ, on_drain, house,
                                        &house->drain_watch),
                         0);
        assert_int_equal(loop_watch_new(house->loop, house->arrive_bell, LOOP_READ, on_arrive,
                                        house, &house->arrive_watch),
                         0);
        if (with_scribe)
                assert_int_equal(scribe_start(house->to_scribe, house->from_scribe, &house->scribe),
                                 0);
        assert_int_equal(pthread_create(&house->thread, NULL, loop_main, house), 0);
}

/* ---- the engine ---- */

static inline void up(struct house *house, enum mail_kind kind, void *what)
{
        mailbox_post(house->from_waker, &(struct mail){ .kind = kind, .what = what });
}

static inline bool is_hung_up(struct house *house, const struct channel *channel)
{
        for (uint32_t i = 0; i < house->hung_up_count; i++)
                if (house->hung_up[i] == channel)
                        return true;
        return false;
}

static inline void wake(struct house *house, struct channel *channel)
{
        ring_publish(&channel->writer);
        channel_show(channel);
        if (channel_raise(&channel->draining))
                up(house, MAIL_WAKE, channel);
}

static inline void retired(struct house *house, struct request *request)
{
        struct channel *channel = request->channel;

        mailbox_post(house->from_engine, &(struct mail){ .kind = MAIL_RETIRED, .what = request });
        wake(house, channel);
}

/* false: its ring is full. */
static inline bool say(struct house *house, struct request *request, uint32_t token)
{
        struct channel *channel = request->channel;
        uint8_t *payload;
        struct smv_record_tokens head = { .token_count = 1, .text_bytes = 1 };
        uint64_t room;

        /* as the engine does in each step */
        assert_int_equal(ring_room(&channel->writer, 64, &room), 0);
        if (ring_put(&channel->writer, SMV_RECORD_TOKENS, 0, request->stream,
                     house->said[request->number], sizeof(head) + 5, (void **)&payload))
                return false;
        house->said[request->number]++;
        memcpy(payload, &head, sizeof(head));
        memcpy(payload + sizeof(head), &token, 4);
        payload[sizeof(head) + 4] = (uint8_t)token;
        wake(house, channel);
        return true;
}

static inline void put_end(struct house *house, struct request *request, enum smv_reason reason,
                           enum smv_code code)
{
        struct channel *channel = request->channel;
        struct smv_record_end *end;
        uint64_t room;

        if (is_hung_up(house, channel))
                return;
        assert_int_equal(ring_room(&channel->writer, 128, &room), 0);
        assert_int_equal(ring_put(&channel->writer, SMV_RECORD_END, 0, request->stream,
                                  house->said[request->number], sizeof(*end), (void **)&end),
                         0);
        memset(end, 0, sizeof(*end));
        end->reason = (uint8_t)reason;
        end->code = code;
}

static inline void forget(struct house *house, struct request *request)
{
        for (uint32_t i = 0; i < house->live_count; i++)
                if (house->live[i] == request) {
                        house->live[i] = house->live[--house->live_count];
                        request->channel->retired++;
                }
}

static inline void end(struct house *house, struct request *request, enum smv_reason reason,
                       enum smv_code code)
{
        put_end(house, request, reason, code);
        forget(house, request);
        retired(house, request);
}

static inline bool is_live(struct house *house, const struct request *request)
{
        for (uint32_t i = 0; i < house->live_count; i++)
                if (house->live[i] == request)
                        return true;
        return false;
}

/* Forks of a request that is gone end as the engine ends them. */
static inline void on_submit(struct house *house, struct request *first)
{
        struct request *parent = first->parent, *next;
        bool orphans = parent && !is_live(house, parent);

        house->submits++;
        for (struct request *request = first; request; request = next) {
                next = request->sibling;
                request->sibling = request->parent = NULL;
                if (parent && !orphans)
                        request->prompt_count = parent->prompt_count;
                house->live[house->live_count++] = request;
                house->said[request->number] = 0;
                if (orphans)
                        end(house, request, SMV_END_ERROR, SMV_NO_STREAM);
        }
        if (orphans)
                retired(house, parent);
        else if (parent)
                parent->mails_taken++;
}

static inline void on_cancel(struct house *house, const struct mail *mail)
{
        struct request *request = mail->what;

        house->cancels++;
        house->last_cancel = *mail;
        if (!is_live(house, request)) {
                retired(house, request);
                return;
        }
        if (house->lose_cancel) {
                end(house, request, SMV_END_EOS, SMV_OK);
                retired(house, request);
                return;
        }
        request->mails_taken++;
        end(house, request, mail->reason, mail->code);
}

static inline void let_channels_go(struct house *house)
{
        for (uint32_t i = 0; i < house->hung_up_count;) {
                bool busy = false;

                for (uint32_t j = 0; j < house->live_count; j++)
                        busy |= house->live[j]->channel == house->hung_up[i];
                if (busy) {
                        i++;
                        continue;
                }
                up(house, MAIL_CHANNEL_GONE, house->hung_up[i]);
                house->hung_up[i] = house->hung_up[--house->hung_up_count];
        }
}

/* Takes mail for up to `ms`; false if none came. */
static inline bool engine(struct house *house, uint64_t ms)
{
        struct mail mail;

        if (!mailbox_take(house->to_engine, &mail, 1, sys_clock_ns() + ms * 1000000u))
                return false;
        if (mail.kind == MAIL_SUBMIT) {
                on_submit(house, mail.what);
        } else if (mail.kind == MAIL_CANCEL) {
                on_cancel(house, &mail);
        } else if (mail.kind == MAIL_HANGUP) {
                house->hung_up[house->hung_up_count++] = mail.what;
                house->hangups++;
        } else if (mail.kind == MAIL_ROOM) {
                channel_lower(&((struct channel *)mail.what)->nudging);
                house->rooms++;
        } else if (mail.kind == MAIL_LIFT) {
                house->lifts++;
                house->last_lift = mail.number;
        } else {
                assert_int_equal(mail.kind, MAIL_STOP);
                up(house, MAIL_STOPPED, NULL);
                house->stopped = true;
        }
        let_channels_go(house);
        return true;
}

#define ENGINE_UNTIL(house, condition)                                                             \
        do {                                                                                       \
                uint64_t until_ns = sys_clock_ns() + WAIT_MS * 1000000ull;                         \
                while (!(condition)) {                                                             \
                        engine(house, 2);                                                          \
                        assert_true(sys_clock_ns() < until_ns);                                    \
                }                                                                                  \
        } while (0)

/*
 * Waits until the loop has stopped.  Everything must have come back, else edge_free() reports
 * it.
 */
static inline int house_stop(struct house *house)
{
        int result;

        ENGINE_UNTIL(house, house->stopped);
        pthread_join(house->thread, NULL);
        if (house->scribe)
                scribe_join(house->scribe);
        loop_watch_free(house->drain_watch);
        loop_watch_free(house->arrive_watch);
        assert_int_equal(house->served.holds, 0);
        edge_free(house->edge);
        loop_free(house->loop);
        board_free(house->board);
        mailbox_free(house->to_engine);
        mailbox_free(house->from_engine);
        mailbox_free(house->from_waker);
        mailbox_free(house->to_scribe);
        mailbox_free(house->from_scribe);
        tokenizer_close(house->served.tokenizer);
        close(house->bell);
        close(house->drain_bell);
        close(house->arrive_bell);
        result = house->result;
        free(house);
        return result;
}

static inline void house_close(struct house *house)
{
        drain(house, 2);
        assert_int_equal(house_stop(house), 0);
}

#endif
