#include "bridge/core/arena.h"

#include <stdarg.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 4096u

struct arena_block {
        struct arena_block *before;
        size_t used, size;
        alignas(max_align_t) char at[];
};

static struct arena_block *add_block(struct arena *arena, size_t bytes)
{
        size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        struct arena_block *block;

        if (size > SIZE_MAX / 2)
                return NULL;
        block = calloc(1, sizeof(*block) + size);
        if (!block)
                return NULL;
        block->size = size;
        block->before = arena->last;
        arena->last = block;
        return block;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
        struct arena_block *block = arena->last;
        size_t aligned = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
        void *at;

        if (arena->failed || aligned < bytes)
                return NULL;
        if (!block || block->size - block->used < aligned)
                block = add_block(arena, aligned);
        if (!block) {
                arena->failed = true;
                return NULL;
        }
        at = block->at + block->used;
        block->used += aligned;
        return at;
}

struct text arena_copy(struct arena *arena, const char *text, size_t bytes)
{
        char *at = arena_alloc(arena, bytes + 1);

        if (!at)
                return (struct text){ 0 };
        memcpy(at, text, bytes);
        return (struct text){ at, bytes };
}

struct text arena_format(struct arena *arena, const char *format, ...)
{
        va_list values;
        char *at = NULL;
        int count;

        va_start(values, format);
        count = vsnprintf(NULL, 0, format, values);
        va_end(values);
        if (count >= 0)
                at = arena_alloc(arena, (size_t)count + 1);
        if (!at)
                return (struct text){ 0 };
        va_start(values, format);
        vsnprintf(at, (size_t)count + 1, format, values);
        va_end(values);
        return (struct text){ at, (size_t)count };
}

void arena_deinit(struct arena *arena)
{
        struct arena_block *before;

        for (struct arena_block *block = arena->last; block; block = before) {
                before = block->before;
                free(block);
        }
        *arena = (struct arena){ 0 };
}
