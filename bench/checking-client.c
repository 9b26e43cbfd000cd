#include "bench/checking-client.h"

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

struct checking_client {
        const struct checking_client_conf *conf;
        struct checking_client_facts *facts;
        struct smv_client *client;
        struct stream streams[STREAMS_MAX];
        uint32_t alive;
        uint64_t random;
        int failed;
};

__attribute__((format(printf, 2, 3))) static void fail(struct checking_client *checking_client,
                                                       const char *format, ...)
{
        va_list values;

        if (checking_client->failed)
                return;
        checking_client->failed = -1;
        va_start(values, format);
        vsnprintf(checking_client->facts->what, sizeof(checking_client->facts->what), format,
                  values);
        va_end(values);
}

static void fail_call(struct checking_client *checking_client, const char *call, int r)
{
        struct smv_problem problem = { SMV_SIZE(smv_problem) };

        if (checking_client->client)
                smv_error(checking_client->client, &problem);
        fail(checking_client, "%s: %s; %s", call, strerror(-r),
             problem.message ? problem.message : "");
}

static uint64_t draw(struct checking_client *checking_client)
{
        uint64_t x = checking_client->random;

        x ^= x << 13;
        x ^= x >> 7;
        return checking_client->random = x ^ x << 17;
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

static void check_tokens(struct checking_client *checking_client, struct stream *stream,
                         const struct smv_event *e)
{
        if (e->token_count && e->position != stream->next)
                fail(checking_client, "stream %u is at %u, and tokens come for %u", e->stream,
                     stream->next, e->position);
        if (e->token_count && stream->cut)
                fail(checking_client, "stream %u goes on behind its stop string", e->stream);
        for (size_t i = 0; i < e->token_count; i++) {
                if (e->tokens[i] != token_at(stream, stream->next))
                        fail(checking_client, "stream %u has token %u at %u, not %u", e->stream,
                             e->tokens[i], stream->next, token_at(stream, stream->next));
                stream->next++;
                stream->cut = find_cut(stream);
        }
        for (size_t i = 0; i < e->text_bytes; i++) {
                skip_textless(stream);
                if (stream->shown >= (stream->cut ? stream->cut : stream->next) ||
                    (uint8_t)e->text[i] != token_at(stream, stream->shown))
                        fail(checking_client, "stream %u shows byte %02x in place of position %u's",
                             e->stream, (uint8_t)e->text[i], stream->shown);
                stream->shown++;
        }
        counter_add(&checking_client->facts->tokens, e->token_count);
}

static void check_end(struct checking_client *checking_client, struct stream *stream,
                      const struct smv_event *e)
{
        uint32_t count = stream->next - stream->first;

        skip_textless(stream);
        if (e->reason != (stream->cut ? SMV_END_STOP : SMV_END_LENGTH) || e->code != SMV_OK)
                fail(checking_client,
                     "stream %u ends so: %s, %s; after %u of %u tokens, %s its stop string",
                     e->stream, smv_reason_name(e->reason), smv_code_name(e->code), count,
                     stream->max, stream->cut ? "with" : "without");
        else if (!stream->cut && count != stream->max)
                fail(checking_client, "stream %u has %u tokens, not %u", e->stream, count,
                     stream->max);
        else if (e->output_tokens != count || e->prompt_tokens != stream->first)
                fail(checking_client, "stream %u had %u and %u tokens, its END says %u and %u",
                     e->stream, stream->first, count, e->prompt_tokens, e->output_tokens);
        else if (stream->shown != (stream->cut ? stream->cut : stream->next))
                fail(checking_client, "stream %u ends at %u, and its text at %u", e->stream,
                     stream->next, stream->shown);
        counter_add(&checking_client->facts->ends, 1);
        counter_add(&checking_client->facts->stopped, stream->cut != 0);
        stream->id = 0;
        checking_client->alive--;
}

static void check(struct checking_client *checking_client, const struct smv_event *e)
{
        for (uint32_t i = 0; i < STREAMS_MAX; i++) {
                struct stream *stream = &checking_client->streams[i];

                if (!e->stream || stream->id != e->stream)
                        continue;
                if (e->kind == SMV_EVENT_TOKENS)
                        check_tokens(checking_client, stream, e);
                else if (e->kind == SMV_EVENT_END)
                        check_end(checking_client, stream, e);
                return;
        }
        fail(checking_client, "an event of stream %u, which is not alive", e->stream);
}

/* ---- its walk ---- */

static void begin(struct checking_client *checking_client)
{
        static const char *const stops[] = { stop_often, stop_never };
        static const uint32_t prompt[3] = { 1, 2, 3 };
        struct stream *stream = checking_client->streams;
        struct smv_generate ask = { SMV_SIZE(smv_generate), .tokens = prompt };
        int r;

        while (stream->id)
                stream++;
        *stream = (struct stream){
                .seed = draw(checking_client),
                .first = 1 + (uint32_t)(draw(checking_client) % 3),
                .max = 1 + (uint32_t)(draw(checking_client) % checking_client->conf->tokens_max),
                .stops = draw(checking_client) & 1,
        };
        stream->next = stream->shown = stream->first;
        ask.token_count = stream->first;
        ask.max_tokens = stream->max;
        ask.set = SMV_SET_SEED;
        ask.seed = stream->seed;
        ask.stops = stops;
        ask.stop_count = stream->stops ? 2 : 0;
        r = smv_generate(checking_client->client, &ask, &stream->id);
        if (r) {
                fail_call(checking_client, "smv_generate", r);
                return;
        }
        checking_client->alive++;
        counter_add(&checking_client->facts->begun, 1);
}

static uint64_t now_ms(void)
{
        struct timespec t;

        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void nap(struct checking_client *checking_client, uint64_t ns)
{
        const struct timespec time = { .tv_nsec = (long)ns };

        counter_add(&checking_client->facts->naps, 1);
        (void)nanosleep(&time, NULL);
}

/* As the three kinds of programs do that the library is for. */
static int next(struct checking_client *checking_client, struct smv_event *e)
{
        struct pollfd fd = { .events = POLLIN };
        uint64_t until;
        int r;

        if (checking_client->conf->wait == CLIENT_SLEEPS)
                return smv_next(checking_client->client, e, PATIENCE_MS);
        r = smv_next(checking_client->client, e, 0);
        if (r)
                return r;

        until = now_ms() + PATIENCE_MS;
        do {
                if (checking_client->conf->wait == CLIENT_POLLS) {
                        fd.fd = smv_fd(checking_client->client);
                        (void)poll(&fd, 1, PATIENCE_MS);
                } else {
                        nap(checking_client, TURN_NS);
                }
                r = smv_next(checking_client->client, e, 0);
        } while (!r && now_ms() < until);
        return r;
}

static void take_one(struct checking_client *checking_client)
{
        struct smv_event e = { SMV_SIZE(smv_event) };
        int r = next(checking_client, &e);

        if (r == 0) {
                fail(checking_client, "nothing came for %d ms, and %u streams are alive",
                     PATIENCE_MS, checking_client->alive);
        } else if (r < 0) {
                fail_call(checking_client, "smv_next", r);
        } else {
                check(checking_client, &e);
                counter_add(&checking_client->facts->records, 1);
        }
        if (checking_client->conf->nap_every &&
            draw(checking_client) % checking_client->conf->nap_every == 0)
                nap(checking_client, draw(checking_client) % checking_client->conf->nap_ns);
}

static void go(struct checking_client *checking_client)
{
        const struct checking_client_conf *conf = checking_client->conf;
        struct smv_event e = { SMV_SIZE(smv_event) };

        for (;;) {
                while (!checking_client->failed && checking_client->alive < conf->streams &&
                       counter_get(&checking_client->facts->tokens) < conf->tokens)
                        begin(checking_client);
                if (checking_client->failed || !checking_client->alive)
                        break;
                take_one(checking_client);
        }
        if (!checking_client->failed && smv_next(checking_client->client, &e, 0) != -ENODATA)
                fail(checking_client, "something comes behind the last END");
}

static int connect_so(struct checking_client *checking_client)
{
        char message[160] = "";
        struct smv_connect options = checking_client->conf->connect;
        int r;

        options.size = sizeof(options);
        options.message = message;
        options.message_bytes = sizeof(message);
        r = smv_connect(&options, &checking_client->client);
        if (r)
                fail(checking_client, "smv_connect: %s; %s", strerror(-r), message);
        else if (smv_transport_used(checking_client->client) != options.transport)
                fail(checking_client, "it is not the transport that was asked for");
        else if (checking_client->conf->batch)
                smv_wake_after(checking_client->client, checking_client->conf->batch);
        return checking_client->failed;
}

int checking_client_run(const struct checking_client_conf *conf,
                        struct checking_client_facts *facts)
{
        struct checking_client checking_client = { .conf = conf,
                                                   .facts = facts,
                                                   .random = conf->seed | 1 };
        struct rusage before, after;

        getrusage(RUSAGE_THREAD, &before);
        if (!connect_so(&checking_client))
                go(&checking_client);
        smv_close(checking_client.client);
        getrusage(RUSAGE_THREAD, &after);
        counter_set(&facts->sleeps,
                    (uint64_t)(after.ru_nvcsw - before.ru_nvcsw) - counter_get(&facts->naps));
        return checking_client.failed;
}
