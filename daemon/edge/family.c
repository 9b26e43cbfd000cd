/*
 * Requests made from another one: the siblings of a generate with `n`, and forks of a live stream.
 *
 * Such a request has the parameters of the other one, but its own choice, so that it draws
 * otherwise.  A family is all requests that came of one generate.  In a family choices are counted
 * up, whichever member is forked.  So no two members that begin alike go on alike, and a client can
 * ask again later for the same fork.
 */
#include "daemon/edge/admit-state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"

struct family {
        uint32_t members;
        uint64_t choices; /* all below this are taken */
};

/* `like` may be with the engine: the members that are read here do not change. */
static void inherit(struct request *request, const struct request *like)
{
        char *at = (char *)(request + 1);

        request->class = like->class;
        request->deadline_ns = like->deadline_ns;
        request->sampling = like->sampling;
        request->ignore_eos = like->ignore_eos;
        for (uint32_t i = 0; i < like->stop_count; i++)
                at = admit_add_stop(request, at, like->stops[i], like->stop_bytes[i]);
        admit_add_stop_tokens(request, like->stop_tokens, like->stop_token_count);
        request->record_bytes_max = like->record_bytes_max;
        request->end_bytes_max = like->end_bytes_max;
}

/* Makes a family with this request if it has none: 0 or -ENOMEM. */
static int found_family(struct request *request)
{
        if (request->family)
                return 0;
        request->family = calloc(1, sizeof(*request->family));
        if (!request->family)
                return error_raise(-ENOMEM);
        request->family->members = 1;
        request->family->choices = (uint64_t)request->sampling.choice + 1;
        return 0;
}

static void take_choices(struct family *family, uint64_t first, uint32_t count)
{
        if (family->choices < first + count)
                family->choices = first + count;
}

void admit_leave_family(struct request *request)
{
        if (request->family && !--request->family->members)
                free(request->family);
        request->family = NULL;
}

static int check_choices(uint64_t first, uint32_t count, uint32_t id,
                         struct wire_problem *ret_problem)
{
        if (first + count - 1 <= UINT32_MAX)
                return 0;
        return wire_refuse(ret_problem, SMV_BAD_VALUE, id, "choice",
                           "the first of %u choices would be %" PRIu64 "; the last may be %u",
                           count, first, UINT32_MAX);
}

/*
 * Makes `count` requests with the parameters of `like`, with streams from `stream` on and choices
 * from `choice` on: all or none.
 */
static int make_alike(struct admit *admit, const struct request *like, uint32_t stream,
                      uint32_t choice, uint32_t count, struct request **ret_first,
                      struct wire_problem *ret_problem)
{
        struct request *first = NULL, **end = &first;

        for (uint32_t i = 0; i < count; i++) {
                int r = admit_make(admit, like->uid, like->model, stream + i, admit_own_bytes(like),
                                   0, end, ret_problem);

                if (r) {
                        admit_forget_all(admit, first);
                        return error_pass(r);
                }
                inherit(*end, like);
                (*end)->sampling.choice = choice + i;
                (*end)->family = like->family;
                like->family->members++;
                end = &(*end)->sibling;
        }
        *ret_first = first;
        return 0;
}

int admit_siblings(struct admit *admit, struct request *request, const struct wire_request *asked,
                   struct wire_problem *ret_problem)
{
        uint32_t more = asked->n ? asked->n - 1 : 0;
        int r;

        if (!more)
                return 0;
        r = check_choices(asked->choice, more + 1, asked->id, ret_problem);
        if (!r)
                r = found_family(request);
        if (!r)
                r = make_alike(admit, request, asked->id + 1, asked->choice + 1, more,
                               &request->sibling, ret_problem);
        /* the client knows only the id of the request, so not that of a sibling */
        ret_problem->id = asked->id;
        if (r)
                return error_pass(r);
        take_choices(request->family, asked->choice, more + 1);
        for (struct request *s = request->sibling; s; s = s->sibling)
                s->max_tokens = request->max_tokens;
        return 0;
}

/*
 * The tokens that a fork may have: at most as many as its parent may have when it begins, and its
 * own.
 */
static int measure_fork(const struct admit *admit, const struct request *parent,
                        const struct wire_request *asked, uint32_t *ret_tokens_max,
                        struct wire_problem *ret_problem)
{
        const struct sched_conf *sched = &admit->conf.sched;
        uint32_t context = admit_context(admit, parent->model), most = parent->tokens_max;
        char why[ADMIT_WHY_BYTES];
        enum smv_code code;

        *ret_tokens_max = most;
        if (!wire_has(asked, WIRE_F_MAX_TOKENS))
                /* It has the limit of its parent. */
                return 0;
        /* The last token of the parent ends it, so no fork begins behind it. */
        most--;
        if (asked->max_tokens > context - most)
                return wire_refuse(ret_problem, SMV_TOO_LONG, asked->id, "max_tokens",
                                   "the stream may have %u tokens by then and max_tokens is %u; "
                                   "together they may be %u",
                                   most, asked->max_tokens, context);
        code = sched_fits(sched, most, asked->max_tokens);
        if (code)
                return wire_refuse(ret_problem, code, asked->id, "max_tokens",
                                   "the stream may have %u tokens by then and %u may follow; %s",
                                   most, asked->max_tokens,
                                   admit_why(sched, code, most, asked->max_tokens, why));
        *ret_tokens_max = most + asked->max_tokens;
        return 0;
}

static void fill_fork(struct request *request, const struct wire_request *asked)
{
        struct sampling *sampling = &request->sampling;

        if (wire_has(asked, WIRE_F_CLASS))
                request->class = admit_class(asked);
        if (wire_has(asked, WIRE_F_DEADLINE_MS))
                request->deadline_ns = admit_deadline(asked);
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

static int prepare_fork(struct admit *admit, struct request *request, struct request *parent,
                        const struct wire_request *asked, uint32_t tokens_max,
                        struct wire_problem *ret_problem)
{
        size_t room = (size_t)tokens_max * sizeof(uint32_t);
        int r;

        fill_fork(request, asked);
        request->parent = parent;
        request->tokens_max = tokens_max;
        r = admit_recharge(admit, request, admit_own_bytes(request) + room, ret_problem);
        if (r)
                return error_pass(r);
        request->sequence.tokens = malloc(room);
        if (!request->sequence.tokens)
                return error_raise(-ENOMEM);
        /*
         * Copies the part of the parent's tokens that does not change; the engine copies the rest.
         */
        request->known = parent->known;
        memcpy(request->sequence.tokens, parent->sequence.tokens, parent->known * sizeof(uint32_t));
        return 0;
}

int admit_fork(struct admit *admit, struct request *parent, const struct wire_request *asked,
               struct request **ret_request, struct wire_problem *ret_problem)
{
        struct request *first = NULL;
        uint32_t tokens_max;
        uint64_t choice;
        int r;

        r = measure_fork(admit, parent, asked, &tokens_max, ret_problem);
        if (!r)
                r = found_family(parent);
        if (r)
                return error_pass(r);
        choice = wire_has(asked, WIRE_F_CHOICE) ? asked->choice : parent->family->choices;
        r = check_choices(choice, asked->count, asked->id, ret_problem);
        if (!r)
                r = make_alike(admit, parent, asked->id, (uint32_t)choice, asked->count, &first,
                               ret_problem);
        for (struct request *child = first; !r && child; child = child->sibling)
                r = prepare_fork(admit, child, parent, asked, tokens_max, ret_problem);
        if (r) {
                /* the client knows only this id, so not that of another fork */
                ret_problem->id = asked->id;
                admit_forget_all(admit, first);
                return error_pass(r);
        }
        take_choices(parent->family, choice, asked->count);
        *ret_request = first;
        return 0;
}
