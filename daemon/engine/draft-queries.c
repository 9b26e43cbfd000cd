#include "daemon/engine/draft-queries.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/log.h"
#include "daemon/draft/deal.h"
#include "daemon/engine/draft-model.h"
#include "daemon/engine/sampler.h"

#define WEIGHT     (1.0f / 8) /* of a new sample in a mean */
#define LATE       4.0f       /* a sample is so many times the mean at most ... */
#define LOW        4.0f       /* ... and without samples the mean falls to this part at most */
#define ROWS       4u         /* more for each guess are those of a prompt */
#define KEPT       (1 - 1.0f / 1024)
#define RETURN     (1.0f / 1024) /* to DRAFTER_HOPE, for each step */
#define READS_EACH 8u            /* tokens that it may read for each one that may still come */
#define READS_FEW  32u           /* so many are read at once with a guess */

struct draft_queries {
        struct draft_model *model; /* NULL: there is none, or it is lost */
        uint64_t (*clock_ns)(void);
        float token_ns; /* that a token takes, on average; 0: not known */
        float least_ns; /* below this it does not fall while it is not measured */
        float chance;   /* that its first token has a row and is right, in recent streams */
        uint64_t spent_ns;
        struct draft_query *queries; /* and what is asked for them, in the same order */
        struct draft_ask *asks;
        uint32_t count;
};

int draft_queries_new(struct draft_model *model, uint32_t slots, uint64_t (*clock_ns)(void),
                      struct draft_queries **ret_queries)
{
        struct draft_queries *queries = calloc(1, sizeof(*queries));

        if (!queries)
                return error_raise(-ENOMEM);
        queries->model = model;
        queries->clock_ns = clock_ns;
        queries->chance = DRAFTER_HOPE;
        queries->queries = calloc(slots, sizeof(*queries->queries));
        queries->asks = calloc(slots, sizeof(*queries->asks));
        if (!queries->queries || !queries->asks) {
                draft_queries_free(queries);
                return error_raise(-ENOMEM);
        }
        *ret_queries = queries;
        return 0;
}

struct draft_queries *draft_queries_free(struct draft_queries *queries)
{
        if (!queries)
                return NULL;
        free(queries->queries);
        free(queries->asks);
        free(queries);
        return NULL;
}

float draft_queries_begin(struct draft_queries *queries, uint32_t slot)
{
        if (queries->model)
                draft_model_begin(queries->model, slot);
        return queries->chance;
}

/* ---- what pays ---- */

/* The guess may have one more token, with this survival: is it worth a row and what it costs? */
static bool is_worth(const struct draft_queries *queries, const struct draft_step *step,
                     struct draft *guess, float survival, float extra_ns)
{
        uint32_t rows = step->decodes, next = guess->count + 1;

        guess->survival[guess->count] = survival;
        return !step->costs || deal_worth(step->costs, rows, rows, queries->token_ns + extra_ns,
                                          guess, next) == next;
}

/* The tokens that the model has to read are not too many for those that may still come. */
static bool may_read(const struct draft_queries *queries, const struct request *request)
{
        const struct sequence *sequence = &request->sequence;
        uint32_t missing =
                draft_model_missing(queries->model, sequence->slot, sequence->token_count);
        uint32_t left = request->prompt_count + request->max_tokens - sequence->token_count;

        return missing <= READS_FEW || (missing < UINT32_MAX && missing / READS_EACH <= left);
}

bool draft_queries_wants(const struct draft_queries *queries, const struct draft_step *step,
                         const struct draft_query *query)
{
        const struct draft *guess = query->guess;
        float expects = drafter_expects(query->drafter);

        if (!queries->model || !query->most || expects <= (guess->count ? guess->survival[0] : 0))
                return false;
        if (!may_read(queries, query->request))
                return false;
        return is_worth(queries, step, &(struct draft){ .count = 0 }, expects, query->extra_ns);
}

/* ---- asking ---- */

void draft_queries_add(struct draft_queries *queries, const struct draft_query *query)
{
        const struct request *request = query->request;
        struct draft_ask *ask = &queries->asks[queries->count];

        *ask = (struct draft_ask){ .slot = request->sequence.slot,
                                   .tokens = request->sequence.tokens,
                                   .token_count = request->sequence.token_count,
                                   .more = true };
        sampler_draw(request, ask->token_count, &ask->pick);
        queries->queries[queries->count++] = *query;
}

/* Takes the token that the model has now, if it has one, and decides whether it shall go on. */
static void take_token(struct draft_queries *queries, const struct draft_step *step,
                       struct draft_query *query, struct draft_ask *ask)
{
        struct drafter *drafter = query->drafter;
        struct draft *guess = query->guess;

        if (!ask->more)
                return;
        drafter_take(drafter, ask->guess[ask->count - 1], ask->chance, guess);
        ask->more = ask->count < query->most &&
                    is_worth(queries, step, guess,
                             guess->survival[ask->count - 1] * drafter_expects(drafter),
                             query->extra_ns);
}

/* A time that was interrupted counts as some times the mean at most. */
static void learn_time(struct draft_queries *queries, uint64_t ns, uint32_t tokens)
{
        float each = (float)ns / (float)tokens, *mean = &queries->token_ns;

        if (*mean > 0 && each > LATE * *mean)
                each = LATE * *mean;
        *mean = *mean > 0 ? *mean + WEIGHT * (each - *mean) : each;
        queries->least_ns = *mean / LOW;
}

static void lose_model(struct draft_queries *queries, int error)
{
        log_warn("draft_model_lost error=%d; until samovard starts again, it makes no guesses",
                 error);
        queries->model = NULL;
}

static uint32_t count_tokens(const struct draft_queries *queries, uint32_t count)
{
        uint32_t tokens = 0;

        for (uint32_t i = 0; i < count; i++)
                tokens += queries->asks[i].count;
        return tokens;
}

/* The rows that the next step has for guesses are for all of them. */
static void share_rows(struct draft_queries *queries, uint32_t spare, uint32_t count)
{
        uint32_t share = (spare + count - 1) / count;

        for (uint32_t i = 0; i < count; i++)
                if (queries->queries[i].most > share)
                        queries->queries[i].most = share;
}

/* Steps of the model, as long as a guess shall go on.  Reading a prompt is not part of its time. */
void draft_queries_ask(struct draft_queries *queries, const struct draft_step *step)
{
        uint64_t began_ns = queries->clock_ns(), ns;
        uint32_t count = queries->count;
        bool reads = false;
        int rows = count > 0;

        queries->count = 0;
        if (!count)
                return;
        share_rows(queries, step->spare, count);
        while (rows) {
                rows = draft_model_step(queries->model, queries->asks, count);
                if (rows < 0) {
                        lose_model(queries, rows);
                        return;
                }
                reads |= (uint32_t)rows > ROWS * count;
                for (uint32_t i = 0; i < count && rows; i++)
                        take_token(queries, step, &queries->queries[i], &queries->asks[i]);
        }
        ns = queries->clock_ns() - began_ns;
        queries->spent_ns += ns;
        count = count_tokens(queries, count);
        if (count && !reads)
                learn_time(queries, ns, count);
}

/* ---- what was right ---- */

void draft_queries_learn(struct draft_queries *queries, const struct drafter *drafter)
{
        queries->chance += WEIGHT * (drafter_expects(drafter) - queries->chance);
}

void draft_queries_forget(struct draft_queries *queries)
{
        if (queries->token_ns > queries->least_ns)
                queries->token_ns *= KEPT;
        queries->chance += RETURN * (DRAFTER_HOPE - queries->chance);
}

uint64_t draft_queries_ns(struct draft_queries *queries)
{
        uint64_t ns = queries->spent_ns;

        queries->spent_ns = 0;
        return ns;
}
