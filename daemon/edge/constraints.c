#include "daemon/edge/constraints.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "daemon/constraint/guide.h"
#include "daemon/text/tokenizer.h"

struct constraint {
        struct constraints *of;
        struct list_head link; /* in `used` or in `kept` */
        struct grammar *grammar;
        const struct served *served;
        enum answer_reasoning reasoning;
        uint64_t uid;
        size_t charge; /* while it has references */
        uint32_t references;
        uint32_t constraint_bytes, calls_bytes; /* of the texts of its form, which follow */
        char texts[];
};

struct constraints {
        struct quota *quota;
        struct list_head used, kept; /* kept: the last one that was used is the first */
        uint32_t kept_count, kept_max;
};

static struct constraint *constraint_of(struct list_head *link)
{
        return LIST_ENTRY(link, struct constraint, link);
}

int constraints_new(struct quota *quota, uint32_t kept_max, struct constraints **ret_constraints)
{
        struct constraints *constraints = calloc(1, sizeof(*constraints));

        if (!constraints)
                return error_raise(-ENOMEM);
        constraints->quota = quota;
        constraints->kept_max = kept_max;
        list_init(&constraints->used);
        list_init(&constraints->kept);
        *ret_constraints = constraints;
        return 0;
}

static void forget(struct constraint *constraint)
{
        list_remove(&constraint->link);
        grammar_free(constraint->grammar);
        free(constraint);
}

struct constraints *constraints_free(struct constraints *constraints)
{
        if (!constraints)
                return NULL;
        assert(list_is_empty(&constraints->used));
        while (!list_is_empty(&constraints->kept))
                forget(constraint_of(list_first(&constraints->kept)));
        free(constraints);
        return NULL;
}

static bool has_form(const struct constraint *constraint, const struct answer_form *form)
{
        return constraint->reasoning == form->reasoning &&
               constraint->constraint_bytes == form->constraint.count &&
               constraint->calls_bytes == form->calls.count &&
               (!form->constraint.count ||
                !memcmp(constraint->texts, form->constraint.bytes, form->constraint.count)) &&
               (!form->calls.count || !memcmp(constraint->texts + constraint->constraint_bytes,
                                              form->calls.bytes, form->calls.count));
}

static struct constraint *find_in(struct list_head *list, const struct stream *stream,
                                  const struct answer_form *form)
{
        list_each(at, list) {
                struct constraint *constraint = constraint_of(at);

                if (constraint->uid == stream->request.uid &&
                    constraint->served == stream->request.model && has_form(constraint, form))
                        return constraint;
        }
        return NULL;
}

/* ---- references ---- */

static int charge(const struct constraint *constraint, size_t bytes, uint32_t id,
                  struct wire_problem *ret_problem)
{
        return error_pass(quota_ask(constraint->of->quota, constraint->uid, QUOTA_CONSTRAINT_BYTES,
                                    bytes, id, ret_problem));
}

static void uncharge(const struct constraint *constraint, size_t bytes)
{
        quota_uncharge(constraint->of->quota, constraint->uid, QUOTA_CONSTRAINT_BYTES, bytes);
}

static int reference(struct constraint *constraint, uint32_t id, struct wire_problem *ret_problem)
{
        struct constraints *of = constraint->of;
        int r;

        if (!constraint->references) {
                r = charge(constraint, constraint->charge, id, ret_problem);
                if (r)
                        return error_pass(r);
                list_remove(&constraint->link);
                list_push_front(&of->used, &constraint->link);
                of->kept_count--;
        }
        constraint->references++;
        return 0;
}

/* Those that were used longest ago are forgotten. */
static void trim(struct constraints *constraints)
{
        while (constraints->kept_count > constraints->kept_max) {
                forget(constraint_of(constraints->kept.prev));
                constraints->kept_count--;
        }
}

static void unreference(struct constraint *constraint)
{
        struct constraints *of = constraint->of;

        assert(constraint->references);
        if (--constraint->references)
                return;
        uncharge(constraint, constraint->charge);
        list_remove(&constraint->link);
        list_push_front(&of->kept, &constraint->link);
        of->kept_count++;
        trim(of);
}

/* ---- guides ---- */

/*
 * The end tokens of the model, and those stop tokens of the request that are no text: a text that
 * is not whole must not end with them, either.
 */
static uint32_t list_ends(const struct request *request, uint32_t ends[])
{
        const struct served *served = request->model;
        uint32_t count = served->traits.eos_count;

        memcpy(ends, served->traits.eos, count * sizeof(*ends));
        for (uint32_t i = 0; i < request->stop_token_count; i++)
                if (tokenizer_kind(served->tokenizer, request->stop_tokens[i]) == ENTRY_CONTROL)
                        ends[count++] = request->stop_tokens[i];
        return count;
}

static int give(struct constraint *constraint, struct stream *stream,
                struct wire_problem *ret_problem)
{
        static_assert(SCHED_DRAFT_MAX <= GUIDE_AHEAD_MAX, "a guide looks ahead along a draft");
        uint32_t ends[TRAITS_EOS_MAX + SMV_STOPS_MAX];
        struct request *request = &stream->request;
        struct guide *guide;
        int r;

        assert(!stream->constraint && !request->guide);
        guide = guide_new(constraint->grammar, constraint->served->trie, ends,
                          list_ends(request, ends), request->draft_max);
        if (!guide)
                return error_raise(-ENOMEM);
        r = charge(constraint, guide_bytes(guide), request->stream, ret_problem);
        if (r) {
                guide_free(guide);
                return error_pass(r);
        }
        r = reference(constraint, request->stream, ret_problem);
        if (r) {
                uncharge(constraint, guide_bytes(guide));
                guide_free(guide);
                return error_pass(r);
        }
        request->guide = guide;
        request->awaits = true;
        stream->constraint = constraint;
        return 0;
}

static int give_all(struct constraint *constraint, struct stream *first,
                    struct wire_problem *ret_problem)
{
        int r = 0;

        for (struct stream *s = first; !r && s; s = stream_sibling(s))
                r = give(constraint, s, ret_problem);
        /* the client knows only the id of the request, so not that of a sibling */
        ret_problem->id = first->request.stream;
        return error_pass(r);
}

int constraints_find(struct constraints *constraints, struct stream *first,
                     const struct answer_form *form, struct wire_problem *ret_problem)
{
        struct constraint *constraint = find_in(&constraints->used, first, form);

        if (!constraint)
                constraint = find_in(&constraints->kept, first, form);
        return constraint ? error_pass(give_all(constraint, first, ret_problem))
                          : CONSTRAINTS_E_UNKNOWN;
}

int constraints_add(struct constraints *constraints, struct stream *first,
                    const struct answer_form *form, struct grammar *grammar,
                    struct wire_problem *ret_problem)
{
        size_t bytes = (size_t)form->constraint.count + form->calls.count;
        struct constraint *constraint = malloc(sizeof(*constraint) + bytes);
        int r;

        if (!constraint) {
                grammar_free(grammar);
                return error_raise(-ENOMEM);
        }
        *constraint = (struct constraint){
                .of = constraints,
                .grammar = grammar,
                .served = first->request.model,
                .reasoning = form->reasoning,
                .uid = first->request.uid,
                .charge = grammar_bytes(grammar) + bytes,
                .constraint_bytes = form->constraint.count,
                .calls_bytes = form->calls.count,
        };
        if (form->constraint.count)
                memcpy(constraint->texts, form->constraint.bytes, form->constraint.count);
        if (form->calls.count)
                memcpy(constraint->texts + form->constraint.count, form->calls.bytes,
                       form->calls.count);
        list_push_front(&constraints->kept, &constraint->link);
        constraints->kept_count++;
        r = give_all(constraint, first, ret_problem);
        trim(constraints);
        return error_pass(r);
}

int constraints_share(struct stream *stream, const struct stream *from,
                      struct wire_problem *ret_problem)
{
        return from->constraint ? error_pass(give(from->constraint, stream, ret_problem)) : 0;
}

void constraints_release(struct stream *stream)
{
        struct constraint *constraint = stream->constraint;
        struct guide *guide = stream->request.guide;

        if (!constraint)
                return;
        uncharge(constraint, guide_bytes(guide));
        guide_free(guide);
        stream->request.guide = NULL;
        stream->constraint = NULL;
        unreference(constraint);
}
