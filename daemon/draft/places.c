/*
 * Tables and chains have the low 32 bits of positions.  An entry may be left over from tokens that
 * gave way, even from a text that was forgotten.  It counts only if it is the position of a token
 * that is still there; and then the tokens are compared.
 */
#include "daemon/draft/places.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define CHAIN_MAX 16u /* places of a chain that are tried */

struct places {
        uint32_t tokens, mask;           /* of the text and of the tables: a power of two - 1 */
        uint64_t begin, end, indexed_to; /* positions */
        uint32_t *text;
        uint32_t *before; /* by the last token before a place: the place before it in the chain */
        uint32_t *latest_short, *latest_long; /* by hash */
};

/* The last tokens of a text, hashed. */
struct hashes {
        uint32_t of_short, of_long;
};

struct found {
        uint64_t position;
        uint32_t alike;
};

size_t places_bytes(uint32_t tokens)
{
        return sizeof(struct places) +
               (2 * (size_t)tokens + 2 * (size_t)places_power(tokens)) * sizeof(uint32_t);
}

int places_new(uint32_t tokens, struct places **ret_places)
{
        struct places *places = calloc(1, places_bytes(tokens));
        uint32_t size = places_power(tokens);

        assert(tokens && tokens <= UINT32_MAX / 8);
        if (!places)
                return error_raise(-ENOMEM);
        places->tokens = tokens;
        places->mask = size - 1;
        places->text = (uint32_t *)(places + 1);
        places->before = places->text + tokens;
        places->latest_short = places->before + tokens;
        places->latest_long = places->latest_short + size;
        *ret_places = places;
        return 0;
}

struct places *places_free(struct places *places)
{
        free(places);
        return NULL;
}

void places_begin(struct places *places, uint64_t position)
{
        places->begin = places->end = places->indexed_to = position;
}

static uint64_t oldest(const struct places *places)
{
        return places->end - places->begin > places->tokens ? places->end - places->tokens
                                                            : places->begin;
}

void places_append(struct places *places, const uint32_t *tokens, uint32_t count)
{
        uint32_t at, part;

        assert(places->tokens == places->mask + 1 || places->end + count <= places->tokens);
        if (count > places->tokens) {
                places->end += count - places->tokens;
                tokens += count - places->tokens;
                count = places->tokens;
        }
        at = (uint32_t)places->end & places->mask;
        part = count < places->tokens - at ? count : places->tokens - at;
        memcpy(places->text + at, tokens, part * sizeof(*tokens));
        memcpy(places->text, tokens + part, (count - part) * sizeof(*tokens));
        places->end += count;
}

/* ---- the index ---- */

/* A hash goes from the last token back, so that the long one goes on from the short one. */
static uint64_t add_to_hash(uint64_t hash, uint32_t token)
{
        hash = (hash ^ token) * UINT64_C(0x9E3779B97F4A7C15);
        return hash ^ hash >> 32;
}

static uint32_t fold(const struct places *places, uint64_t hash)
{
        return (uint32_t)hash & places->mask;
}

static uint32_t text_at(const struct places *places, uint64_t position)
{
        return places->text[(uint32_t)position & places->mask];
}

/* The long one is of no use if there are fewer tokens. */
static struct hashes hash_text(const struct places *places, uint64_t end, uint64_t count)
{
        struct hashes hashes = { 0 };
        uint64_t hash = 0;
        uint32_t i = 0;

        for (; i < PLACES_SHORT; i++)
                hash = add_to_hash(hash, text_at(places, end - 1 - i));
        hashes.of_short = fold(places, hash);
        for (; i < PLACES_LONG && count >= PLACES_LONG; i++)
                hash = add_to_hash(hash, text_at(places, end - 1 - i));
        hashes.of_long = fold(places, hash);
        return hashes;
}

static struct hashes hash_tokens(const struct places *places, const uint32_t *end, uint32_t count)
{
        struct hashes hashes = { 0 };
        uint64_t hash = 0;
        uint32_t i = 0;

        for (; i < PLACES_SHORT; i++)
                hash = add_to_hash(hash, *--end);
        hashes.of_short = fold(places, hash);
        for (; i < PLACES_LONG && count >= PLACES_LONG; i++)
                hash = add_to_hash(hash, *--end);
        hashes.of_long = fold(places, hash);
        return hashes;
}

/* The place behind the token at this position. */
static void index_token(struct places *places, uint64_t position, uint64_t from)
{
        uint64_t place = position + 1, before = place - from;
        struct hashes hashes;

        if (before < PLACES_SHORT)
                return;
        hashes = hash_text(places, place, before);
        places->before[(uint32_t)position & places->mask] = places->latest_short[hashes.of_short];
        places->latest_short[hashes.of_short] = (uint32_t)place;
        if (before >= PLACES_LONG)
                places->latest_long[hashes.of_long] = (uint32_t)place;
}

uint32_t places_index(struct places *places, uint32_t most)
{
        uint64_t from = oldest(places), missing;

        if (places->indexed_to < from)
                places->indexed_to = from;
        missing = places->end - places->indexed_to;
        for (uint32_t i = 0; i < most && i < missing; i++)
                index_token(places, places->indexed_to++, from);
        return (uint32_t)(places->end - places->indexed_to);
}

/* ---- reading ---- */

uint64_t places_end(const struct places *places)
{
        return places->end;
}

uint32_t places_token(const struct places *places, uint64_t position)
{
        return position >= oldest(places) && position < places->end ? text_at(places, position)
                                                                    : PLACES_GAP;
}

uint32_t places_read(const struct places *places, uint64_t position, uint32_t most,
                     uint32_t *ret_tokens)
{
        uint32_t count = 0, token;

        while (count < most && (token = places_token(places, position + count)) != PLACES_GAP)
                ret_tokens[count++] = token;
        return count;
}

uint32_t places_alike(const struct places *places, uint64_t position, const uint32_t *end,
                      uint32_t count)
{
        uint64_t from = oldest(places);
        uint32_t alike = 0;

        if (position > places->end)
                return 0;
        while (alike < count && position > from && text_at(places, position - 1) == *--end) {
                position--;
                alike++;
        }
        return alike;
}

uint32_t places_scan(const struct places *places, uint64_t from, uint64_t to, const uint32_t *end,
                     uint32_t count, uint64_t *ret_position)
{
        uint32_t best = 0, most = count < PLACES_ALIKE ? count : PLACES_ALIKE;

        from = from > oldest(places) ? from : oldest(places) + 1;
        to = to <= places->end ? to : places->end + 1;
        for (uint64_t at = from; most && at < to; at++) {
                uint32_t alike;

                if (text_at(places, at - 1) != end[-1])
                        continue;
                alike = places_alike(places, at, end, most);
                if (alike <= best)
                        continue;
                best = alike;
                *ret_position = at;
        }
        return best;
}

/* The place of an entry.  False: it is none of the text. */
static bool to_place(const struct places *places, uint32_t entry, uint64_t *ret_position)
{
        uint64_t position = places->indexed_to - (uint32_t)((uint32_t)places->indexed_to - entry);

        *ret_position = position;
        return position > oldest(places) && position <= places->indexed_to;
}

static void try_place(const struct places *places, uint64_t position, const uint32_t *end,
                      uint32_t count, uint64_t after, struct found *best)
{
        uint32_t alike = places_alike(places, position, end, count);
        bool is_next = position > after && (best->position <= after || position < best->position);

        if (alike < PLACES_SHORT || alike < best->alike || (alike == best->alike && !is_next))
                return;
        *best = (struct found){ .position = position, .alike = alike };
}

uint32_t places_find(const struct places *places, const uint32_t *end, uint32_t count,
                     uint64_t after, uint64_t *ret_position)
{
        struct found best = { 0 };
        struct hashes hashes;
        uint64_t position, last = UINT64_MAX;
        uint32_t entry;

        if (count < PLACES_SHORT)
                return 0;
        hashes = hash_tokens(places, end, count);
        if (count > PLACES_ALIKE)
                count = PLACES_ALIKE;
        if (count >= PLACES_LONG &&
            to_place(places, places->latest_long[hashes.of_long], &position))
                try_place(places, position, end, count, after, &best);
        entry = places->latest_short[hashes.of_short];
        for (uint32_t i = 0; i < CHAIN_MAX; i++) {
                if (!to_place(places, entry, &position) || position >= last)
                        break;
                try_place(places, position, end, count, after, &best);
                last = position;
                entry = places->before[(uint32_t)(position - 1) & places->mask];
        }
        *ret_position = best.position;
        return best.alike;
}
