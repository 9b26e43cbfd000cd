#include "daemon/draft/deal.h"

#include <stddef.h>

#define AHEAD 3u /* rows behind the best number that are looked at: the next one may be dear */

/* Numbers of rows that are tried in order, and the one with the most tokens for the time. */
struct search {
        const struct step_costs *costs;
        uint32_t rows;  /* without guesses */
        float tokens;   /* with all that were tried */
        float extra_ns; /* of each guess */
        uint32_t tried;
        uint32_t best; /* of `tried` */
        float best_tokens, best_ns;
};

static struct search begin(const struct step_costs *costs, uint32_t rows, uint32_t tokens,
                           float extra_ns)
{
        return (struct search){ .costs = costs,
                                .rows = rows,
                                .tokens = (float)tokens,
                                .extra_ns = extra_ns,
                                .best_tokens = (float)tokens,
                                .best_ns = step_costs_ns(costs, rows) };
}

static bool goes_on(const struct search *search, uint32_t most)
{
        return search->tried < most && search->tried - search->best < AHEAD;
}

/* One more row, which brings a token with this chance. */
static void try_row(struct search *search, float chance)
{
        float ns;

        search->tried++;
        search->tokens += chance;
        ns = step_costs_ns(search->costs, search->rows + search->tried) +
             (float)search->tried * search->extra_ns;
        if (search->tokens * search->best_ns < search->best_tokens * ns)
                return;
        search->best = search->tried;
        search->best_tokens = search->tokens;
        search->best_ns = ns;
}

bool deal_pays(const struct step_costs *costs, uint32_t rows, uint32_t tokens)
{
        return deal_worth(costs, rows, tokens, 0, NULL, AHEAD) > 0;
}

/* The draft whose next token is the likeliest; NULL: all have theirs. */
static struct deal *find_best(struct deal *deals, uint32_t count)
{
        struct deal *best = NULL;
        float most = 0;

        for (uint32_t i = 0; i < count; i++) {
                struct deal *deal = &deals[i];

                if (deal->rows >= deal->most || deal->draft->survival[deal->rows] <= most)
                        continue;
                most = deal->draft->survival[deal->rows];
                best = deal;
        }
        return best;
}

uint32_t deal_rows(const struct step_costs *costs, uint32_t rows, uint32_t tokens, uint32_t spare,
                   struct deal *deals, uint32_t count)
{
        struct search search = begin(costs, rows, tokens, 0);
        struct deal *last[AHEAD], *deal;

        for (uint32_t i = 0; i < count; i++)
                deals[i].rows = 0;
        while (goes_on(&search, spare) && (deal = find_best(deals, count))) {
                last[search.tried % AHEAD] = deal;
                try_row(&search, deal->draft->survival[deal->rows++]);
        }
        while (search.tried > search.best)
                last[--search.tried % AHEAD]->rows--;
        return search.best;
}

uint32_t deal_worth(const struct step_costs *costs, uint32_t rows, uint32_t tokens, float extra_ns,
                    const struct draft *draft, uint32_t most)
{
        struct search search = begin(costs, rows, tokens, extra_ns);

        while (goes_on(&search, most))
                try_row(&search, draft ? draft->survival[search.tried] : 1);
        return search.best;
}
