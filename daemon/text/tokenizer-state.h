/*
 * The private state of a tokenizer: for tokenizer-open.c, which makes it, and tokenizer.c.
 */
#ifndef DAEMON_TEXT_TOKENIZER_STATE_H
#define DAEMON_TEXT_TOKENIZER_STATE_H

#include "base/wordmap.h"
#include "daemon/model/vocabulary.h"
#include "daemon/text/added-tokens.h"
#include "daemon/text/cutter.h"
#include "daemon/text/merge.h"

struct tokenizer {
        enum vocabulary_kind kind;
        struct cutter cutter;
        enum vocabulary_normaliser normaliser;
        enum vocabulary_blank blank;
        bool blank_once, whole_wins, unknown_run, squeezes;
        uint32_t vocab, entry_count, unknown;
        uint32_t byte_ids[256];  /* VOCABULARY_NONE: no entry is this byte */
        uint32_t shortest_added; /* bytes of the shortest added token; 0: there are none */
        size_t piece_max;
        char *bytes;           /* of all entries, one after another */
        uint32_t *begins;      /* offsets in `bytes`: entry_count + 1 of them */
        uint8_t *kinds;        /* enum entry_kind, by id */
        uint8_t *strips;       /* by id */
        struct wordmap *words; /* the NORMAL entries; NULL: this tokenizer never looks them up */
        struct merge_table merges;
        /*
         * users finds the USER entries; added finds the CONTROL entries and, unless late_users, the
         * USER entries.  NULL: there are none.
         * late_users: USER entries are searched in a fragment after its blanks were written.
         */
        struct added_tokens *users, *added;
        bool late_users;
};

/* True if a token of this kind is text that a reader sees. */
static inline bool entry_has_text(enum entry_kind kind)
{
        return kind != ENTRY_CONTROL && kind != ENTRY_UNKNOWN;
}

#endif
