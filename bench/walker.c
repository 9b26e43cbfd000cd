#include "bench/walker.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "bench/null-model.h"

#define STREAMS_MAX 64u
#define PATIENCE_MS 10000
#define TURN_NS     50000u
#define TEXTLESS    256u /* tokens from here on have no text */

/* The first comes now and then; of the second only beginnings do. */
#define A10 "aaaaaaaaaa"
static const char stop_often[] = "abcabc";
static const char stop_never[] = A10 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10 A10 "z";

struct stream {
        uint32_t id; /* 0: none */
        uint64_t seed;
        uint32_t first; /* position of its first token */
        uint32_t max;
        uint32_t next;  /* position of the next token */
        uint32_t shown; /* ... of the next that has text which was not shown yet */
        uint32_t cut;   /* where a stop string began; 0: nowhere */
        bool stops;
};

struct walker {
        const struct walker_conf *conf;
        struct walker_facts *facts;
        struct smv_client *client;
        struct stream streams[STREAMS_MAX];
        uint32_t alive;
        uint64_t random;
        int failed;
};

__attribute__((format(printf, 2, 3))) static void fail(struct walker *walker, const char *format,
                                                       ...)
{
        va_list values;

        if (walker->failed)
                return;
        walker->failed = -1;
        va_start(values, format);
        vsnprintf(walker->facts->what, sizeof(walker->facts->what), format, values);
        va_end(values);
}

static void fail_call(struct walker *walker, const char *call, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        if (walker->client)
                smv_error(walker->client, &problem);
        fail(walker, "%s: %s; %s", call, strerror(-r), problem.message ? problem.message : "");
}

static uint64_t draw(struct walker *walker)
{
        uint64_t x = walker->random;

        x ^= x << 13;
        x ^= x >> 7;
        return walker->random = x ^ x << 17;
}

/* ---- a stream, and its expected records ---- */

static uint32_t token_at(const struct stream *stream, uint32_t position)
{
        return null_token(stream->seed, position);
}

/* The position before this one that has text; 0: there is none. */
static uint32_t text_before(const struct stream *stream, uint32_t position)
{
        while (position > stream->first)
                if (token_at(stream, --position) < TEXTLESS)
                        return position;
        return 0;
}

/* Where the stop string began that the last bytes complete; 0: none is complete. */
static uint32_t ends_with(const struct stream *stream, const char *stop, size_t bytes)
{
        uint32_t at = stream->next;

        while (bytes--) {
                at = text_before(stream, at);
                if (!at || token_at(stream, at) != (uint8_t)stop[bytes])
                        return 0;
        }
        return at;
}

static uint32_t find_cut(const struct stream *stream)
{
        uint32_t often, never;

        if (!stream->stops || token_at(stream, stream->next - 1) >= TEXTLESS)
                return 0;
        often = ends_with(stream, stop_often, sizeof(stop_often) - 1);
        never = ends_with(stream, stop_never, sizeof(stop_never) - 1);
        return often && never ? (often < never ? often : never) : often + never;
}

static void skip_textless(struct stream *stream)
{
        while (stream->shown < stream->next && token_at(stream, stream->shown) >= TEXTLESS)
                stream->shown++;
}

static void check_tokens(struct walker *walker, struct stream *stream, const struct smv_event *e)
{
        if (e->token_count && e->position != stream->next)
                fail(walker, "stream %u is at %u, and tokens come for %u", e->stream, stream->next,
                     e->position);
        if (e->token_count && stream->cut)
                fail(walker, "stream %u goes on behind its stop string", e->stream);
        for (size_t i = 0; i < e->token_count; i++) {
                if (e->tokens[i] != token_at(stream, stream->next))
                        fail(walker, "stream %u has token %u at %u, not %u", e->stream,
                             e->tokens[i], stream->next, token_at(stream, stream->next));
                stream->next++;
                stream->cut = find_cut(stream);
        }
        for (size_t i = 0; i < e->text_bytes; i++) {
                skip_textless(stream);
                if (stream->shown >= (stream->cut ? stream->cut : stream->next) ||
                    (uint8_t)e->text[i] != token_at(stream, stream->shown))
                        fail(walker, "stream %u shows byte %02x in place of position %u's",
                             e->stream, (uint8_t)e->text[i], stream->shown);
                stream->shown++;
        }
        counter_add(&walker->facts->tokens, e->token_count);
}

static void check_end(struct walker *walker, struct stream *stream, const struct smv_event *e)
{
        uint32_t count = stream->next - stream->first;

        skip_textless(stream);
        if (e->reason != (stream->cut ? SMV_END_STOP : SMV_END_LENGTH) || e->code != SMV_OK)
                fail(walker, "stream %u ends so: %s, %s; after %u of %u tokens, %s its stop string",
                     e->stream, smv_reason_name(e->reason), smv_code_name(e->code), count,
                     stream->max, stream->cut ? "with" : "without");
        else if (!stream->cut && count != stream->max)
                fail(walker, "stream %u has %u tokens, not %u", e->stream, count, stream->max);
        else if (e->output_tokens != count || e->prompt_tokens != stream->first)
                fail(walker, "stream %u had %u and %u tokens, its END says %u and %u", e->stream,
                     stream->first, count, e->prompt_tokens, e->output_tokens);
        else if (stream->shown != (stream->cut ? stream->cut : stream->next))
                fail(walker, "stream %u ends at %u, and its text at %u", e->stream, stream->next,
                     stream->shown);
        counter_add(&walker->facts->ends, 1);
        counter_add(&walker->facts->stopped, stream->cut != 0);
        stream->id = 0;
        walker->alive--;
}

static void check(struct walker *walker, const struct smv_event *e)
{
        for (uint32_t i = 0; i < STREAMS_MAX; i++) {
                struct stream *stream = &walker->streams[i];

                if (!e->stream || stream->id != e->stream)
                        continue;
                if (e->kind == SMV_EVENT_TOKENS)
                        check_tokens(walker, stream, e);
                else if (e->kind == SMV_EVENT_END)
                        check_end(walker, stream, e);
                return;
        }
        fail(walker, "an event of stream %u, which is not alive", e->stream);
}

/* ---- its walk ---- */

static void begin(struct walker *walker)
{
        static const char *const stops[] = { stop_often, stop_never };
        static const uint32_t prompt[3] = { 1, 2, 3 };
        struct stream *stream = walker->streams;
        struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = prompt };
        int r;

        while (stream->id)
                stream++;
        *stream = (struct stream){
                .seed = draw(walker),
                .first = 1 + (uint32_t)(draw(walker) % 3),
                .max = 1 + (uint32_t)(draw(walker) % walker->conf->tokens_max),
                .stops = draw(walker) & 1,
        };
        stream->next = stream->shown = stream->first;
        ask.token_count = stream->first;
        ask.max_tokens = stream->max;
        ask.set = SMV_SET_SEED;
        ask.seed = stream->seed;
        ask.stops = stops;
        ask.stop_count = stream->stops ? 2 : 0;
        r = smv_generate(walker->client, &ask, &stream->id);
        if (r) {
                fail_call(walker, "smv_generate", r);
                return;
        }
        walker->alive++;
        counter_add(&walker->facts->begun, 1);
}

static uint64_t now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void nap(struct walker *walker, uint64_t ns)
{
        const struct timespec time = { .tv_nsec = (long)ns };

        counter_add(&walker->facts->naps, 1);
        (void)nanosleep(&time, NULL);
}

/* As the three kinds of programs do that the library is for. */
static int next(struct walker *walker, struct smv_event *e)
{
        struct pollfd fd = { .events = POLLIN };
        uint64_t until;
        int r;

        if (walker->conf->wait == WALKER_NEXT)
                return smv_next(walker->client, e, PATIENCE_MS);
        r = smv_next(walker->client, e, 0);
        if (r)
                return r;

        until = now_ms() + PATIENCE_MS;
        do {
                if (walker->conf->wait == WALKER_POLL) {
                        fd.fd = smv_fd(walker->client);
                        (void)poll(&fd, 1, PATIENCE_MS);
                } else {
                        nap(walker, TURN_NS);
                }
                r = smv_next(walker->client, e, 0);
        } while (!r && now_ms() < until);
        return r;
}

static void take_one(struct walker *walker)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        int r = next(walker, &e);

        if (r == 0) {
                fail(walker, "nothing came for %d ms, and %u streams are alive", PATIENCE_MS,
                     walker->alive);
        } else if (r < 0) {
                fail_call(walker, "smv_next", r);
        } else {
                check(walker, &e);
                counter_add(&walker->facts->records, 1);
        }
        if (walker->conf->nap_every && draw(walker) % walker->conf->nap_every == 0)
                nap(walker, draw(walker) % walker->conf->nap_ns);
}

static void go(struct walker *walker)
{
        const struct walker_conf *conf = walker->conf;
        struct smv_event e = { SMV_SIZE(smv_event) };

        for (;;) {
                while (!walker->failed && walker->alive < conf->streams &&
                       counter_get(&walker->facts->tokens) < conf->tokens)
                        begin(walker);
                if (walker->failed || !walker->alive)
                        break;
                take_one(walker);
        }
        if (!walker->failed && smv_next(walker->client, &e, 0) != -ENODATA)
                fail(walker, "something comes behind the last END");
}

static int connect_so(struct walker *walker)
{
        char message[160] = "";
        struct smv_connect options = walker->conf->connect;
        int r;

        options.size = sizeof(options);
        options.message = message;
        options.message_bytes = sizeof(message);
        r = smv_connect(&options, &walker->client);
        if (r)
                fail(walker, "smv_connect: %s; %s", strerror(-r), message);
        else if (smv_transport_used(walker->client) != options.transport)
                fail(walker, "it is not the transport that was asked for");
        else if (walker->conf->batch)
                smv_batch(walker->client, walker->conf->batch);
        return walker->failed;
}

int walker_walk(const struct walker_conf *conf, struct walker_facts *facts)
{
        struct walker walker = { .conf = conf, .facts = facts, .random = conf->seed | 1 };
        struct rusage before, after;

        getrusage(RUSAGE_THREAD, &before);
        if (!connect_so(&walker))
                go(&walker);
        smv_close(walker.client);
        getrusage(RUSAGE_THREAD, &after);
        counter_set(&facts->sleeps,
                    (uint64_t)(after.ru_nvcsw - before.ru_nvcsw) - counter_get(&facts->naps));
        return walker.failed;
}
