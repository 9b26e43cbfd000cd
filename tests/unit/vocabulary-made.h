/*
 * The results of vocabulary readers, or their error sentences.  A bad file is a good one with
 * one place changed, and the sentence names the fault.
 */
#ifndef TESTS_UNIT_VOCABULARY_MADE_H
#define TESTS_UNIT_VOCABULARY_MADE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "daemon/files/splitters.h"
#include "daemon/files/vocabulary.h"

static struct vocabulary *made;
static char why[256];

static inline void said(int r, const char *what)
{
        assert_int_equal(r, -EINVAL);
        if (!strstr(why, what))
                fail_msg("'%s' is not said in: %s", what, why);
        for (const char *c = why; *c; c++)
                assert_in_range(*c, ' ', '~');
}

static inline void good(int r)
{
        if (r)
                fail_msg("%s", why);
}

static inline void check_entry(uint32_t id, const char *text, enum entry_kind kind)
{
        assert_true(id < made->entry_count);
        assert_int_equal(made->entries[id].count, strlen(text));
        assert_memory_equal(made->entries[id].bytes, text, strlen(text));
        assert_int_equal(made->entries[id].kind, kind);
}

static inline void check_split(const char *name)
{
        assert_string_equal(splitter_name_of(made->cuts, made->cut_count), name);
}

static inline void check_merge(uint32_t rank, uint32_t left, uint32_t right, uint32_t result)
{
        assert_true(rank < made->merge_count);
        assert_int_equal(made->merges[rank].left, left);
        assert_int_equal(made->merges[rank].right, right);
        assert_int_equal(made->merges[rank].result, result);
}

#endif
