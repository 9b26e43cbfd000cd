/* A server that speaks the API of OpenAI: streaming completions, or chat completions. */
#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "cli/bench/answer-reader.h"
#include "cli/bench/http-facts.h"
#include "cli/bench/target.h"
#include "cli/clock.h"
#include "cli/web.h"
#include "json/builder.h"
#include "json/utf8.h"

#define STALL_MS      600000u
#define BODY_MAX      65536u /* of an answer that is no stream */
#define UNKNOWN_IDS   1024u  /* a vocabulary of which the server does not say the size */
#define SPECIAL_IDS   259u   /* the first ids may be single bytes and marks */
#define PROBE_WORDS   32u
#define PROBE_FACTOR  8u
#define ADVISED_BYTES 120u /* of the words of a refusal, before advice */

struct http_target;

struct flight {
        struct http_target *of;
        struct flight *next, *before;
        struct web_request *request;
        struct sample *sample;
        struct event_reader reader;
        struct answer_chunk end; /* what the chunks have said so far */
        struct bytes body;       /* of a refusal */
        bool events;             /* some have come */
        int status;
        int result; /* -ENOMEM */
};

struct http_target {
        struct target target; /* the first member */
        struct web *web;
        int timer;
        bool chat;
        char url[1024];
        char authorization[512]; /* "": none */
        struct flight *flights;
        struct bytes body;
        uint32_t *ids;
        int result; /* the first failure of our own: -ENOMEM */
};

static struct http_target *of(struct target *target)
{
        return (struct http_target *)target;
}

/* ---- the body of a request ---- */

static void put_messages(struct json_builder *to, const struct prompt *prompt)
{
        json_put_key(to, "messages");
        json_put_array(to);
        for (size_t i = 0; i < prompt->message_count; i++) {
                json_put_object(to);
                json_put_key_word(to, "role", prompt->messages[i].role);
                json_put_key_word(to, "content", prompt->messages[i].content);
                json_put_object_end(to);
        }
        json_put_array_end(to);
}

static void put_prompt(struct json_builder *to, const struct prompt *prompt, bool chat)
{
        const struct smv_message question = { .role = "user", .content = prompt->text };
        const struct prompt asked = { .messages = &question, .message_count = 1 };

        if (chat) {
                put_messages(to, prompt->messages ? prompt : &asked);
                return;
        }
        json_put_key(to, "prompt");
        if (prompt->ids) {
                json_put_array(to);
                for (size_t i = 0; i < prompt->id_count; i++)
                        json_put_uint(to, prompt->ids[i]);
                json_put_array_end(to);
        } else {
                json_put_word(to, prompt->text);
        }
}

static int make_body(struct http_target *t, const struct prompt *prompt, uint32_t number)
{
        struct json_builder to = json_build(&t->body);

        t->body.count = 0;
        json_put_object(&to);
        json_put_key_word(&to, "model", t->target.model ? t->target.model : t->target.facts.model);
        put_prompt(&to, prompt, t->chat);
        if (prompt->output)
                json_put_key_uint(&to, "max_tokens", prompt->output);
        if (prompt->ignore_eos)
                json_put_key_bool(&to, "ignore_eos", true);
        if (t->target.set & SMV_SET_TEMPERATURE) {
                json_put_key(&to, "temperature");
                json_put_float(&to, (double)t->target.temperature);
        }
        json_put_key_uint(&to, "seed", number);
        json_put_key_bool(&to, "stream", true);
        json_put_key(&to, "stream_options");
        json_put_object(&to);
        json_put_key_bool(&to, "include_usage", true);
        json_put_object_end(&to);
        json_put_object_end(&to);
        return json_put_end(&to);
}

/* ---- the answer ---- */

static void drop(struct flight *flight)
{
        struct http_target *t = flight->of;

        if (flight->before)
                flight->before->next = flight->next;
        else
                t->flights = flight->next;
        if (flight->next)
                flight->next->before = flight->before;
        event_reader_deinit(&flight->reader);
        bytes_deinit(&flight->body);
        free(flight);
}

static bool on_head(void *arg, int status, const struct web_head *head)
{
        struct flight *flight = arg;

        (void)head;
        flight->status = status;
        return true;
}

static int on_event(void *arg, const char *data, size_t bytes)
{
        struct flight *flight = arg;
        struct answer_chunk chunk;

        flight->events = true;
        answer_chunk_read(data, bytes, &chunk);
        if (chunk.has_usage) {
                flight->sample->has_usage = true;
                flight->sample->input = chunk.input;
                flight->sample->output = chunk.output;
                flight->sample->cached = chunk.cached;
        }
        flight->end.choices = flight->end.choices || chunk.choices;
        flight->end.done = flight->end.done || chunk.done;
        flight->end.finished = flight->end.finished || chunk.finished;
        if (*chunk.error && !*flight->end.error) {
                memcpy(flight->end.error, chunk.error, sizeof(chunk.error));
                memcpy(flight->end.why, chunk.why, sizeof(chunk.why));
        }
        return chunk.text ? sample_piece(flight->sample, target_now(&flight->of->target)) : 0;
}

static bool on_data(void *arg, const void *bytes, size_t count)
{
        struct flight *flight = arg;

        if (flight->status / 100 != 2) {
                if (flight->body.count + count > BODY_MAX)
                        count = BODY_MAX - flight->body.count;
                flight->result = count ? bytes_add(&flight->body, bytes, count) : 0;
        } else {
                flight->result = event_reader_take(&flight->reader, bytes, count, on_event, flight);
        }
        return !flight->result;
}

static void judge_refusal(struct flight *flight, char name[32])
{
        struct http_target *t = flight->of;
        const char *advice = "";
        struct answer_chunk refusal;

        answer_refusal_read(flight->body.at ? flight->body.at : "", flight->body.count, &refusal);
        snprintf(name, 32, "http %d", flight->status);
        if (flight->status == 401 || flight->status == 403)
                advice = *t->authorization ? " (it refuses the key of --key-file)"
                                           : " (--key-file gives a key)";
        else if (flight->status == 404 || flight->status == 405 || flight->status == 501)
                advice = t->chat ? " (if the server has no /chat/completions: --api completions)"
                                 : " (if the server has no /completions: --api chat)";
        if (*advice) /* which has space, also where this becomes part of a message */
                refusal.why[utf8_valid(refusal.why, strnlen(refusal.why, ADVISED_BYTES))] = '\0';
        snprintf(t->target.why, sizeof(t->target.why), "%s%s", refusal.why, advice);
}

/* The name of what went wrong; "": nothing. */
static const char *judge(struct flight *flight, enum web_end end, const char *why, char name[32])
{
        struct target *target = &flight->of->target;

        if (flight->status && flight->status / 100 != 2) {
                judge_refusal(flight, name);
        } else if (*flight->end.error) {
                snprintf(name, 32, "%s", flight->end.error);
                snprintf(target->why, sizeof(target->why), "%s", flight->end.why);
        } else if (end == WEB_STOPPED) {
                snprintf(name, 32, "%s", "bad answer");
                snprintf(target->why, sizeof(target->why), "an event is longer than %u bytes",
                         EVENT_BYTES_MAX);
        } else if (end == WEB_GOOD && !flight->end.choices) {
                snprintf(name, 32, "%s", "bad answer");
                snprintf(target->why, sizeof(target->why),
                         "%s: is the URL that of an API of "
                         "OpenAI, which mostly ends with /v1?",
                         flight->events ? "the answer has no choices"
                                        : "the answer is no stream of events");
        } else if (end != WEB_GOOD || !(flight->end.done || flight->end.finished)) {
                snprintf(name, 32, "%s", flight->status ? "cut" : "lost");
                snprintf(target->why, sizeof(target->why), "%s",
                         why ? why : "the answer ended before it was complete");
        } else {
                *name = '\0';
        }
        return name;
}

static void on_end(void *arg, enum web_end end, const char *why)
{
        struct flight *flight = arg;
        struct http_target *t = flight->of;
        struct sample *sample = flight->sample;
        char name[32];

        if (flight->result == -ENOMEM)
                t->result = -ENOMEM;
        judge(flight, end, why, name);
        /* A server that does not tell the usage: a piece is a token, nearly always. */
        if (!sample->has_usage)
                sample->output = sample->pieces;
        drop(flight);
        target_end(&t->target, sample, name);
}

/* ---- requests ---- */

static int begin(struct flight *flight)
{
        struct http_target *t = flight->of;
        const struct web_field fields[] = { { "Content-Type", "application/json" },
                                            { "Authorization", t->authorization } };
        const struct web_ask ask = {
                .url = t->url,
                .fields = fields,
                .field_count = *t->authorization ? 2 : 1,
                .body = t->body.at,
                .body_bytes = t->body.count,
                .stall_ms = STALL_MS,
                .on_head = on_head,
                .on_data = on_data,
                .on_end = on_end,
                .arg = flight,
        };

        return web_begin(t->web, &ask, &flight->request);
}

static int send_request(struct target *target, const struct prompt *prompt, struct sample *sample)
{
        struct http_target *t = of(target);
        struct flight *flight = calloc(1, sizeof(*flight));
        int r = flight ? make_body(t, prompt, sample->number) : -ENOMEM;

        if (r) {
                free(flight);
                return r;
        }
        flight->of = t;
        flight->sample = sample;
        flight->next = t->flights;
        if (t->flights)
                t->flights->before = flight;
        t->flights = flight;
        sample->sent = target_now(target);
        r = begin(flight);
        if (r) {
                drop(flight);
                target_end(target, sample, "refused");
        }
        return r == -ENOMEM ? r : 0;
}

/* The timer is exact where the time limit of web_wait() is a millisecond or nothing. */
static int wait_for(struct target *target, double seconds)
{
        struct http_target *t = of(target);
        struct itimerspec at = { .it_value.tv_nsec = 1 };
        struct pollfd timer = { .fd = t->timer, .events = POLLIN };

        if (seconds > 0) {
                at.it_value.tv_sec = (time_t)seconds;
                at.it_value.tv_nsec = (long)((seconds - floor(seconds)) * 1e9) + 1;
                if (at.it_value.tv_nsec > 999999999)
                        at.it_value.tv_nsec = 999999999;
        }
        timerfd_settime(t->timer, 0, &at, NULL);
        web_wait(t->web, -1, &timer, 1);
        return t->result;
}

static void cancel(struct target *target)
{
        struct http_target *t = of(target);

        while (t->flights) {
                struct flight *flight = t->flights;
                struct sample *sample = flight->sample;

                web_cancel(t->web, flight->request);
                sample->output = sample->pieces;
                drop(flight);
                target_end(target, sample, "cancelled");
        }
}

static void close_target(struct target *target)
{
        struct http_target *t = of(target);

        cancel(target);
        web_free(t->web);
        if (t->timer >= 0)
                close(t->timer);
        explicit_bzero(t->authorization, sizeof(t->authorization));
        bytes_deinit(&t->body);
        free(t->ids);
        free(t);
}

static const struct target_kind kind = {
        .send = send_request,
        .wait = wait_for,
        .cancel = cancel,
        .close = close_target,
};

/* ---- opening ---- */

/* The first line of the file. */
static int read_key(struct http_target *t, const char *path, char *why, size_t why_bytes)
{
        char line[480] = "";
        FILE *file = fopen(path, "re");

        if (!file) {
                snprintf(why, why_bytes, "--key-file %s: %s", path, strerror(errno));
                return -errno;
        }
        if (!fgets(line, sizeof(line), file))
                *line = '\0';
        fclose(file);
        line[strcspn(line, "\r\n")] = '\0';
        if (!*line || strlen(line) == sizeof(line) - 1) {
                snprintf(why, why_bytes,
                         "--key-file %s: its first line must be a key of 1 to %zu "
                         "characters",
                         path, sizeof(line) - 2);
                return -EINVAL;
        }
        snprintf(t->authorization, sizeof(t->authorization), "Bearer %s", line);
        explicit_bzero(line, sizeof(line));
        return 0;
}

static int make_ids(struct http_target *t)
{
        uint32_t vocab = t->target.facts.vocab ? t->target.facts.vocab : UNKNOWN_IDS;
        uint32_t first = vocab > 2 * SPECIAL_IDS ? SPECIAL_IDS : vocab / 2;
        uint32_t last = vocab - vocab / 10; /* marks are often the last ones */

        t->ids = calloc(vocab, sizeof(*t->ids));
        if (!t->ids)
                return -ENOMEM;
        for (uint32_t id = first; id < last || id == first; id++)
                t->ids[t->target.encoding.id_count++] = id;
        t->target.encoding.ids = t->ids;
        return 0;
}

/* How many tokens the server makes of a prompt of so many words. */
static int probe(struct http_target *t, uint32_t count, double *ret_tokens, char *why,
                 size_t why_bytes)
{
        struct workload workload = { .input = { .low = count }, .output = { .low = 1 } };
        struct sample sample = { .number = 0 };
        struct prompt prompt;
        int r = workload_prompt(&workload, &t->target.encoding, count, 0, &prompt);

        if (!r)
                r = target_send(&t->target, &prompt, &sample);
        while (!r && t->target.in_flight)
                r = target_wait(&t->target, 1);
        workload_deinit(&workload);
        free(sample.gaps);
        *ret_tokens = sample.has_usage ? sample.input : 0;
        if (!r && *sample.error) {
                snprintf(why, why_bytes, "the first request failed: %.200s (%s)", t->target.why,
                         sample.error);
                return -EREMOTEIO;
        }
        return r;
}

/* Prompts as text: finds out how many words make a token. */
static int measure_words(struct http_target *t, char *why, size_t why_bytes)
{
        double few = 0, many = 0, a_word;
        int r;

        t->target.encoding = (struct encoding){ .words_a_token = 1 };
        r = probe(t, PROBE_WORDS, &few, why, why_bytes);
        if (!r)
                r = probe(t, PROBE_WORDS * PROBE_FACTOR, &many, why, why_bytes);
        if (r)
                return r;
        if (many <= few) {
                snprintf(t->target.facts.note, sizeof(t->target.facts.note), "%s",
                         "it tells no lengths of prompts, so a word was taken for a token");
                return 0;
        }
        a_word = (many - few) / (PROBE_WORDS * (PROBE_FACTOR - 1));
        t->target.encoding.words_a_token = 1 / a_word;
        t->target.encoding.more_tokens = few - PROBE_WORDS * a_word;
        return 0;
}

static int open_target(struct http_target *t, const struct target_options *options,
                       const char *base, char *why, size_t why_bytes)
{
        const struct bench_options *bench = options->bench;
        int r;

        t->chat = bench->api == BENCH_API_CHAT || (bench->api == BENCH_API_AUTO && options->chat);
        r = web_new(&t->web, why, why_bytes);
        if (!r && options->key_file)
                r = read_key(t, options->key_file, why, why_bytes);
        if (!r)
                r = http_facts_read(t->web, base, t->authorization, t->target.model,
                                    options->timeout_s, &t->target.facts, why, why_bytes);
        if (r)
                return r;
        web_join(base, t->chat ? "/chat/completions" : "/completions", t->url, sizeof(t->url));
        if (!options->made_up)
                return 0;
        if (!t->chat &&
            (bench->as == BENCH_AS_IDS || (bench->as == BENCH_AS_AUTO && t->target.facts.vocab)))
                return make_ids(t);
        return measure_words(t, why, why_bytes);
}

int target_open_http(const struct target_options *options, const char *url,
                     struct target **ret_target, char *why, size_t why_bytes)
{
        struct http_target *t = calloc(1, sizeof(*t));
        int r;

        *why = '\0';
        if (!t) {
                snprintf(why, why_bytes, "out of memory");
                return -ENOMEM;
        }
        t->target.kind = &kind;
        t->target.zero = clock_s();
        t->target.model = options->model;
        t->target.set = options->set;
        t->target.temperature = options->temperature;
        t->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
        r = t->timer < 0 ? -errno : open_target(t, options, url, why, why_bytes);
        if (r) {
                if (!*why)
                        snprintf(why, why_bytes, "%s", strerror(-r));
                close_target(&t->target);
                return r;
        }
        *ret_target = &t->target;
        return 0;
}
