#include "daemon/edge/fork.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/draw/reasoning-limit.h"
#include "daemon/draw/rules.h"
#include "daemon/edge/admission.h"
#include "daemon/edge/constraints.h"
#include "base/error.h"
#include "daemon/text/parts/argument-types.h"
#include "json/plural.h"

/*
 * `like` may be with the engine: the members that are read here do not change.  The stream has this
 * limit from now on.
 */
static void inherit(struct stream *stream, const struct stream *from, struct reasoning_limit *limit)
{
        struct request *request = &stream->request;
        const struct request *like = &from->request;
        char *at = (char *)(stream + 1);

        request->priority = like->priority;
        request->deadline_ns = like->deadline_ns;
        request->sampling = like->sampling;
        admission_set_rules(request, rules_ref(like->rules), limit);
        request->alone = like->alone;
        request->draft_max = like->draft_max;
        request->mu = 2 * like->sampling.mirostat_tau;
        request->ignore_eos = like->ignore_eos;
        request->parts = like->parts;
        request->parts_calls = like->parts_calls;
        request->argument_types = argument_types_ref(like->argument_types);
        for (uint32_t i = 0; i < like->stop_count; i++)
                at = admission_add_stop(request, at, like->stops[i], like->stop_bytes[i]);
        admission_add_stop_tokens(request, like->stop_tokens, like->stop_token_count);
        request->record_bytes_max = like->record_bytes_max;
        request->end_bytes_max = like->end_bytes_max;
        request->held_bytes_max = like->held_bytes_max;
}

/* Makes a family with this stream if it has none: 0 or -ENOMEM. */
static int found_family(struct stream *stream)
{
        if (stream->family)
                return 0;
        stream->family = calloc(1, sizeof(*stream->family));
        if (!stream->family)
                return error_raise(-ENOMEM);
        stream->family->members = 1;
        stream->family->next_sample_index = (uint64_t)stream->request.sampling.sample_index + 1;
        return 0;
}

static void take_sample_indices(struct family *family, uint64_t first, uint32_t count)
{
        if (family->next_sample_index < first + count)
                family->next_sample_index = first + count;
}

static int check_sample_indices(uint64_t first, uint32_t count, uint32_t id,
                                struct wire_problem *ret_problem)
{
        if (first + count - 1 <= UINT32_MAX)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_VALUE, id, "sample_index",
                           "the first of %u sample indices would be %" PRIu64
                           "; the last may be %u",
                           count, first, UINT32_MAX);
}

static int copy_limit(const struct request *like, struct reasoning_limit **ret_limit)
{
        const struct reasoning_limit *limit = like->reasoning_limit;

        return limit ? error_pass(reasoning_limit_like(limit, ret_limit)) : 0;
}

/*
 * Makes `count` streams with the parameters of `like`, with ids from `id` on and sample
 * indices from `sample_index` on: all or none.
 */
static int make_alike(struct admission *admission, const struct stream *like, uint32_t id,
                      uint32_t sample_index, uint32_t count, struct request **ret_first,
                      struct wire_problem *ret_problem)
{
        size_t rules_bytes = admission_rules_bytes(&like->request, 0);
        struct request *first = NULL, **end = &first;

        for (uint32_t i = 0; i < count; i++) {
                struct reasoning_limit *limit = NULL;
                struct stream *stream = NULL;
                int r = copy_limit(&like->request, &limit);

                if (!r)
                        r = admission_make(
                                admission, like->request.uid, like->request.model, id + i,
                                admission_own_bytes(like),
                                rules_bytes + argument_types_bytes(like->request.argument_types),
                                &stream, ret_problem);
                if (r) {
                        reasoning_limit_free(limit);
                        admission_forget_all(admission, stream_of(first));
                        return error_pass(r);
                }
                inherit(stream, like, limit);
                stream->request.sampling.sample_index = sample_index + i;
                stream->family = like->family;
                like->family->members++;
                *end = &stream->request;
                end = &stream->request.sibling;
                r = constraints_share(stream, like, ret_problem);
                if (r) {
                        admission_forget_all(admission, stream_of(first));
                        return error_pass(r);
                }
        }
        *ret_first = first;
        return 0;
}

int fork_siblings(struct admission *admission, struct stream *stream,
                  const struct wire_request *asked, struct wire_problem *ret_problem)
{
        uint32_t more = asked->n ? asked->n - 1 : 0;
        int r;

        if (!more)
                return 0;
        r = check_sample_indices(asked->sample_index, more + 1, asked->id, ret_problem);
        if (!r)
                r = found_family(stream);
        if (!r)
                r = make_alike(admission, stream, asked->id + 1, asked->sample_index + 1, more,
                               &stream->request.sibling, ret_problem);
        /* the client knows only the id of the request, so not that of a sibling */
        ret_problem->id = asked->id;
        if (r)
                return error_pass(r);
        take_sample_indices(stream->family, asked->sample_index, more + 1);
        for (struct stream *s = stream_sibling(stream); s; s = stream_sibling(s)) {
                s->request.max_tokens = stream->request.max_tokens;
                s->clamp = stream->clamp;
                s->makes_none = stream->makes_none;
                s->request.progress = stream->request.progress;
                s->request.prompt_logprobs = stream->request.prompt_logprobs;
                s->request.score_bytes_max = stream->request.score_bytes_max;
        }
        return 0;
}

/*
 * The tokens that a fork may have: at most as many as its parent may have when it begins, and its
 * own.
 */
static int measure_fork(const struct admission *admission, const struct request *parent,
                        const struct wire_request *asked, uint32_t *ret_tokens_max,
                        struct wire_problem *ret_problem)
{
        uint32_t context = admission_context(admission, parent->model), most = parent->tokens_max;
        char why[ADMISSION_WHY_BYTES];
        enum smv_code code;

        *ret_tokens_max = most;
        if (!wire_has(asked, WIRE_F_MAX_TOKENS))
                /* It has the limit of its parent. */
                return 0;
        /* The last token of the parent ends it, so no fork begins behind it. */
        most--;
        if (asked->max_tokens > context - most)
                return wire_refuse(ret_problem, SMV_TOO_LONG, asked->id, "max_tokens",
                                   "the stream may have %u token%s by then and max_tokens is %u; "
                                   "together they may be %u",
                                   most, plural(most), asked->max_tokens, context);
        code = admission_fits(admission, most, asked->max_tokens, why);
        if (code)
                return wire_refuse(ret_problem, code, asked->id, "max_tokens",
                                   "the stream may have %u token%s by then and %u may follow; %s",
                                   most, plural(most), asked->max_tokens, why);
        *ret_tokens_max = most + asked->max_tokens;
        return 0;
}

/* Mirostat makes the only cut, as in a generate. */
static int check_cuts(const struct request *parent, const struct wire_request *asked,
                      struct wire_problem *ret_problem)
{
        const char *field = asked->top_k                                        ? "top_k"
                            : wire_has(asked, WIRE_F_TOP_P) && asked->top_p < 1 ? "top_p"
                            : asked->min_p > 0                                  ? "min_p"
                                                                                : NULL;

        if (parent->sampling.mirostat_tau <= 0 || !field)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_FIELD, asked->id, field,
                           "%s is given for a fork of a stream with mirostat_tau, which makes the "
                           "only cut",
                           field);
}

static void fill_fork(struct request *request, const struct wire_request *asked)
{
        struct sampling *sampling = &request->sampling;

        if (wire_has(asked, WIRE_F_PRIORITY))
                request->priority = admission_class(asked);
        if (wire_has(asked, WIRE_F_DEADLINE_MS))
                request->deadline_ns = admission_deadline(asked);
        if (wire_has(asked, WIRE_F_TEMPERATURE))
                sampling->temperature = asked->temperature;
        if (wire_has(asked, WIRE_F_TOP_P))
                sampling->top_p = asked->top_p;
        if (wire_has(asked, WIRE_F_MIN_P))
                sampling->min_p = asked->min_p;
        if (wire_has(asked, WIRE_F_TOP_K))
                sampling->top_k = asked->top_k;
        if (wire_has(asked, WIRE_F_SEED))
                sampling->seed = asked->seed;
        request->max_tokens = asked->max_tokens;
}

static int prepare_fork(struct admission *admission, struct stream *stream, struct request *parent,
                        const struct wire_request *asked, uint32_t tokens_max,
                        struct wire_problem *ret_problem)
{
        size_t room = (size_t)tokens_max * sizeof(uint32_t);
        struct request *request = &stream->request;
        int r;

        fill_fork(request, asked);
        request->parent = parent;
        request->tokens_max = tokens_max;
        r = admission_recharge(admission, stream,
                               admission_own_bytes(stream) + room +
                                       admission_rules_bytes(request, tokens_max),
                               ret_problem);
        if (r)
                return error_pass(r);
        request->sequence.tokens = malloc(room);
        if (!request->sequence.tokens)
                return error_raise(-ENOMEM);
        /*
         * Copies the part of the parent's tokens that does not change; the engine copies the rest.
         */
        request->submitted_count = parent->submitted_count;
        memcpy(request->sequence.tokens, parent->sequence.tokens,
               parent->submitted_count * sizeof(uint32_t));
        return error_pass(admission_begin_history(request));
}

int fork_stream(struct admission *admission, struct stream *parent,
                const struct wire_request *asked, struct stream **ret_first,
                struct wire_problem *ret_problem)
{
        struct request *first = NULL;
        uint32_t tokens_max;
        uint64_t sample_index;
        int r;

        r = measure_fork(admission, &parent->request, asked, &tokens_max, ret_problem);
        if (!r)
                r = check_cuts(&parent->request, asked, ret_problem);
        if (!r)
                r = found_family(parent);
        if (r)
                return error_pass(r);
        sample_index = wire_has(asked, WIRE_F_SAMPLE_INDEX) ? asked->sample_index
                                                            : parent->family->next_sample_index;
        r = check_sample_indices(sample_index, asked->count, asked->id, ret_problem);
        if (!r)
                r = make_alike(admission, parent, asked->id, (uint32_t)sample_index, asked->count,
                               &first, ret_problem);
        for (struct stream *s = stream_of(first); !r && s; s = stream_sibling(s))
                r = prepare_fork(admission, s, &parent->request, asked, tokens_max, ret_problem);
        if (r) {
                /* the client knows only this id, so not that of another fork */
                ret_problem->id = asked->id;
                admission_forget_all(admission, stream_of(first));
                return error_pass(r);
        }
        take_sample_indices(parent->family, sample_index, asked->count);
        *ret_first = stream_of(first);
        return 0;
}
