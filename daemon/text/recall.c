/*
 * Each chunk can be in one slot only.  The hash is a fast one without a secret.  A client that
 * makes chunks collide only slows down its own text, to the speed that it has without a cache.
 */
#include "daemon/text/recall.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/error.h"

#define TEXT_BYTES_MIN 512u
#define SLOTS_MAX      4096u

int recall_init(struct recall *recall, size_t text_bytes)
{
        uint32_t slots = 64;

        *recall = (struct recall){ 0 };
        if (text_bytes < TEXT_BYTES_MIN)
                return 0;
        while (slots < SLOTS_MAX && slots < text_bytes / 8)
                slots *= 2;
        recall->slots = calloc(slots, sizeof(*recall->slots));
        if (!recall->slots)
                return error_raise(-ENOMEM);
        recall->mask = slots - 1;
        return 0;
}

void recall_deinit(struct recall *recall)
{
        free(recall->slots);
        *recall = (struct recall){ 0 };
}

static uint64_t eight(const char *bytes)
{
        uint64_t word;

        memcpy(&word, bytes, sizeof(word));
        return word;
}

static uint32_t four(const char *bytes)
{
        uint32_t word;

        memcpy(&word, bytes, sizeof(word));
        return word;
}

/* Reads all bytes of the chunk, some of them twice, and none outside of it. */
static uint64_t hash(const char *bytes, size_t count)
{
        uint64_t a, b, h;

        if (count >= 8) {
                a = eight(bytes) ^ (count > 16 ? eight(bytes + 8) * 0x9e3779b97f4a7c15u : 0);
                b = eight(bytes + count - 8);
        } else if (count >= 4) {
                a = four(bytes);
                b = four(bytes + count - 4);
        } else {
                a = (uint8_t)bytes[0] | (uint64_t)(uint8_t)bytes[count / 2] << 8;
                b = (uint8_t)bytes[count - 1];
        }
        h = (a + count) * 0x9e3779b97f4a7c15u;
        h = (h ^ h >> 29 ^ b) * 0xbf58476d1ce4e5b9u;
        return h ^ h >> 32;
}

static struct recalled *slot_of(const struct recall *recall, const char *bytes, size_t count)
{
        return &recall->slots[hash(bytes, count) & recall->mask];
}

const struct recalled *recall_find(const struct recall *recall, const char *bytes, size_t count)
{
        const struct recalled *slot;

        assert(count);
        if (!recall->slots || count > RECALL_BYTES)
                return NULL;
        slot = slot_of(recall, bytes, count);
        return slot->byte_count == count && !memcmp(slot->bytes, bytes, count) ? slot : NULL;
}

void recall_keep(struct recall *recall, const char *bytes, size_t count, const uint32_t *ids,
                 size_t id_count)
{
        struct recalled *slot;

        assert(count);
        if (!recall->slots || count > RECALL_BYTES || id_count > RECALL_IDS)
                return;
        slot = slot_of(recall, bytes, count);
        slot->byte_count = (uint8_t)count;
        slot->id_count = (uint8_t)id_count;
        memcpy(slot->bytes, bytes, count);
        memcpy(slot->ids, ids, id_count * sizeof(*ids));
}
