#include "daemon/draft/answers.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

struct ring {
        uint64_t domain;
        uint64_t used; /* 0: it is of no domain */
        struct places *places;
};

struct answers {
        uint64_t uses; /* to tell which ring was used last */
        uint32_t next; /* the ring that is indexed next */
        struct ring rings[ANSWERS_DOMAINS];
};

size_t answers_bytes(uint32_t tokens)
{
        return sizeof(struct answers) + ANSWERS_DOMAINS * places_bytes(places_power(tokens));
}

int answers_new(uint32_t tokens, struct answers **ret_answers)
{
        struct answers *answers = calloc(1, sizeof(*answers));
        int r = answers ? 0 : error_raise(-ENOMEM);

        assert(tokens);
        for (uint32_t i = 0; i < ANSWERS_DOMAINS && !r; i++)
                r = places_new(places_power(tokens), &answers->rings[i].places);
        if (r) {
                answers_free(answers);
                return error_pass(r);
        }
        *ret_answers = answers;
        return 0;
}

struct answers *answers_free(struct answers *answers)
{
        for (uint32_t i = 0; answers && i < ANSWERS_DOMAINS; i++)
                places_free(answers->rings[i].places);
        free(answers);
        return NULL;
}

static struct ring *find(struct answers *answers, uint64_t domain)
{
        for (uint32_t i = 0; i < ANSWERS_DOMAINS; i++)
                if (answers->rings[i].used && answers->rings[i].domain == domain)
                        return &answers->rings[i];
        return NULL;
}

/* Its positions begin behind those of all rings, so that none of theirs is valid in it. */
static struct ring *take_oldest(struct answers *answers, uint64_t domain)
{
        struct ring *oldest = answers->rings;
        uint64_t end = 0;

        for (uint32_t i = 0; i < ANSWERS_DOMAINS; i++) {
                struct ring *ring = &answers->rings[i];

                if (ring->used < oldest->used)
                        oldest = ring;
                if (places_end(ring->places) > end)
                        end = places_end(ring->places);
        }
        places_begin(oldest->places, end + 1);
        oldest->domain = domain;
        return oldest;
}

void answers_add(struct answers *answers, uint64_t domain, const uint32_t *tokens, uint32_t count)
{
        static const uint32_t gap = PLACES_GAP;
        struct ring *ring = find(answers, domain);

        if (!count)
                return;
        if (!ring)
                ring = take_oldest(answers, domain);
        ring->used = ++answers->uses;
        places_append(ring->places, tokens, count);
        places_append(ring->places, &gap, 1);
}

uint32_t answers_index(struct answers *answers, uint32_t most)
{
        uint32_t done = 0;

        for (uint32_t i = 0; i < ANSWERS_DOMAINS && done < most; i++) {
                struct places *places = answers->rings[answers->next].places;
                uint32_t missing = places_index(places, 0), left;

                left = places_index(places, most - done);
                done += missing - left;
                if (!left)
                        answers->next = (answers->next + 1) % ANSWERS_DOMAINS;
        }
        return done;
}

const struct places *answers_of(struct answers *answers, uint64_t domain)
{
        struct ring *ring = find(answers, domain);

        if (!ring)
                return NULL;
        ring->used = ++answers->uses;
        return ring->places;
}
