/*
 * A vocabulary written by hand: the 256 bytes first, then the entries that a test adds.
 */
#ifndef TESTS_UNIT_VOCABULARY_RIG_H
#define TESTS_UNIT_VOCABULARY_RIG_H

#include "daemon/files/splitters.h"
#include "tests/unit/texts.h"

#define RIG_ENTRIES 600u
#define RIG_MERGES  100u

struct rig {
        struct vocabulary v;
        struct entry entries[RIG_ENTRIES];
        struct merge merges[RIG_MERGES];
        char bytes[256];
        char why[256];
};

static inline uint32_t rig_add(struct rig *rig, const char *text, enum entry_kind kind,
                               double score)
{
        assert_true(rig->v.entry_count < RIG_ENTRIES);
        rig->entries[rig->v.entry_count] =
                (struct entry){ text, (uint32_t)strlen(text), score, (uint8_t)kind, 0 };
        return rig->v.entry_count++;
}

/* Splits texts as the tokenizer of that name does. */
static inline void rig_split(struct rig *rig, const char *name)
{
        const struct splitter *splitter = splitter_named(name);

        assert_non_null(splitter);
        rig->v.cuts = splitter->cuts;
        rig->v.cut_count = splitter->cut_count;
}

static inline void rig_begin(struct rig *rig, enum vocabulary_kind kind)
{
        memset(rig, 0, sizeof(*rig));
        rig->v = (struct vocabulary){ .kind = kind,
                                      .by_score = kind == VOCABULARY_CHARACTERS,
                                      .bos = VOCABULARY_NONE,
                                      .eos = VOCABULARY_NONE,
                                      .unknown = VOCABULARY_NONE,
                                      .entries = rig->entries,
                                      .merges = rig->merges };
        for (unsigned b = 0; b < 256; b++) {
                rig->bytes[b] = (char)b;
                rig->entries[b] =
                        (struct entry){ &rig->bytes[b], 1, 0,
                                        kind == VOCABULARY_BYTE_LEVEL ? ENTRY_NORMAL : ENTRY_BYTE,
                                        0 };
        }
        rig->v.entry_count = 256;
}

static inline uint32_t rig_find(const struct rig *rig, const char *text, size_t bytes)
{
        for (uint32_t id = 0; id < rig->v.entry_count; id++)
                if (rig->entries[id].kind != ENTRY_BYTE && rig->entries[id].count == bytes &&
                    !memcmp(rig->entries[id].bytes, text, bytes))
                        return id;
        fail_msg("no entry '%.*s'", (int)bytes, text);
        return 0;
}

/* Adds the next merge, such as "th+e"; also adds its result if that is missing. */
static inline uint32_t rig_merge(struct rig *rig, const char *pair, const char *result)
{
        size_t left = strcspn(pair, "+");
        uint32_t id = VOCABULARY_NONE;

        for (uint32_t i = 256; i < rig->v.entry_count; i++)
                if (!strcmp(rig->entries[i].bytes, result))
                        id = i;
        if (id == VOCABULARY_NONE)
                id = rig_add(rig, result, ENTRY_NORMAL, 0);
        assert_true(rig->v.merge_count < RIG_MERGES);
        rig->merges[rig->v.merge_count++] =
                (struct merge){ rig_find(rig, pair, left),
                                rig_find(rig, pair + left + 1, strlen(pair + left + 1)), id };
        return id;
}

static inline struct tokenizer *rig_open(struct rig *rig)
{
        struct tokenizer *tokenizer = NULL;

        if (tokenizer_open(&rig->v, rig->v.entry_count, &tokenizer, rig->why, sizeof(rig->why)))
                fail_msg("%s", rig->why);
        return tokenizer;
}

/*
 * Expects a text's entries with '|' between them.  An entry without text is shown as its id,
 * [300].
 */
static inline void rig_expect_parts(const struct tokenizer *tokenizer, const char *text,
                                    const struct text_part *parts, size_t part_count,
                                    const char *wanted)
{
        struct encoding how = { .controls = parts, .control_count = part_count };
        size_t count, used = 0;
        uint32_t *ids = texts_encode(tokenizer, text, strlen(text), &how, &count);
        char got[1024];

        for (size_t i = 0; i < count; i++) {
                size_t bytes;
                const char *piece = tokenizer_piece(tokenizer, ids[i], &bytes);

                used += (size_t)snprintf(got + used, sizeof(got) - used, "%s%.*s", i ? "|" : "",
                                         (int)bytes, piece);
                if (!bytes)
                        used += (size_t)snprintf(got + used, sizeof(got) - used, "[%u]", ids[i]);
        }
        got[used] = '\0';
        assert_string_equal(got, wanted);
        free(ids);
}

/* The same, with controls recognised nowhere, or everywhere. */
static inline void rig_expect(const struct tokenizer *tokenizer, const char *text, bool controls,
                              const char *wanted)
{
        rig_expect_parts(tokenizer, text, &text_whole, controls, wanted);
}

#endif
