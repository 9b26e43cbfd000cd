#include "daemon/edge/admission.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/free-numbers.h"
#include "daemon/draw/asking.h"
#include "daemon/draft/prediction.h"
#include "daemon/draw/history.h"
#include "daemon/draw/reasoning-limit.h"
#include "daemon/edge/ask-slots.h"
#include "daemon/edge/asked-rules.h"
#include "daemon/edge/constraints.h"
#include "daemon/edge/quota.h"
#include "daemon/edge/values.h"
#include "base/error.h"
#include "base/sys.h"
#include "daemon/text/parts/argument-types.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/tokenizer.h"
#include "json/plural.h"

struct admission {
        struct admission_conf conf;
        struct quota *quota;
        /* Together at most requests_max: the mailboxes hold that many.  The quota sees to it. */
        uint32_t alive, jobs;
        struct free_numbers numbers; /* of requests */
        uint32_t memory[];           /* of `numbers` */
};

int admission_new(const struct admission_conf *conf, struct quota *quota,
                  struct admission **ret_admission)
{
        struct admission *admission;

        admission = calloc(1, sizeof(*admission) + conf->requests_max * sizeof(uint32_t));
        if (!admission)
                return error_raise(-ENOMEM);
        admission->conf = *conf;
        admission->quota = quota;
        free_numbers_init(&admission->numbers, admission->memory, 0, conf->requests_max);
        *ret_admission = admission;
        return 0;
}

void admission_reload(struct admission *admission, uint32_t max_tokens)
{
        admission->conf.max_tokens = max_tokens;
}

struct admission *admission_free(struct admission *admission)
{
        if (!admission)
                return NULL;
        assert(!admission->alive && !admission->jobs);
        assert(admission->numbers.count == admission->conf.requests_max);
        free(admission);
        return NULL;
}

/* Takes a place in the daemon, a request in the account, and its bytes; or nothing of it. */
static int enter(struct admission *admission, uint64_t uid, uint32_t id, uint64_t bytes,
                 struct wire_problem *ret_problem)
{
        int r;

        r = quota_ask(admission->quota, uid, QUOTA_REQUESTS, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        assert(admission->alive + admission->jobs < admission->conf.requests_max);
        r = quota_ask(admission->quota, uid, QUOTA_PROMPT_BYTES, bytes, id, ret_problem);
        if (r)
                quota_uncharge(admission->quota, uid, QUOTA_REQUESTS, 1);
        return error_pass(r);
}

static void leave(struct admission *admission, uint64_t uid, uint64_t bytes)
{
        quota_uncharge(admission->quota, uid, QUOTA_PROMPT_BYTES, bytes);
        quota_uncharge(admission->quota, uid, QUOTA_REQUESTS, 1);
}

int admission_job(struct admission *admission, uint64_t uid, uint32_t id, uint64_t bytes,
                  struct wire_problem *ret_problem)
{
        int r = enter(admission, uid, id, bytes, ret_problem);

        if (!r)
                admission->jobs++;
        return error_pass(r);
}

int admission_job_more(struct admission *admission, uint64_t uid, uint32_t id, uint64_t bytes,
                       struct wire_problem *ret_problem)
{
        return error_pass(
                quota_ask(admission->quota, uid, QUOTA_PROMPT_BYTES, bytes, id, ret_problem));
}

void admission_job_done(struct admission *admission, uint64_t uid, uint64_t bytes)
{
        assert(admission->jobs);
        admission->jobs--;
        leave(admission, uid, bytes);
}

uint32_t admission_context(const struct admission *admission, const struct served *served)
{
        uint32_t context = admission->conf.sched.context;

        return served->context < context ? served->context : context;
}

static int check_ids(const struct served *served, const uint32_t *ids, size_t count, uint32_t id,
                     const char *field, struct wire_problem *ret_problem)
{
        for (size_t i = 0; i < count; i++)
                if (ids[i] >= served->traits.vocab)
                        return wire_refuse(ret_problem, SMV_BAD_VALUE, id, field,
                                           "%s has %u at index %zu; the largest id is %u", field,
                                           ids[i], i, served->traits.vocab - 1);
        return 0;
}

int admission_check(const struct admission *admission, const struct served *served,
                    const struct wire_request *asked, struct wire_problem *ret_problem)
{
        /* A prompt that is too long is refused for its length, without a look at a million ids. */
        bool is_long = asked->token_count > admission_context(admission, served);
        uint32_t count = is_long ? 0 : asked->token_count;
        bool is_empty = !asked->token_count && !asked->chat.messages.bytes && !asked->prompt.count;
        int r;

        r = check_ids(served, asked->tokens, count, asked->id, "tokens", ret_problem);
        if (!r)
                r = check_ids(served, asked->stop_tokens, asked->stop_token_count, asked->id,
                              "stop_tokens", ret_problem);
        if (!r)
                r = asked_rules_check(served, asked, ret_problem);
        if (!r && asked->logprobs > served->traits.vocab)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "logprobs",
                                "logprobs is %u; the model has %u tokens", asked->logprobs,
                                served->traits.vocab);
        if (!r && asked->prompt_logprobs > served->traits.vocab)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "prompt_logprobs",
                                "prompt_logprobs is %u; the model has %u tokens",
                                asked->prompt_logprobs, served->traits.vocab);
        if (!r && asked->row_top > served->traits.vocab)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "row_top",
                                "row_top is %u; the model has %u tokens", asked->row_top,
                                served->traits.vocab);
        if (!r && asked->constraint.count && asked->ignore_eos)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "ignore_eos",
                                "ignore_eos goes with no constraint: an answer ends where the "
                                "constraint says so");
        if (!r && is_empty && asked->op != WIRE_APPEND && served->traits.bos == TRAITS_NO_TOKEN)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "prompt",
                                "prompt is empty, and the model has no token to begin with");
        return error_pass(r);
}

static size_t stops_bytes(const struct wire_request *asked)
{
        size_t bytes = 0;

        for (uint32_t i = 0; i < asked->stop_count; i++)
                bytes += asked->stop[i].count;
        return bytes;
}

size_t admission_own_bytes(const struct stream *stream)
{
        const struct request *request = &stream->request;
        size_t bytes = sizeof(*stream);

        for (uint32_t i = 0; i < request->stop_count; i++)
                bytes += request->stop_bytes[i];
        return bytes;
}

size_t admission_rules_bytes(const struct request *request, uint32_t tokens_max)
{
        const struct rules *rules = request->rules;
        size_t bytes =
                reasoning_limit_bytes(request->reasoning_limit) + asking_bytes(request->asking);

        if (!rules)
                return bytes;
        return bytes + rules->bytes +
               (rules_need_history(rules) ? history_bytes(rules, tokens_max) : 0);
}

void admission_set_rules(struct request *request, struct rules *rules,
                         struct reasoning_limit *limit)
{
        request->rules = rules;
        request->reasoning_limit = limit;
        request->alone = (rules && rules_need_history(rules)) || limit;
}

int admission_begin_history(struct request *request)
{
        if (!request->rules || !rules_need_history(request->rules))
                return 0;
        return error_pass(history_new(request->rules, request->tokens_max, &request->history));
}

/*
 * The bytes that a prompt holds until its request is finished: ids, or a text and the ids that it
 * may become.  Messages are held until admission_rendered().
 */
static size_t prompt_bytes(const struct served *served, const struct wire_request *asked)
{
        size_t ids;

        if (asked->token_count)
                return asked->token_count * sizeof(uint32_t);
        if (asked->chat.messages.bytes)
                return values_bytes(&asked->chat);
        ids = tokenizer_ids_max(served->tokenizer, asked->prompt.count) + 1;
        return asked->prompt.count + ids * sizeof(uint32_t);
}

char *admission_add_stop(struct request *request, char *at, const char *bytes, size_t count)
{
        memcpy(at, bytes, count);
        request->stops[request->stop_count] = at;
        request->stop_bytes[request->stop_count++] = (uint16_t)count;
        return at + count;
}

void admission_add_stop_tokens(struct request *request, const uint32_t *tokens, uint32_t count)
{
        request->stop_token_count = count;
        memcpy(request->stop_tokens, tokens, count * sizeof(uint32_t));
}

static void copy_stops(struct stream *stream, const struct wire_request *asked)
{
        struct request *request = &stream->request;
        char *at = (char *)(stream + 1);

        for (uint32_t i = 0; i < asked->stop_count; i++)
                at = admission_add_stop(request, at, asked->stop[i].bytes, asked->stop[i].count);
        admission_add_stop_tokens(request, asked->stop_tokens, asked->stop_token_count);
}

static const enum request_priority priorities[] = {
        [WIRE_INTERACTIVE] = REQUEST_INTERACTIVE,
        [WIRE_NORMAL] = REQUEST_NORMAL,
        [WIRE_BACKGROUND] = REQUEST_BACKGROUND,
};

enum request_priority admission_class(const struct wire_request *asked)
{
        return priorities[asked->priority];
}

uint64_t admission_deadline(const struct wire_request *asked)
{
        return sys_clock_ns() + asked->deadline_ms * UINT64_C(1000000);
}

/* Parts make its records longer, if it has any. */
static void add_parts(const struct admission_conf *conf, struct request *request,
                      const struct wire_request *asked, size_t stop_max)
{
        const struct dialect *dialect = request->model->dialect;
        size_t bytes;

        request->parts = asked->parts && dialect && request->record_bytes_max;
        if (!request->parts)
                return;
        request->parts_calls = wire_wants_calls(asked);
        request->argument_types = argument_types_ref(asked->argument_types);
        bytes = conf->parts_bytes_max(dialect, stop_max, &request->held_bytes_max);
        request->record_bytes_max += bytes;
        request->end_bytes_max += bytes;
}

/* Rows that are shown and questions make its records longer. */
static void add_asking(const struct admission_conf *conf, struct request *request,
                       const struct wire_request *asked)
{
        bool shows = wire_has(asked, WIRE_F_ROW_TOP) || asked->whole_row;
        size_t before = request->record_bytes_max;

        if (!request->record_bytes_max)
                return;
        if (shows) {
                request->sampling.row_entries = 1 + asked->row_top;
                request->record_bytes_max += conf->row_bytes_max(request->sampling.row_entries);
        }
        request->awaits |= asked->ask == SMV_ASK_MASK;
        request->alone |= asked->ask == SMV_ASK_TOKEN;
        if (request->asking)
                request->record_bytes_max += conf->ask_bytes_max();
        if (asked->ask == SMV_ASK_TOKEN)
                request->asked_bytes_max = request->record_bytes_max - before;
}

/* The parameters of a request that generates. */
static void fill_making(const struct admission *admission, struct stream *stream,
                        const struct wire_request *asked)
{
        const struct admission_conf *conf = &admission->conf;
        struct request *request = &stream->request;
        struct served *served = request->model;
        struct sampling_defaults usual = served->defaults;
        size_t stop_max = 0;

        if (asked->mirostat_tau > 0)
                usual = (struct sampling_defaults){ .temperature = usual.temperature, .top_p = 1 };

        request->sampling = (struct sampling){
                .temperature = wire_has(asked, WIRE_F_TEMPERATURE) ? asked->temperature
                                                                   : usual.temperature,
                .top_p = wire_has(asked, WIRE_F_TOP_P) ? asked->top_p : usual.top_p,
                .min_p = wire_has(asked, WIRE_F_MIN_P) ? asked->min_p : usual.min_p,
                .top_k = wire_has(asked, WIRE_F_TOP_K) ? asked->top_k : usual.top_k,
                .seed = wire_has(asked, WIRE_F_SEED) ? asked->seed : conf->seed(),
                .logprobs = wire_has(asked, WIRE_F_LOGPROBS) ? 1 + asked->logprobs : 0,
                .sample_index = asked->sample_index,
                .n_sigma = asked->n_sigma,
                .typical = asked->typical,
                .xtc_chance = asked->xtc_chance,
                .xtc_least = asked->xtc_least,
                .temperature_range = asked->temperature_range,
                .temperature_exponent = asked->temperature_exponent,
                .temperature_last = asked->order == WIRE_TEMPERATURE_LAST,
                .mirostat_tau = asked->mirostat_tau,
                .mirostat_eta = asked->mirostat_eta,
        };
        request->draft_max = conf->draft_tokens;
        if (wire_has(asked, WIRE_F_DRAFT_TOKENS) && asked->draft_tokens < request->draft_max)
                request->draft_max = asked->draft_tokens;
        request->mu = 2 * asked->mirostat_tau;
        request->alone |= asked->mirostat_tau > 0;
        request->ignore_eos = asked->ignore_eos;
        request->progress = asked->progress;
        copy_stops(stream, asked);
        for (uint32_t i = 0; i < request->stop_count; i++)
                if (request->stop_bytes[i] > stop_max)
                        stop_max = request->stop_bytes[i];
        request->record_bytes_max = conf->record_bytes_max(tokenizer_piece_max(served->tokenizer),
                                                           stop_max, request->sampling.logprobs);
        if (stream->makes_none)
                request->record_bytes_max = 0;
        request->end_bytes_max = conf->end_bytes_max(stop_max);
        add_parts(conf, request, asked, stop_max);
        add_asking(conf, request, asked);
        if (!wire_has(asked, WIRE_F_PROMPT_LOGPROBS))
                return;
        request->prompt_logprobs = 1 + asked->prompt_logprobs;
        request->score_bytes_max = conf->score_bytes_max(request->prompt_logprobs);
}

static void fill(const struct admission *admission, struct stream *stream,
                 const struct wire_request *asked)
{
        struct request *request = &stream->request;

        request->priority = admission_class(asked);
        if (asked->deadline_ms)
                request->deadline_ns = admission_deadline(asked);
        request->max_tokens = asked->max_tokens;
        stream->keep_ms = asked->keep_ms;
        stream->clamp = asked->clamp;
        stream->control_text = asked->control_text;
        stream->reads_only = asked->op == WIRE_PIN || asked->op == WIRE_PUBLISH;
        stream->makes_none =
                stream->reads_only || (wire_has(asked, WIRE_F_MAX_TOKENS) && !asked->max_tokens);
        if (stream->reads_only)
                request->end_bytes_max = admission->conf.end_bytes_max(0);
        else
                fill_making(admission, stream, asked);
}

enum smv_code admission_fits(const struct admission *admission, uint32_t count, uint32_t most,
                             char to[ADMISSION_WHY_BYTES])
{
        const struct sched_conf *conf = &admission->conf.sched;
        /* the last token is not computed, so it needs no position */
        uint64_t positions = (uint64_t)count + most - (most > 0);
        uint64_t blocks = (positions + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS;
        enum smv_code code = sched_fits(conf, count, most);

        if (code == SMV_QUOTA)
                snprintf(to, ADMISSION_WHY_BYTES,
                         "that takes %" PRIu64 " block%s, and one user may have %u "
                         "(uid_blocks_percent)",
                         blocks, plural(blocks), conf->user_blocks);
        else if (code)
                snprintf(to, ADMISSION_WHY_BYTES, "the KV pool has %" PRIu64 " positions",
                         (uint64_t)conf->blocks * BLOCK_POSITIONS);
        return code;
}

/* The most positions that the sequences of one user may have. */
static uint64_t positions_of_one(const struct sched_conf *conf)
{
        return (uint64_t)(conf->user_blocks ? conf->user_blocks : conf->blocks) * BLOCK_POSITIONS;
}

/* Computes how many tokens the request may generate; 0 or WIRE_E_REFUSED. */
static int measure(const struct admission *admission, const struct stream *stream, size_t count,
                   const char *field, uint32_t *ret_max_tokens, struct wire_problem *ret_problem)
{
        const struct request *request = &stream->request;
        const struct sched_conf *sched = &admission->conf.sched;
        uint32_t context = admission_context(admission, request->model);
        uint64_t room = positions_of_one(sched);
        uint64_t most = request->max_tokens;
        char why[ADMISSION_WHY_BYTES];
        enum smv_code code;

        if (count > context || (count == context && !stream->makes_none))
                return wire_refuse(ret_problem, SMV_TOO_LONG, request->stream, field,
                                   "the prompt has %zu token%s; prompt and answer together may "
                                   "have %u",
                                   count, plural(count), context);
        if (most > context - count && !stream->clamp)
                return wire_refuse(ret_problem, SMV_TOO_LONG, request->stream, "max_tokens",
                                   "the prompt has %zu token%s and max_tokens is %" PRIu64
                                   "; together they may be %u (clamp lowers max_tokens)",
                                   count, plural(count), most, context);
        if (!stream->makes_none && (!most || stream->clamp)) {
                if (!most)
                        most = admission->conf.max_tokens ? admission->conf.max_tokens : context;
                if (most > context - count)
                        most = context - count;
                if (count < room && most > room - count)
                        most = room - count;
        }
        code = admission_fits(admission, (uint32_t)count, (uint32_t)most, why);
        if (code)
                return wire_refuse(ret_problem, code, request->stream,
                                   request->max_tokens ? "max_tokens" : field,
                                   "the prompt has %zu token%s and %" PRIu64 " may follow; %s",
                                   count, plural(count), most, why);
        *ret_max_tokens = (uint32_t)most;
        return 0;
}

int admission_recharge(struct admission *admission, struct stream *stream, size_t bytes,
                       struct wire_problem *ret_problem)
{
        const struct request *request = &stream->request;
        int r = 0;

        bytes += argument_types_bytes(request->argument_types) +
                 prediction_bytes(request->prediction);
        if (bytes > stream->charged_bytes)
                r = quota_ask(admission->quota, request->uid, QUOTA_PROMPT_BYTES,
                              bytes - stream->charged_bytes, request->stream, ret_problem);
        else
                quota_uncharge(admission->quota, request->uid, QUOTA_PROMPT_BYTES,
                               stream->charged_bytes - bytes);
        if (!r)
                stream->charged_bytes = bytes;
        return error_pass(r);
}

static int finish(struct admission *admission, struct stream *stream, const uint32_t *ids,
                  size_t count, const char *field, struct wire_problem *ret_problem)
{
        struct request *request = &stream->request;
        struct sequence *sequence = &request->sequence;
        uint32_t max_tokens = 0;
        size_t room;
        int r;

        r = measure(admission, stream, count, field, &max_tokens, ret_problem);
        if (r)
                return error_pass(r);
        room = (count + max_tokens) * sizeof(uint32_t);
        r = admission_recharge(admission, stream,
                               admission_own_bytes(stream) + room +
                                       admission_rules_bytes(request, (uint32_t)count + max_tokens),
                               ret_problem);
        if (r)
                return error_pass(r);
        sequence->tokens = malloc(room);
        if (!sequence->tokens)
                return error_raise(-ENOMEM);
        memcpy(sequence->tokens, ids, count * sizeof(uint32_t));
        sequence->token_count = (uint32_t)count;
        request->prompt_count = (uint32_t)count;
        request->max_tokens = max_tokens;
        request->tokens_max = request->prompt_count + max_tokens;
        request->submitted_count = request->prompt_count;
        request->parts_reasoning =
                request->parts && dialect_opens_reasoning(request->model->dialect,
                                                          request->model->tokenizer, ids, count);
        return error_pass(admission_begin_history(request));
}

void admission_give_types(struct stream *stream, struct argument_types *types)
{
        if (stream->request.parts && !stream->request.argument_types)
                stream->request.argument_types = argument_types_ref(types);
}

int admission_give_prediction(struct admission *admission, struct stream *stream,
                              struct prediction *prediction, struct wire_problem *ret_problem)
{
        size_t own = stream->charged_bytes - argument_types_bytes(stream->request.argument_types);

        assert(!stream->request.prediction);
        stream->request.prediction = prediction_ref(prediction);
        return error_pass(admission_recharge(admission, stream, own, ret_problem));
}

int admission_rendered(struct admission *admission, struct stream *stream, size_t bytes,
                       struct wire_problem *ret_problem)
{
        return error_pass(admission_recharge(admission, stream,
                                             admission_own_bytes(stream) + bytes +
                                                     admission_rules_bytes(&stream->request, 0),
                                             ret_problem));
}

int admission_finish(struct admission *admission, struct stream *first, const char *field,
                     const uint32_t *ids, size_t id_count, struct wire_problem *ret_problem)
{
        int r = 0;

        assert(!first->request.sequence.tokens);
        if (!id_count)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, first->request.stream, field,
                                   "%s has no tokens", field);
        for (struct stream *s = first; !r && s; s = stream_sibling(s))
                r = finish(admission, s, ids, id_count, field, ret_problem);
        /* the client knows only the id of the request, so not that of a sibling */
        ret_problem->id = first->request.stream;
        return error_pass(r);
}

int admission_make(struct admission *admission, uint64_t uid, struct served *served, uint32_t id,
                   size_t own, size_t more, struct stream **ret_stream,
                   struct wire_problem *ret_problem)
{
        struct request *request;
        struct stream *stream;
        int r;

        r = enter(admission, uid, id, own + more, ret_problem);
        if (r)
                return error_pass(r);
        stream = calloc(1, own);
        if (!stream) {
                leave(admission, uid, own + more);
                return error_raise(-ENOMEM);
        }
        admission->alive++;
        stream->charged_bytes = own + more;
        stream->number = admission->conf.seed() | 1; /* random, and not 0 */
        request = &stream->request;
        request->number = free_numbers_take(&admission->numbers);
        request->uid = uid;
        request->stream = id;
        request->model = served;
        request->sequence.request = request;
        request->sequence.slot = SEQUENCE_NO_SLOT;
        served->references++;
        *ret_stream = stream;
        return 0;
}

int admission_ask(struct admission *admission, uint64_t uid, struct served *served,
                  const struct wire_request *asked, struct stream **ret_stream,
                  struct wire_problem *ret_problem)
{
        size_t own = sizeof(struct stream) + stops_bytes(asked);
        struct reasoning_limit *limit = NULL;
        struct asking *asking = NULL;
        struct rules *rules = NULL;
        int r;

        r = admission_check(admission, served, asked, ret_problem);
        if (!r)
                r = asked_rules_make(served, asked, &rules, ret_problem);
        if (!r)
                r = asked_limit_make(served, asked, &limit);
        if (!r)
                r = ask_make(served, asked, &asking);
        if (!r)
                r = admission_make(admission, uid, served, asked->id, own,
                                   prompt_bytes(served, asked) + asked->constraint.count +
                                           argument_types_bytes(asked->argument_types) +
                                           (rules ? rules->bytes : 0) +
                                           reasoning_limit_bytes(limit) + asking_bytes(asking),
                                   ret_stream, ret_problem);
        if (r) {
                rules_unref(rules);
                reasoning_limit_free(limit);
                asking_free(asking);
                return error_pass(r);
        }
        admission_set_rules(&(*ret_stream)->request, rules, limit);
        (*ret_stream)->request.asking = asking;
        fill(admission, *ret_stream, asked);
        return 0;
}

uint32_t *admission_take_tokens(struct admission *admission, struct stream *stream)
{
        struct request *request = &stream->request;
        size_t room = (size_t)request->tokens_max * sizeof(uint32_t);
        uint32_t *tokens = request->sequence.tokens;

        assert(tokens && stream->charged_bytes >= room);
        quota_uncharge(admission->quota, request->uid, QUOTA_PROMPT_BYTES, room);
        stream->charged_bytes -= room;
        request->sequence.tokens = NULL;
        return tokens;
}

struct stream *admission_forget(struct admission *admission, struct stream *stream)
{
        struct request *request;

        if (!stream)
                return NULL;
        request = &stream->request;
        assert(admission->alive && request->model->references);
        admission->alive--;
        free_numbers_give_back(&admission->numbers, request->number);
        request->model->references--;
        stream_leave_family(stream);
        constraints_release(stream);
        leave(admission, request->uid, stream->charged_bytes);
        history_free(request->history);
        rules_unref(request->rules);
        reasoning_limit_free(request->reasoning_limit);
        asking_free(request->asking);
        argument_types_unref(request->argument_types);
        prediction_unref(request->prediction);
        free(request->sequence.tokens);
        free(stream);
        return NULL;
}

void admission_forget_all(struct admission *admission, struct stream *first)
{
        while (first) {
                struct stream *next = stream_sibling(first);

                admission_forget(admission, first);
                first = next;
        }
}

uint32_t admission_alive(const struct admission *admission)
{
        return admission->alive;
}

uint32_t admission_jobs(const struct admission *admission)
{
        return admission->jobs;
}
