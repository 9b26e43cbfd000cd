#include "daemon/constraint/matcher-inside.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/constraint/lexer.h"

bool inside_init(struct inside_cache *cache, uint32_t words)
{
        cache->words = words;
        for (unsigned i = 0; i <= INSIDE_KEPT; i++) {
                struct inside *inside = &cache->entries[i];

                inside->state = LEXER_DEAD;
                inside->exits = calloc(INSIDE_EXITS, sizeof(*inside->exits));
                inside->bits = calloc(words + 1ul, sizeof(*inside->bits));
                if (!inside->exits || !inside->bits)
                        return false;
        }
        return true;
}

void inside_deinit(struct inside_cache *cache)
{
        for (unsigned i = 0; i <= INSIDE_KEPT; i++) {
                free(cache->entries[i].exits);
                free(cache->entries[i].bits);
        }
}

size_t inside_bytes(const struct inside_cache *cache)
{
        return (INSIDE_KEPT + 1ul) * (INSIDE_EXITS * sizeof(struct inside_exit) +
                                      (cache->words + 1ul) * sizeof(uint32_t));
}

const struct inside *inside_find(struct inside_cache *cache, uint32_t state)
{
        for (unsigned i = 0; i <= INSIDE_KEPT; i++)
                if (cache->entries[i].state == state) {
                        cache->entries[i].used = ++cache->clock;
                        return &cache->entries[i];
                }
        return NULL;
}

struct inside *inside_begin(struct inside_cache *cache)
{
        struct inside *inside = &cache->entries[cache->spare];

        inside->state = LEXER_DEAD;
        inside->exit_count = 0;
        memset(inside->bits, 0, cache->words * sizeof(*inside->bits));
        return inside;
}

void inside_add_exit(struct inside *inside, struct inside_exit exit)
{
        if (inside->exit_count < INSIDE_EXITS)
                inside->exits[inside->exit_count] = exit;
        inside->exit_count++;
}

void inside_keep(struct inside_cache *cache, uint32_t state)
{
        struct inside *inside = &cache->entries[cache->spare];

        if (inside->exit_count > INSIDE_EXITS)
                return;
        inside->state = state;
        inside->used = ++cache->clock;
        for (unsigned i = 0; i <= INSIDE_KEPT; i++)
                if (cache->entries[i].used < cache->entries[cache->spare].used)
                        cache->spare = i;
        cache->entries[cache->spare].used = 0;
        cache->entries[cache->spare].state = LEXER_DEAD;
}
