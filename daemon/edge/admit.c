#include "daemon/edge/admit-state.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/edge/values.h"
#include "daemon/error.h"
#include "daemon/sys.h"
#include "daemon/text/tokenizer.h"

int admit_new(const struct admit_conf *conf, struct quota *quota, struct admit **ret_admit)
{
        struct admit *admit;

        admit = calloc(1, sizeof(*admit) + conf->requests_max * sizeof(admit->free_numbers[0]));
        if (!admit)
                return error_raise(-ENOMEM);
        admit->conf = *conf;
        admit->quota = quota;
        admit->free_count = conf->requests_max;
        for (uint32_t i = 0; i < conf->requests_max; i++)
                admit->free_numbers[i] = conf->requests_max - 1 - i;
        *ret_admit = admit;
        return 0;
}

struct admit *admit_free(struct admit *admit)
{
        if (!admit)
                return NULL;
        assert(!admit->alive && !admit->jobs);
        assert(admit->free_count == admit->conf.requests_max);
        free(admit);
        return NULL;
}

int admit_charge(struct quota *quota, uint32_t uid, enum quota_kind kind, uint64_t amount,
                 uint32_t id, struct wire_problem *ret_problem)
{
        int r = quota_charge(quota, uid, kind, amount);

        if (r == QUOTA_E_OVER)
                return wire_refuse(ret_problem, SMV_QUOTA, id, NULL,
                                   "%" PRIu64 " more would be over this user's limit of %" PRIu64
                                   " %s",
                                   amount, quota_max(quota, kind), quota_name(kind));
        return error_pass(r);
}

/* Takes a place in the daemon, a request in the account, and its bytes; or nothing of it. */
static int enter(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
                 struct wire_problem *ret_problem)
{
        int r;

        if (admit->alive + admit->jobs >= admit->conf.requests_max)
                return wire_refuse(ret_problem, SMV_BUSY, id, NULL,
                                   "the daemon has %u requests, and takes no more at once",
                                   admit->conf.requests_max);
        r = admit_charge(admit->quota, uid, QUOTA_REQUESTS, 1, id, ret_problem);
        if (r)
                return error_pass(r);
        r = admit_charge(admit->quota, uid, QUOTA_PROMPT_BYTES, bytes, id, ret_problem);
        if (r)
                quota_uncharge(admit->quota, uid, QUOTA_REQUESTS, 1);
        return error_pass(r);
}

static void leave(struct admit *admit, uint32_t uid, uint64_t bytes)
{
        quota_uncharge(admit->quota, uid, QUOTA_PROMPT_BYTES, bytes);
        quota_uncharge(admit->quota, uid, QUOTA_REQUESTS, 1);
}

int admit_job(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
              struct wire_problem *ret_problem)
{
        int r = enter(admit, uid, id, bytes, ret_problem);

        if (!r)
                admit->jobs++;
        return error_pass(r);
}

int admit_job_more(struct admit *admit, uint32_t uid, uint32_t id, uint64_t bytes,
                   struct wire_problem *ret_problem)
{
        return error_pass(
                admit_charge(admit->quota, uid, QUOTA_PROMPT_BYTES, bytes, id, ret_problem));
}

void admit_job_done(struct admit *admit, uint32_t uid, uint64_t bytes)
{
        assert(admit->jobs);
        admit->jobs--;
        leave(admit, uid, bytes);
}

uint32_t admit_context(const struct admit *admit, const struct served *served)
{
        uint32_t context = admit->conf.sched.context;

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

int admit_check(const struct admit *admit, const struct served *served,
                const struct wire_request *asked, struct wire_problem *ret_problem)
{
        /* A prompt that is too long is refused for its length, without a look at a million ids. */
        bool is_long = asked->token_count > admit_context(admit, served);
        uint32_t count = is_long ? 0 : asked->token_count;
        bool is_empty = !asked->token_count && !asked->talk.messages.bytes && !asked->prompt.count;
        int r;

        r = check_ids(served, asked->tokens, count, asked->id, "tokens", ret_problem);
        if (!r)
                r = check_ids(served, asked->stop_tokens, asked->stop_token_count, asked->id,
                              "stop_tokens", ret_problem);
        if (!r && asked->logprobs > served->traits.vocab)
                r = wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "logprobs",
                                "logprobs is %u; the model has %u tokens", asked->logprobs,
                                served->traits.vocab);
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

size_t admit_own_bytes(const struct request *request)
{
        size_t bytes = sizeof(*request);

        for (uint32_t i = 0; i < request->stop_count; i++)
                bytes += request->stop_bytes[i];
        return bytes;
}

/*
 * The bytes that a prompt holds until its request is finished: ids, or a text and the ids that it
 * may become.  Messages are held until admit_rendered().
 */
static size_t prompt_bytes(const struct served *served, const struct wire_request *asked)
{
        size_t ids;

        if (asked->token_count)
                return asked->token_count * sizeof(uint32_t);
        if (asked->talk.messages.bytes)
                return values_bytes(&asked->talk);
        ids = tokenizer_ids_max(served->tokenizer, asked->prompt.count) + 1;
        return asked->prompt.count + ids * sizeof(uint32_t);
}

char *admit_add_stop(struct request *request, char *at, const char *bytes, size_t count)
{
        memcpy(at, bytes, count);
        request->stops[request->stop_count] = at;
        request->stop_bytes[request->stop_count++] = (uint16_t)count;
        return at + count;
}

void admit_add_stop_tokens(struct request *request, const uint32_t *tokens, uint32_t count)
{
        request->stop_token_count = count;
        memcpy(request->stop_tokens, tokens, count * sizeof(uint32_t));
}

static void copy_stops(struct request *request, const struct wire_request *asked)
{
        char *at = (char *)(request + 1);

        for (uint32_t i = 0; i < asked->stop_count; i++)
                at = admit_add_stop(request, at, asked->stop[i].bytes, asked->stop[i].count);
        admit_add_stop_tokens(request, asked->stop_tokens, asked->stop_token_count);
}

static const enum request_class classes[] = {
        [WIRE_INTERACTIVE] = REQUEST_INTERACTIVE,
        [WIRE_NORMAL] = REQUEST_NORMAL,
        [WIRE_BACKGROUND] = REQUEST_BACKGROUND,
};

enum request_class admit_class(const struct wire_request *asked)
{
        return classes[asked->class];
}

uint64_t admit_deadline(const struct wire_request *asked)
{
        return sys_clock_ns() + asked->deadline_ms * UINT64_C(1000000);
}

/* The parameters of a request that generates. */
static void fill_making(const struct admit *admit, struct request *request,
                        const struct wire_request *asked)
{
        const struct admit_conf *conf = &admit->conf;
        struct served *served = request->model;
        size_t stop_max = 0;

        request->sampling = (struct sampling){
                .temperature = asked->temperature,
                .top_p = asked->top_p,
                .min_p = asked->min_p,
                .top_k = asked->top_k,
                .seed = wire_has(asked, WIRE_F_SEED) ? asked->seed : conf->seed(),
                .logprobs = wire_has(asked, WIRE_F_LOGPROBS) ? 1 + asked->logprobs : 0,
                .choice = asked->choice,
        };
        request->ignore_eos = asked->ignore_eos;
        copy_stops(request, asked);
        for (uint32_t i = 0; i < request->stop_count; i++)
                if (request->stop_bytes[i] > stop_max)
                        stop_max = request->stop_bytes[i];
        request->record_bytes_max = conf->record_bytes_max(tokenizer_piece_max(served->tokenizer),
                                                           stop_max, request->sampling.logprobs);
        request->end_bytes_max = conf->end_bytes_max(stop_max);
}

static void fill(const struct admit *admit, struct request *request,
                 const struct wire_request *asked)
{
        request->class = admit_class(asked);
        if (asked->deadline_ms)
                request->deadline_ns = admit_deadline(asked);
        request->max_tokens = asked->max_tokens;
        request->keep_ms = asked->keep_ms;
        request->reads_only = asked->op == WIRE_HOLD || asked->op == WIRE_PUBLISH;
        if (request->reads_only)
                request->end_bytes_max = admit->conf.end_bytes_max(0);
        else
                fill_making(admit, request, asked);
}

const char *admit_why(const struct sched_conf *conf, enum smv_code code, uint32_t count,
                      uint32_t most, char to[ADMIT_WHY_BYTES])
{
        /* the last token is not computed, so it needs no position */
        uint64_t positions = (uint64_t)count + most - (most > 0);

        if (code == SMV_QUOTA)
                snprintf(to, ADMIT_WHY_BYTES,
                         "that takes %" PRIu64 " blocks, and one user may have %u "
                         "(uid_blocks_percent)",
                         (positions + BLOCK_POSITIONS - 1) / BLOCK_POSITIONS, conf->user_blocks);
        else
                snprintf(to, ADMIT_WHY_BYTES, "the KV pool has %" PRIu64 " positions",
                         (uint64_t)conf->blocks * BLOCK_POSITIONS);
        return to;
}

/* The most positions that the sequences of one user may have. */
static uint64_t positions_of_one(const struct sched_conf *conf)
{
        return (uint64_t)(conf->user_blocks ? conf->user_blocks : conf->blocks) * BLOCK_POSITIONS;
}

/* Computes how many tokens the request may generate; 0 or WIRE_E_REFUSED. */
static int measure(const struct admit *admit, const struct request *request, size_t count,
                   const char *field, uint32_t *ret_max_tokens, struct wire_problem *ret_problem)
{
        const struct sched_conf *sched = &admit->conf.sched;
        uint32_t context = admit_context(admit, request->model);
        uint64_t room = positions_of_one(sched);
        uint64_t most = request->max_tokens;
        char why[ADMIT_WHY_BYTES];
        enum smv_code code;

        if (count >= context && !request->reads_only)
                return wire_refuse(ret_problem, SMV_TOO_LONG, request->stream, field,
                                   "the prompt has %zu tokens; with its continuation it may "
                                   "have %u",
                                   count, context);
        if (most > context - count)
                return wire_refuse(ret_problem, SMV_TOO_LONG, request->stream, "max_tokens",
                                   "the prompt has %zu tokens and max_tokens is %" PRIu64
                                   "; together they may be %u",
                                   count, most, context);
        if (!most && !request->reads_only) {
                most = admit->conf.max_tokens;
                if (most > context - count)
                        most = context - count;
                if (count < room && most > room - count)
                        most = room - count;
        }
        code = sched_fits(sched, (uint32_t)count, (uint32_t)most);
        if (code)
                return wire_refuse(ret_problem, code, request->stream,
                                   request->max_tokens ? "max_tokens" : field,
                                   "the prompt has %zu tokens and %" PRIu64 " may follow; %s",
                                   count, most,
                                   admit_why(sched, code, (uint32_t)count, (uint32_t)most, why));
        *ret_max_tokens = (uint32_t)most;
        return 0;
}

int admit_recharge(struct admit *admit, struct request *request, size_t bytes,
                   struct wire_problem *ret_problem)
{
        int r = 0;

        if (bytes > request->charged_bytes)
                r = admit_charge(admit->quota, request->uid, QUOTA_PROMPT_BYTES,
                                 bytes - request->charged_bytes, request->stream, ret_problem);
        else
                quota_uncharge(admit->quota, request->uid, QUOTA_PROMPT_BYTES,
                               request->charged_bytes - bytes);
        if (!r)
                request->charged_bytes = bytes;
        return error_pass(r);
}

static int finish(struct admit *admit, struct request *request, const uint32_t *ids, size_t count,
                  const char *field, struct wire_problem *ret_problem)
{
        struct sequence *sequence = &request->sequence;
        uint32_t max_tokens = 0;
        size_t room;
        int r;

        r = measure(admit, request, count, field, &max_tokens, ret_problem);
        if (r)
                return error_pass(r);
        room = (count + max_tokens) * sizeof(uint32_t);
        r = admit_recharge(admit, request, admit_own_bytes(request) + room, ret_problem);
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
        request->known = request->prompt_count;
        return 0;
}

int admit_rendered(struct admit *admit, struct request *request, size_t bytes,
                   struct wire_problem *ret_problem)
{
        return error_pass(
                admit_recharge(admit, request, admit_own_bytes(request) + bytes, ret_problem));
}

int admit_finish(struct admit *admit, struct request *request, const char *field,
                 const uint32_t *ids, size_t id_count, struct wire_problem *ret_problem)
{
        int r = 0;

        assert(!request->sequence.tokens);
        if (!id_count)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, request->stream, field,
                                   "%s has no tokens", field);
        for (struct request *s = request; !r && s; s = s->sibling)
                r = finish(admit, s, ids, id_count, field, ret_problem);
        /* the client knows only the id of the request, so not that of a sibling */
        ret_problem->id = request->stream;
        return error_pass(r);
}

int admit_make(struct admit *admit, uint32_t uid, struct served *served, uint32_t stream,
               size_t own, size_t more, struct request **ret_request,
               struct wire_problem *ret_problem)
{
        struct request *request;
        int r;

        r = enter(admit, uid, stream, own + more, ret_problem);
        if (r)
                return error_pass(r);
        request = calloc(1, own);
        if (!request) {
                leave(admit, uid, own + more);
                return error_raise(-ENOMEM);
        }
        admit->alive++;
        request->number = admit->free_numbers[--admit->free_count];
        request->uid = uid;
        request->stream = stream;
        request->model = served;
        request->charged_bytes = own + more;
        request->sequence.request = request;
        request->sequence.slot = SEQUENCE_NO_SLOT;
        served->holds++;
        *ret_request = request;
        return 0;
}

/* Makes a request with everything except the tokens of the prompt. */
static int make_asked(struct admit *admit, uint32_t uid, struct served *served,
                      const struct wire_request *asked, struct request **ret_request,
                      struct wire_problem *ret_problem)
{
        size_t own = sizeof(struct request) + stops_bytes(asked);
        int r;

        r = admit_make(admit, uid, served, asked->id, own, prompt_bytes(served, asked), ret_request,
                       ret_problem);
        if (!r)
                fill(admit, *ret_request, asked);
        return error_pass(r);
}

int admit_ask(struct admit *admit, uint32_t uid, struct served *served,
              const struct wire_request *asked, struct request **ret_request,
              struct wire_problem *ret_problem)
{
        struct request *request = NULL;
        int r;

        r = admit_check(admit, served, asked, ret_problem);
        if (r)
                return error_pass(r);
        r = make_asked(admit, uid, served, asked, &request, ret_problem);
        if (r)
                return error_pass(r);
        r = admit_siblings(admit, request, asked, ret_problem);
        if (!r && asked->token_count)
                r = admit_finish(admit, request,
                                 wire_has(asked, WIRE_F_HANDLE) ? "handle" : "tokens",
                                 asked->tokens, asked->token_count, ret_problem);
        if (r) {
                admit_forget_all(admit, request);
                return error_pass(r);
        }
        *ret_request = request;
        return 0;
}

uint32_t *admit_take_tokens(struct admit *admit, struct request *request)
{
        size_t room = (size_t)request->tokens_max * sizeof(uint32_t);
        uint32_t *tokens = request->sequence.tokens;

        assert(tokens && request->charged_bytes >= room);
        quota_uncharge(admit->quota, request->uid, QUOTA_PROMPT_BYTES, room);
        request->charged_bytes -= room;
        request->sequence.tokens = NULL;
        return tokens;
}

struct request *admit_forget(struct admit *admit, struct request *request)
{
        if (!request)
                return NULL;
        assert(admit->alive && request->model->holds);
        admit->alive--;
        admit->free_numbers[admit->free_count++] = request->number;
        request->model->holds--;
        admit_leave_family(request);
        leave(admit, request->uid, request->charged_bytes);
        free(request->sequence.tokens);
        free(request);
        return NULL;
}

void admit_forget_all(struct admit *admit, struct request *first)
{
        while (first) {
                struct request *next = first->sibling;

                admit_forget(admit, first);
                first = next;
        }
}

uint32_t admit_alive(const struct admit *admit)
{
        return admit->alive;
}

uint32_t admit_jobs(const struct admit *admit)
{
        return admit->jobs;
}
