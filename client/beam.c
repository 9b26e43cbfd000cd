/*
 * Beam search: finds the continuations that are the likeliest as a whole.
 *
 * It uses only calls of the public API.  A beam is a handle.  To see which tokens may come next,
 * the search generates one token on the handle, with logprobs.  Where a beam branches, its handle
 * is forked.  The daemon shares the blocks of all beams, and computes one row for each beam in
 * each step.
 *
 *      beams         at most `width` of them, the likeliest first, by the sum of their logprobs
 *      candidates    the likeliest next tokens of each beam; of all beams together
 *                    width * (1 + ends), so that `width` can continue even if all others end
 *      ended         the `width` best, by sum / tokens^length_penalty, the end token counted
 *
 * The search is done when `width` beams have ended and no living beam is better than the worst of
 * them.
 */
#include <errno.h>
#include <math.h>
#include <samovar/protocol.h>
#include <stdlib.h>
#include <string.h>

#include "client/options.h"

#define TOKENS_MAX 256u /* if the caller gives no max_tokens */

struct beam {
        uint64_t handle; /* 0: none yet, or no longer its own */
        double sum;
        uint32_t *tokens;   /* (max_tokens) */
        uint32_t likeliest; /* the last token of its handle, after read_candidates() */
};

struct candidate {
        size_t beam;
        uint32_t token;
        double sum;
};

struct search {
        struct smv_client *client;
        struct smv_generate step; /* one token on a handle */
        size_t width, max_tokens, length, candidate_max;
        size_t base; /* the length of the handle where the search began */
        double length_penalty;
        const struct client_model *model;

        struct beam *all, *beams, *next; /* all: (2 * width); beams and next have half each */
        size_t beam_count;
        struct candidate *candidates; /* (width * candidate_max) */
        size_t candidate_count;
        struct smv_beam_result *ended; /* (width + 1), best first */
        size_t ended_count;
        uint32_t *tokens; /* the memory of the tokens of all beams and results */
};

static int search_init(struct search *s)
{
        size_t rows = 3 * s->width + 1, at = 0;

        s->all = calloc(2 * s->width, sizeof(*s->all));
        s->candidates = calloc(s->width * s->candidate_max, sizeof(*s->candidates));
        s->ended = calloc(s->width + 1, sizeof(*s->ended));
        s->tokens = calloc(rows * s->max_tokens, sizeof(*s->tokens));
        if (!s->all || !s->candidates || !s->ended || !s->tokens)
                return client_fail(s->client, -ENOMEM, "out of memory");
        s->beams = s->all;
        s->next = s->all + s->width;
        for (size_t i = 0; i < 2 * s->width; i++)
                s->all[i].tokens = s->tokens + at++ * s->max_tokens;
        for (size_t i = 0; i < s->width + 1; i++)
                s->ended[i].tokens = s->tokens + at++ * s->max_tokens;
        return 0;
}

static void search_deinit(struct search *s)
{
        free(s->all);
        free(s->candidates);
        free(s->ended);
        free(s->tokens);
}

/* ---- one step ---- */

static bool is_end(const struct search *s, uint32_t token)
{
        for (uint32_t i = 0; i < s->model->about.end_token_count; i++)
                if (s->model->ends[i] == token)
                        return true;
        return false;
}

/* Begins a stream for each beam; returns them in the order of the beams. */
static int begin_streams(struct search *s, uint32_t *ret_streams)
{
        int r = 0;

        for (size_t i = 0; !r && i < s->beam_count; i++) {
                s->step.handle = s->beams[i].handle;
                r = smv_generate(s->client, &s->step, &ret_streams[i]);
        }
        return r;
}

static void add_candidates(struct search *s, size_t beam, const struct smv_event *event)
{
        s->beams[beam].likeliest = *event->tokens;
        for (size_t i = 1; i <= event->top_count; i++)
                s->candidates[s->candidate_count++] =
                        (struct candidate){ beam, event->logprobs[i].token,
                                            s->beams[beam].sum +
                                                    (double)event->logprobs[i].logprob };
}

static int by_sum(const void *a, const void *b)
{
        const struct candidate *x = a, *y = b;

        if (x->sum != y->sum)
                return x->sum > y->sum ? -1 : 1;
        return x->beam != y->beam ? (x->beam > y->beam) - (x->beam < y->beam)
                                  : (x->token > y->token) - (x->token < y->token);
}

/*
 * As smv_next() without a timeout.  The streams may wait long for their turn.  So if no event comes
 * in the time that a reply may take, asks the daemon for one: then a daemon that was stopped, or
 * has failed, ends the search.
 */
static int next_event(struct search *s, struct smv_event *ret_event)
{
        const char *json;
        int r;

        do
                r = smv_next(s->client, ret_event, s->client->reply_ms);
        while (!r && !(r = smv_status(s->client, &json)));
        return r;
}

/* Reads events until all streams have ended; sorts the next tokens, the likeliest first. */
static int read_candidates(struct search *s, const uint32_t *streams)
{
        struct smv_event event = { SMV_SIZE(smv_event) };
        size_t ended = 0;

        s->candidate_count = 0;
        while (ended < s->beam_count) {
                size_t beam = 0;
                int r = next_event(s, &event);

                if (r < 0)
                        return r;
                while (beam < s->beam_count && streams[beam] != event.stream)
                        beam++;
                if (event.kind == SMV_EVENT_END && event.reason == SMV_END_ERROR)
                        return client_fail(s->client, -EIO, "a stream failed: %s",
                                           smv_code_text(event.code));
                ended += event.kind == SMV_EVENT_END;
                if (event.kind == SMV_EVENT_TOKENS && event.token_count && event.logprobs)
                        add_candidates(s, beam, &event);
        }
        qsort(s->candidates, s->candidate_count, sizeof(*s->candidates), by_sum);
        if (s->candidate_count > s->candidate_max)
                s->candidate_count = s->candidate_max;
        return 0;
}

static double score_of(const struct search *s, double sum, size_t tokens)
{
        return sum / pow((double)tokens, s->length_penalty);
}

/* Adds a complete beam to the results.  If there are more than width, drops the worst. */
static void add_ended(struct search *s, const struct candidate *candidate, bool end)
{
        struct smv_beam_result one = s->ended[s->width];
        uint32_t *tokens = (uint32_t *)(uintptr_t)one.tokens; /* in s->tokens, so writable */
        size_t at = s->ended_count < s->width ? s->ended_count++ : s->width;

        memcpy(tokens, s->beams[candidate->beam].tokens, s->length * sizeof(*tokens));
        tokens[s->length] = candidate->token;
        one.ended = end;
        one.token_count = s->length + !end;
        one.score = score_of(s, candidate->sum, s->length + 1);
        if (at < s->width)
                s->ended[s->width].tokens = s->ended[at].tokens;
        else if (one.score <= s->ended[--at].score)
                return;
        else
                s->ended[s->width] = s->ended[at];
        for (; at && one.score > s->ended[at - 1].score; at--)
                s->ended[at] = s->ended[at - 1];
        s->ended[at] = one;
}

/*
 * Moves the candidates that end to the results.  The likeliest of the others, at most width, stay
 * at the front of `candidates`.
 */
static void split_ended(struct search *s)
{
        bool last = s->length + 1 == s->max_tokens;
        size_t count = 0;

        for (size_t i = 0; i < s->candidate_count; i++) {
                bool end = is_end(s, s->candidates[i].token);

                if ((end || last) && i < s->width)
                        add_ended(s, &s->candidates[i], end);
                if (!end && !last && count < s->width)
                        s->candidates[count++] = s->candidates[i];
        }
        s->candidate_count = count;
}

/* The handle ends with the token `had`; replaces it by `token`. */
static int replace_last_token(struct search *s, uint64_t handle, uint32_t had, uint32_t token)
{
        int r;

        if (had == token)
                return 0;
        r = smv_handle_truncate(s->client, handle, s->base + s->length);
        return r ? r : smv_handle_append(s->client, handle, &token, 1, NULL);
}

/*
 * Gives handles to the candidates that continue this beam: its own handle, and forks of it.  If no
 * candidate continues it, closes the handle.
 */
static int assign_handles(struct search *s, size_t beam)
{
        struct beam *from = &s->beams[beam];
        uint64_t forks[SMV_BEAM_WIDTH_MAX];
        size_t count = 0, given = 0;
        int r = 0;

        for (size_t i = 0; i < s->candidate_count; i++)
                count += s->candidates[i].beam == beam;
        if (count > 1)
                r = smv_handle_fork(s->client, from->handle, count - 1, forks);
        else if (!count)
                r = smv_handle_close(s->client, from->handle);
        for (size_t i = 0; !r && i < s->candidate_count; i++)
                if (s->candidates[i].beam == beam)
                        s->next[i].handle = given ? forks[given++ - 1] : (given++, from->handle);
        if (!r)
                from->handle = 0;
        return r;
}

static int advance(struct search *s)
{
        struct beam *beams;
        int r = 0;

        for (size_t i = 0; !r && i < s->beam_count; i++)
                r = assign_handles(s, i);
        for (size_t i = 0; !r && i < s->candidate_count; i++) {
                const struct candidate *candidate = &s->candidates[i];
                struct beam *to = &s->next[i], *from = &s->beams[candidate->beam];

                memcpy(to->tokens, from->tokens, s->length * sizeof(*to->tokens));
                to->tokens[s->length] = candidate->token;
                to->sum = candidate->sum;
                r = replace_last_token(s, to->handle, from->likeliest, candidate->token);
        }
        beams = s->beams;
        s->beams = s->next;
        s->next = beams;
        s->beam_count = s->candidate_count;
        s->length++;
        return r;
}

/*
 * True if the likeliest beam, with its present length, is no better than the worst beam that has
 * ended.  With a length penalty its score could still rise, but that is not worth the steps.  The
 * transformers library also stops here.
 */
static bool is_done(const struct search *s)
{
        return s->ended_count == s->width &&
               score_of(s, s->beams[0].sum, s->length) <= s->ended[s->width - 1].score;
}

static int run(struct search *s)
{
        uint32_t streams[SMV_BEAM_WIDTH_MAX];
        int r = 0;

        while (!r && s->beam_count && s->length < s->max_tokens && !(s->length && is_done(s))) {
                r = begin_streams(s, streams);
                if (!r)
                        r = read_candidates(s, streams);
                if (r)
                        return r;
                split_ended(s);
                r = advance(s);
        }
        return r;
}

/* ---- before and after the search ---- */

/*
 * Appends the text of tokens that follow other tokens.  If the daemon decodes them as a whole text,
 * the first blank may be missing.  So ask for the text of the tokens once, and for the text of the
 * tokens repeated twice; the second half of the latter is correct.
 */
static int write_text(struct search *s, const uint32_t *tokens, size_t count, struct bytes *to)
{
        uint32_t *twice = calloc(2 * count + 1, sizeof(*twice));
        size_t once, bytes;
        const char *text;
        int r;

        if (!twice)
                return client_fail(s->client, -ENOMEM, "out of memory");
        memcpy(twice, tokens, count * sizeof(*tokens));
        memcpy(twice + count, tokens, count * sizeof(*tokens));
        r = smv_detokenize(s->client, s->step.model, twice, count, &text, &once);
        if (!r)
                r = smv_detokenize(s->client, s->step.model, twice, 2 * count, &text, &bytes);
        if (!r && bytes < once)
                r = client_fail(s->client, -EPROTO,
                                "the daemon decoded the same tokens to different texts");
        if (!r && bytes_add(to, text + once, bytes - once))
                r = client_fail(s->client, -ENOMEM, "out of memory");
        free(twice);
        return r;
}

/*
 * Copies the results to memory that is valid until the next call: client->beam has the results,
 * then their tokens; client->text has their texts.
 */
static int store_results(struct search *s, size_t count)
{
        struct bytes *texts = &s->client->text, *results = &s->client->beam;
        size_t ids = 0, at = 0;
        int r = 0;

        texts->count = results->count = 0;
        for (size_t i = 0; !r && i < count; i++) {
                s->ended[i].text_bytes = texts->count;
                r = write_text(s, s->ended[i].tokens, s->ended[i].token_count, texts);
                s->ended[i].text_bytes = texts->count - s->ended[i].text_bytes;
                ids += s->ended[i].token_count;
        }
        if (!r)
                r = bytes_reserve(results, count * sizeof(*s->ended) + ids * sizeof(uint32_t));
        if (r)
                return r;
        bytes_add(results, s->ended, count * sizeof(*s->ended));
        for (size_t i = 0; i < count; i++) {
                struct smv_beam_result *one = (struct smv_beam_result *)(void *)results->at + i;

                bytes_add(results, one->tokens, one->token_count * sizeof(uint32_t));
                one->tokens = (const uint32_t *)(const void *)(results->at + results->count) -
                              one->token_count;
                one->text = texts->at + at;
                at += one->text_bytes;
        }
        return 0;
}

/* Also runs after a failure, which it preserves for smv_error(). */
static void close_handles(struct search *s)
{
        struct client_failure failure = s->client->failure;

        for (size_t i = 0; i < 2 * s->width; i++)
                if (s->all[i].handle)
                        smv_handle_close(s->client, s->all[i].handle);
        s->client->failure = failure;
}

static const struct client_model *find_model(const struct smv_client *client, const char *name)
{
        for (size_t i = 0; i < client->model_count; i++)
                if (name ? !strcmp(client->models[i].name, name)
                         : client->models[i].about.is_default)
                        return &client->models[i];
        return NULL;
}

static int prepare(struct search *s, const struct smv_beam *o, struct smv_generate *start)
{
        struct smv_client *client = s->client;
        int r;

        if (!o->start)
                return client_refuse(client, -EINVAL, "start", "start is NULL");
        r = client_begin_generate(client, o->start, start);
        if (r)
                return r;
        if (client->streams.count)
                return client_fail(client, -EBUSY, "other streams of this client are alive");
        if (client->pending_count)
                return client_fail(client, -EBUSY, "replies to other requests are outstanding");
        s->model = find_model(client, start->model);
        if (!s->model)
                return client_refuse(client, -ENOENT, "model", "the daemon serves no such model");
        s->width = o->width ? o->width : 4;
        s->candidate_max = s->width * (1 + s->model->about.end_token_count);
        if (s->width > SMV_BEAM_WIDTH_MAX || s->candidate_max > SMV_LOGPROBS_MAX)
                return client_refuse(client, -EINVAL, "width",
                                     "width is %zu; with this model it may be up to %zu", s->width,
                                     SMV_LOGPROBS_MAX / (1 + s->model->about.end_token_count));
        s->max_tokens = start->max_tokens ? start->max_tokens : TOKENS_MAX;
        if (s->max_tokens > s->model->about.context)
                s->max_tokens = s->model->about.context;
        s->length_penalty = (double)o->length_penalty;
        s->step = (struct smv_generate){ SMV_SIZE(smv_generate), .max_tokens = 1,
                                         .set = SMV_SET_TEMPERATURE,
                                         .logprobs = (uint32_t)s->candidate_max,
                                         .priority = start->priority };
        return search_init(s);
}

/* Makes the first beam: a new handle, whose length becomes `base`. */
static int open_first_beam(struct search *s, const struct smv_generate *start)
{
        uint64_t *handle = &s->beams[0].handle;
        int r;

        if (!start->handle)
                r = smv_handle_open(s->client, start, handle, &s->base);
        else
                r = smv_handle_fork(s->client, start->handle, 1, handle);
        if (!r && start->handle) /* appends nothing, but the reply has the length */
                r = smv_handle_append_text(s->client, *handle, "", 0, &s->base);
        s->beam_count = 1;
        if (!r && s->base < s->model->about.context &&
            s->max_tokens > s->model->about.context - s->base)
                s->max_tokens = s->model->about.context - s->base;
        return r;
}

int smv_beam(struct smv_client *client, const struct smv_beam *options,
             const struct smv_beam_result **ret_results, size_t *ret_count)
{
        struct search s = { .client = client };
        struct smv_generate start;
        struct smv_beam o;
        size_t count;
        int r = client_copy_in(&o, sizeof(o), options);

        if (r)
                return client_refuse_struct(client, r, "smv_beam");
        r = prepare(&s, &o, &start);
        if (!r)
                r = open_first_beam(&s, &start);
        if (!r)
                r = run(&s);
        count = o.count && o.count < s.ended_count ? o.count : s.ended_count;
        if (!r)
                r = store_results(&s, count);
        if (s.all)
                close_handles(&s);
        if (!r) {
                *ret_results = (const struct smv_beam_result *)(const void *)client->beam.at;
                *ret_count = count;
        }
        search_deinit(&s);
        return r;
}
