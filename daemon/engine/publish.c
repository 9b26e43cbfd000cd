/*
 * Records of one request: PROGRESS and PROMPT_LOGPROBS, if it asked for them; for each token
 * TOKENS, after LOGPROBS if it asked for them; then the text that the detok still holds; then END.
 * The text of a token that ends a stream (an end token, a stop id) is not shown; its id is.
 *
 * If the request asked for parts, PARTS stands before each TOKENS, and before its LOGPROBS.  A
 * token may release much text that was held back.  Then more TOKENS follow, without ids, so that no
 * record is long.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/engine/drafts.h"
#include "daemon/engine/publish.h"
#include "daemon/engine/sampler.h"
#include "daemon/engine/waker.h"
#include "base/error.h"
#include "daemon/draw/asking.h"
#include "daemon/draw/reasoning-limit.h"
#include "daemon/model/served.h"
#include "daemon/text/detok.h"
#include "daemon/text/parts.h"
#include "json/utf8.h"

/* A stream's last text, written before its END, is the largest text that it writes at once. */
#define TEXT_MAX(piece_max) (DETOK_HELD_MAX + (piece_max))

/* With parts, a record has at most so many bytes of text, and so many parts. */
#define TEXT_BYTES_MAX 960u
#define PARTS_MAX      60u

struct stream {
        struct detok detok;
        uint32_t sequence;
        uint32_t output_count;
        uint32_t prefilled;             /* of the last PROGRESS */
        uint8_t stopped_by, stop_index; /* see ring.h */
};

struct publish {
        struct mailbox *waker;
        struct waker *wake_inline;
        struct stream *streams; /* indexed by request number */
        struct parts *parts;    /* the same; only those of requests that asked for parts are used */
        struct channel **dirty; /* channels written to since the last flush */
        uint32_t stream_count, dirty_count, dirty_max;
        char *text; /* space for the text that one token may release */
        size_t text_max;
        struct parts_out divided; /* space for the parts of this text */
        size_t divided_max, parts_max;
};

/* The most bytes that a token brings to be divided, with escapes. */
static size_t undivided_max(const struct dialect *dialect, size_t held_back)
{
        return dialect->piece_max + JSON_SCAN_ESCAPE_BYTES * held_back;
}

static int make_space(struct publish *publish, const struct publish_conf *conf)
{
        size_t bytes = 0;

        publish->streams = calloc(conf->requests_max, sizeof(*publish->streams));
        publish->dirty = calloc(conf->channels, sizeof(struct channel *));
        publish->text = malloc(publish->text_max);
        if (!publish->streams || !publish->dirty || !publish->text)
                return error_raise(-ENOMEM);
        if (!conf->dialect)
                return 0;
        bytes = undivided_max(conf->dialect, DETOK_HELD_MAX);
        publish->divided_max = parts_bytes_max(bytes);
        publish->parts_max = parts_count_max(conf->dialect, bytes);
        publish->parts = calloc(conf->requests_max, sizeof(*publish->parts));
        publish->divided.text = malloc(publish->divided_max);
        publish->divided.parts = calloc(publish->parts_max, sizeof(*publish->divided.parts));
        if (!publish->parts || !publish->divided.text || !publish->divided.parts)
                return error_raise(-ENOMEM);
        return 0;
}

int publish_new(const struct publish_conf *conf, struct publish **ret_publish)
{
        struct publish *publish = calloc(1, sizeof(*publish));
        int r;

        if (!publish)
                return error_raise(-ENOMEM);
        publish->waker = conf->waker;
        publish->wake_inline = conf->wake_inline;
        publish->stream_count = conf->requests_max;
        publish->dirty_max = conf->channels;
        publish->text_max = TEXT_MAX(conf->piece_max);
        r = make_space(publish, conf);
        if (r) {
                publish_free(publish);
                return error_pass(r);
        }
        *ret_publish = publish;
        return 0;
}

struct publish *publish_free(struct publish *publish)
{
        if (publish) {
                free(publish->streams);
                free(publish->dirty);
                free(publish->text);
                free(publish->parts);
                free(publish->divided.text);
                free(publish->divided.parts);
                free(publish);
        }
        return NULL;
}

static size_t logprobs_bytes(uint32_t count)
{
        return sizeof(struct smv_record_logprobs) + count * sizeof(struct smv_record_logprob);
}

size_t publish_record_bytes_max(size_t piece_max, size_t stop_bytes_max, uint32_t logprobs)
{
        size_t held_back = stop_bytes_max ? stop_bytes_max - 1 + 3 : 3;

        return ring_record_bytes(sizeof(struct smv_record_tokens) + 4 + held_back + piece_max) +
               (logprobs ? ring_record_bytes(logprobs_bytes(logprobs)) : 0);
}

size_t publish_end_bytes_max(size_t stop_bytes_max)
{
        size_t held_back = stop_bytes_max ? stop_bytes_max - 1 + 3 : 3;

        return ring_record_bytes(sizeof(struct smv_record_tokens) + held_back) +
               ring_record_bytes(sizeof(struct smv_record_end));
}

size_t publish_score_bytes_max(uint32_t logprobs)
{
        return ring_record_bytes(logprobs_bytes(logprobs));
}

static size_t row_record_bytes(uint32_t entries)
{
        return sizeof(struct smv_record_row) + entries * sizeof(struct smv_record_logprob);
}

size_t publish_row_bytes_max(uint32_t entries)
{
        return entries ? ring_record_bytes(row_record_bytes(entries)) : 0;
}

size_t publish_ask_bytes_max(void)
{
        return ring_record_bytes(sizeof(struct smv_record_ask));
}

/* Upper bound of the records of so many bytes of text in so many parts. */
static size_t divided_bytes(size_t bytes, size_t parts)
{
        /* A record ends before its last character is whole, or before a name. */
        size_t least = TEXT_BYTES_MAX - PARTS_NAME_MAX;
        size_t records = 1 + bytes / least + parts / PARTS_MAX;
        size_t heads = ring_record_bytes(sizeof(struct smv_record_tokens) + sizeof(uint32_t)) +
                       ring_record_bytes(sizeof(struct smv_record_parts));

        /* A part that goes on in another record has an entry in both. */
        return bytes + (parts + records) * sizeof(struct smv_record_part) + records * heads;
}

size_t publish_parts_bytes_max(const struct dialect *dialect, size_t stop_bytes_max,
                               size_t *ret_held)
{
        size_t held_back = stop_bytes_max ? stop_bytes_max - 1 + 3 : 3;
        size_t bytes = undivided_max(dialect, held_back);
        size_t count = parts_count_max(dialect, bytes);
        size_t all = divided_bytes(parts_bytes_max(bytes), count);

        *ret_held = all - divided_bytes(bytes + MARK_BYTES_MAX, count);
        return all;
}

static struct stream *stream_of(struct publish *publish, const struct request *request)
{
        assert(request->number < publish->stream_count);
        return &publish->streams[request->number];
}

void publish_begin(struct publish *publish, const struct request *request, bool control_text)
{
        struct stream *stream = stream_of(publish, request);

        stream->sequence = 0;
        stream->output_count = 0;
        stream->prefilled = 0;
        stream->stopped_by = SMV_STOPPED_BY_NOTHING;
        stream->stop_index = 0;
        request->channel->ends_bytes += request->end_bytes_max;
        detok_begin(&stream->detok, request->model->tokenizer, request->stops, request->stop_bytes,
                    request->stop_count, control_text);
        if (request->parts)
                parts_begin(&publish->parts[request->number], request->model->dialect,
                            request->argument_types, request->parts_calls,
                            request->parts_reasoning);
}

void publish_fork(struct publish *publish, const struct request *request,
                  const struct request *parent)
{
        const struct detok *from = &stream_of(publish, parent)->detok;

        publish_begin(publish, request, from->control_text);
        detok_follow(&stream_of(publish, request)->detok, from);
        if (request->parts)
                parts_follow(&publish->parts[request->number], &publish->parts[parent->number],
                             request->argument_types);
}

/* Before a record there may be a PAD that is shorter than it; so much counts as not free. */
static int writer_free_bytes(struct channel *channel, uint64_t *ret_bytes)
{
        struct ring_writer *writer = &channel->writer;
        uint64_t longest = ring_record_bytes(row_record_bytes(1 + SMV_ROW_TOP_MAX));

        if (longest < writer->data_bytes / 64)
                longest = writer->data_bytes / 64;
        return ring_free_bytes(writer, longest, ret_bytes);
}

int publish_free_bytes(struct channel *channel, uint64_t *ret_bytes)
{
        uint64_t for_ends = channel->writer.data_bytes / 2, free_bytes;
        int r;

        r = writer_free_bytes(channel, &free_bytes);
        if (r)
                return r;
        if (for_ends > channel->ends_bytes)
                for_ends = channel->ends_bytes;
        *ret_bytes = free_bytes > for_ends ? free_bytes - for_ends : 0;
        return 0;
}

static void mark(struct publish *publish, struct channel *channel)
{
        if (channel->dirty)
                return;
        assert(publish->dirty_count < publish->dirty_max);
        channel->dirty = true;
        publish->dirty[publish->dirty_count++] = channel;
}

/* Returns NULL if nothing can be written: the reader's head has just become impossible. */
static void *put(struct publish *publish, const struct request *request, uint8_t type,
                 uint8_t flags, size_t bytes)
{
        struct channel *channel = request->channel;
        struct stream *stream = stream_of(publish, request);
        void *payload;
        int r;

        r = ring_put(&channel->writer, type, flags, request->stream, stream->sequence++, bytes,
                     &payload);
        assert(r != RING_E_FULL); /* space was reserved for it */
        if (r)
                return NULL;

        mark(publish, channel);
        return payload;
}

static void put_tokens(struct publish *publish, const struct request *request,
                       const uint32_t *tokens, uint16_t count, uint32_t position, const char *text,
                       size_t text_bytes)
{
        struct smv_record_tokens head = { .position = position,
                                          .token_count = count,
                                          .text_bytes = (uint16_t)text_bytes };
        uint8_t flags = utf8_valid(text, text_bytes) == text_bytes ? 0 : SMV_RECORD_NOT_UTF8;
        size_t ids = count * sizeof(*tokens);
        char *to = put(publish, request, SMV_RECORD_TOKENS, flags, sizeof(head) + ids + text_bytes);

        if (!to)
                return;
        memcpy(to, &head, sizeof(head));
        if (ids)
                memcpy(to + sizeof(head), tokens, ids);
        if (text_bytes)
                memcpy(to + sizeof(head) + ids, text, text_bytes);
}

static void put_logprobs(struct publish *publish, const struct request *request, uint8_t type,
                         const struct logprob *logprobs, uint32_t count, uint32_t position)
{
        struct smv_record_logprobs head = { .position = position,
                                            .token_count = 1,
                                            .top_count = (uint16_t)(count - 1) };
        char *to = put(publish, request, type, 0, logprobs_bytes(count));

        _Static_assert(sizeof(*logprobs) == sizeof(struct smv_record_logprob), "entries are alike");
        if (!to)
                return;
        memcpy(to, &head, sizeof(head));
        memcpy(to + sizeof(head), logprobs, count * sizeof(*logprobs));
}

/* ---- parts ---- */

/* How much of a text may stand in a record with this space: all, or whole characters. */
static size_t cut_text(const char *text, size_t bytes, size_t space, bool divisible)
{
        if (bytes <= space)
                return bytes;
        if (!divisible)
                return 0;
        while (space && ((uint8_t)text[space] & 0xC0) == 0x80)
                space--;
        return space;
}

/*
 * Writes PARTS for as many of the parts as a record may have, the first of them without its first
 * *at bytes.  Returns how many of the parts it has whole; *ret_bytes is the text of this record.
 */
static size_t put_parts(struct publish *publish, const struct request *request, size_t first,
                        size_t *at, size_t *ret_bytes)
{
        const struct parts_out *divided = &publish->divided;
        const char *text = divided->text + divided->bytes - *ret_bytes;
        struct smv_record_part parts[PARTS_MAX];
        struct smv_record_parts head = { 0 };
        size_t bytes = 0, whole = 0;
        char *to;

        while (head.part_count < PARTS_MAX && first + whole < divided->count) {
                const struct smv_record_part *part = &divided->parts[first + whole];
                size_t left = part->bytes - *at;
                size_t take = cut_text(text + bytes, left, TEXT_BYTES_MAX - bytes,
                                       part->kind != SMV_PART_CALL);

                if (take || !left) {
                        parts[head.part_count] = *part;
                        parts[head.part_count++].bytes = (uint32_t)take;
                }
                bytes += take;
                *at = take == left ? 0 : *at + take;
                if (take < left)
                        break;
                whole++;
        }
        *ret_bytes = bytes;
        to = put(publish, request, SMV_RECORD_PARTS, 0,
                 sizeof(head) + head.part_count * sizeof(*parts));
        if (to) {
                memcpy(to, &head, sizeof(head));
                memcpy(to + sizeof(head), parts, head.part_count * sizeof(*parts));
        }
        return whole;
}

/* Writes the text and its parts, with the token if there is one. */
static void put_divided(struct publish *publish, const struct request *request,
                        const uint32_t *token, const struct logprob *logprobs, uint32_t position)
{
        const struct parts_out *divided = &publish->divided;
        size_t done = 0, part = 0, at = 0;
        uint16_t count = token ? 1 : 0;

        do {
                size_t bytes = divided->bytes - done;

                part += put_parts(publish, request, part, &at, &bytes);
                if (count && request->sampling.logprobs)
                        put_logprobs(publish, request, SMV_RECORD_LOGPROBS, logprobs,
                                     request->sampling.logprobs, position);
                put_tokens(publish, request, token, count, position, divided->text + done, bytes);
                done += bytes;
                position += count;
                count = 0;
        } while (part < divided->count);
        assert(done == divided->bytes);
}

static struct parts *parts_of(struct publish *publish, const struct request *request)
{
        publish->divided.bytes = publish->divided.count = 0;
        return &publish->parts[request->number];
}

/* Divides the text in publish->text, and what comes behind it. */
static void divide(struct publish *publish, const struct request *request, size_t bytes)
{
        struct parts *parts = parts_of(publish, request);

        parts_feed(parts, publish->text, bytes, &publish->divided);
        parts_count(parts);
}

/* No text crosses a control token that is a mark, so the detok holds nothing back before it. */
static void divide_at_mark(struct publish *publish, const struct request *request,
                           enum dialect_mark mark)
{
        size_t bytes = detok_flush(&stream_of(publish, request)->detok, publish->text);
        struct parts *parts = parts_of(publish, request);

        parts_feed(parts, publish->text, bytes, &publish->divided);
        parts_mark(parts, mark, &publish->divided);
        parts_count(parts);
}

/* The END follows. */
static void divide_end(struct publish *publish, const struct request *request, size_t bytes)
{
        struct parts *parts = parts_of(publish, request);

        parts_feed(parts, publish->text, bytes, &publish->divided);
        parts_end(parts, &publish->divided);
}

/* ---- tokens ---- */

static void stop(struct stream *stream, enum smv_stopped_by by, uint32_t index)
{
        assert(index < SMV_STOPS_MAX);
        stream->stopped_by = (uint8_t)by;
        stream->stop_index = (uint8_t)index;
}

/* Prepares the text of a token, or its parts.  Returns STOP if it completed a stop string. */
static enum sched_verdict show(struct publish *publish, const struct request *request,
                               uint32_t token, size_t *ret_bytes)
{
        struct stream *stream = stream_of(publish, request);
        enum dialect_mark mark =
                request->parts ? dialect_mark(request->model->dialect, token) : MARK_N;
        int r = 0;

        if (mark != MARK_N)
                divide_at_mark(publish, request, mark);
        else
                r = detok_feed(&stream->detok, token, publish->text, ret_bytes);
        if (request->parts && mark == MARK_N)
                divide(publish, request, *ret_bytes);
        if (r != DETOK_E_STOP)
                return SCHED_CONTINUE;
        stop(stream, SMV_STOPPED_BY_STRING, stream->detok.stop);
        return SCHED_STOP;
}

enum sched_verdict publish_token(struct publish *publish, const struct request *request,
                                 uint32_t token, const struct logprob *logprobs, uint32_t position,
                                 enum sched_verdict verdict)
{
        struct stream *stream = stream_of(publish, request);
        size_t bytes = 0;

        if (sched_has_no_token(verdict) || !request->max_tokens)
                return verdict;
        stream->output_count++;
        if (verdict == SCHED_STOP)
                stop(stream, SMV_STOPPED_BY_TOKEN, sampler_stop_token(request, token));
        publish->divided.bytes = publish->divided.count = 0;
        if (verdict == SCHED_CONTINUE)
                verdict = show(publish, request, token, &bytes);
        assert(bytes <= publish->text_max);

        if (request->channel->shut)
                return verdict;
        if (request->parts) {
                put_divided(publish, request, &token, logprobs, position);
                return verdict;
        }
        if (request->sampling.logprobs)
                put_logprobs(publish, request, SMV_RECORD_LOGPROBS, logprobs,
                             request->sampling.logprobs, position);
        put_tokens(publish, request, &token, 1, position, publish->text, bytes);
        return verdict;
}

void publish_row(struct publish *publish, const struct request *request,
                 const struct logprob *entries, float log_sum, uint32_t position)
{
        uint32_t count = request->sampling.row_entries;
        struct smv_record_row head = {
                .position = position,
                .top_count = (uint16_t)(count - 1),
                .is_whole = request->asking && request->asking->whole_row,
        };
        char *to;

        assert(count);
        if (request->channel->shut)
                return;
        to = put(publish, request, SMV_RECORD_ROW, 0, row_record_bytes(count));
        if (!to)
                return;
        _Static_assert(sizeof(log_sum) == sizeof(head.log_sum), "the bits of a float");
        memcpy(&head.log_sum, &log_sum, sizeof(log_sum));
        memcpy(to, &head, sizeof(head));
        memcpy(to + sizeof(head), entries, count * sizeof(*entries));
}

void publish_ask(struct publish *publish, const struct request *request, uint32_t position)
{
        const struct smv_record_ask ask = { .position = position, .kind = request->asking->kind };
        void *to;

        if (request->channel->shut)
                return;
        to = put(publish, request, SMV_RECORD_ASK, 0, sizeof(ask));
        if (!to)
                return;
        memcpy(to, &ask, sizeof(ask));
        request->channel->end = request->channel->writer.tail; /* the client must wake up */
}

void publish_score(struct publish *publish, const struct request *request,
                   const struct logprob *logprobs, uint32_t position)
{
        if (!request->channel->shut)
                put_logprobs(publish, request, SMV_RECORD_PROMPT_LOGPROBS, logprobs,
                             request->prompt_logprobs, position);
}

void publish_progress(struct publish *publish, const struct request *request, uint32_t prefilled,
                      uint64_t pending_bytes)
{
        const struct smv_record_progress progress = {
                .prompt_tokens = request->prompt_count,
                .cached_tokens = request->sequence.cached_count,
                .prefilled = prefilled,
        };
        struct stream *stream = stream_of(publish, request);
        struct channel *channel = request->channel;
        uint64_t least = channel->writer.data_bytes / 4 + ring_record_bytes(sizeof(progress));
        uint64_t free_bytes;
        void *to;

        if (prefilled <= stream->prefilled || channel->shut ||
            publish_free_bytes(channel, &free_bytes) || free_bytes < least + pending_bytes)
                return;
        to = put(publish, request, SMV_RECORD_PROGRESS, 0, sizeof(progress));
        if (!to)
                return;
        memcpy(to, &progress, sizeof(progress));
        stream->prefilled = prefilled;
}

/* Time between two moments of a request; 0 if it ended before one of them. */
static uint64_t between(uint64_t from, uint64_t to)
{
        return from && to > from ? to - from : 0;
}

static void tell_depths(const struct request *request, struct smv_record_end *ret_end)
{
        memcpy(ret_end->drafted_by_depth, request->drafted_by_depth,
               sizeof(ret_end->drafted_by_depth));
        memcpy(ret_end->drafts_right_by_depth, request->drafts_right_by_depth,
               sizeof(ret_end->drafts_right_by_depth));
}

static struct smv_record_end make_end(const struct publish *publish, const struct request *request,
                                      enum smv_reason reason, enum smv_code code)
{
        static const struct parts undivided;
        const struct parts *parts = request->parts ? &publish->parts[request->number] : &undivided;
        const struct stream *stream = &publish->streams[request->number];
        const struct sequence *sequence = &request->sequence;
        uint32_t at = sequence->diverged_at;
        bool stopped = reason == SMV_END_STOP;
        bool limited = request->reasoning_limit &&
                       reasoning_limit_is_used(request->reasoning_limit, sequence->tokens,
                                               sequence->token_count);

        return (struct smv_record_end){
                .reason = (uint8_t)reason,
                .stopped_by = stopped ? stream->stopped_by : SMV_STOPPED_BY_NOTHING,
                .stop_index = stopped ? stream->stop_index : 0,
                .parts_flags = (uint8_t)(parts->flags | (limited ? SMV_PARTS_LIMIT : 0)),
                .code = code,
                .prompt_tokens = request->prompt_count,
                .cached_tokens = sequence->cached_count,
                .output_tokens = stream->output_count,
                .diverged_at = at,
                .queued_ns = between(request->accepted_ns, request->first_row_ns),
                .prefill_ns = between(request->first_row_ns, request->first_token_ns),
                .decode_ns = between(request->first_token_ns, request->last_token_ns),
                .diverged_cached_token = at ? sequence->diverged_cached_token : 0,
                .diverged_prompt_token = at ? sequence->tokens[at] : 0,
                .preemptions = request->preemptions,
                .blocks_lost = request->blocks_lost,
                .recomputed = request->recomputed,
                .restored = request->restored,
                .reasoning_tokens = parts->reasoning_tokens,
                .calls = parts->call_count,
                .asked = request->asking ? request->asking->asked : 0,
                .late = request->asking ? request->asking->late : 0,
                .drafted = request->drafted,
                .drafts_right = request->drafts_right,
                .predicted = request->predicted,
                .predictions_right = request->predictions_right,
                .draft_steps = request->draft_steps,
                .no_drafts = drafts_missing(request),
        };
}

static void write_end(struct publish *publish, const struct request *request,
                      enum smv_reason reason, enum smv_code code)
{
        struct stream *stream = stream_of(publish, request);
        size_t bytes = detok_flush(&stream->detok, publish->text);
        struct channel *channel = request->channel;
        struct smv_record_end end;
        void *to;

        if (request->parts)
                divide_end(publish, request, bytes);
        end = make_end(publish, request, reason, code);
        tell_depths(request, &end);
        if (request->parts && publish->divided.count)
                put_divided(publish, request, NULL, NULL, request->sequence.token_count);
        if (!request->parts && bytes)
                put_tokens(publish, request, NULL, 0, request->sequence.token_count, publish->text,
                           bytes);
        to = put(publish, request, SMV_RECORD_END, 0, sizeof(end));
        if (!to)
                return;
        memcpy(to, &end, sizeof(end));
        channel->end = channel->writer.tail;
}

int publish_end(struct publish *publish, const struct request *request, enum smv_reason reason,
                enum smv_code code, uint64_t pending_bytes)
{
        struct channel *channel = request->channel;
        uint64_t free_bytes;

        if (!channel->shut && !writer_free_bytes(channel, &free_bytes)) {
                if (free_bytes < pending_bytes + request->end_bytes_max)
                        return PUBLISH_E_LATER;
                write_end(publish, request, reason, code);
        }
        assert(channel->ends_bytes >= request->end_bytes_max);
        channel->ends_bytes -= request->end_bytes_max;
        return 0;
}

void publish_call_loop(struct publish *publish, struct channel *channel)
{
        channel->call = true;
        mark(publish, channel);
}

/*
 * True if the waker must hear about this channel.  `calling` is raised only here.  The waker may
 * still have the previous step's WAKE to handle, and would take an earlier `calling` as part of
 * that one.
 */
static bool needs_waker(struct channel *channel)
{
        if (channel->bell == CHANNEL_NONE && !channel->call)
                return false;
        if (channel->call)
                channel_raise(&channel->calling);
        channel->call = false;
        return true;
}

static bool post_wake(struct publish *publish, struct channel *channel)
{
        if (!channel_raise(&channel->waking))
                return false;
        mailbox_put(publish->waker, &(struct mail){ .kind = MAIL_WAKE, .what = channel });
        return true;
}

static void wake_readers(struct publish *publish)
{
        struct waker *wake_inline = publish->wake_inline;
        bool posted = false;

        if (publish->dirty_count == 1 && wake_inline &&
            waker_wake_inline(wake_inline, publish->dirty[0]))
                return;
        for (uint32_t i = 0; i < publish->dirty_count; i++)
                posted |= post_wake(publish, publish->dirty[i]);
        if (posted && wake_inline)
                waker_avoid_cpu(wake_inline);
        if (posted)
                mailbox_ring(publish->waker);
}

/*
 * All records become visible before any reader is woken, so that the first one does not delay the
 * others.  The waker is woken once for all of them.
 */
void publish_flush(struct publish *publish)
{
        uint32_t count = 0;

        for (uint32_t i = 0; i < publish->dirty_count; i++) {
                struct channel *channel = publish->dirty[i];

                channel->dirty = false;
                ring_publish(&channel->writer);
                channel_show(channel);
        }
        for (uint32_t i = 0; i < publish->dirty_count; i++)
                if (needs_waker(publish->dirty[i]))
                        publish->dirty[count++] = publish->dirty[i];
        publish->dirty_count = count;
        wake_readers(publish);
        publish->dirty_count = 0;
}
