/*
 * What a tokenizer is inside: for tokenizer-open.c, which makes it, and tokenizer.c.
 */
#ifndef DAEMON_TEXT_TOKENIZER_STATE_H
#define DAEMON_TEXT_TOKENIZER_STATE_H

#include "daemon/text/matcher.h"
#include "daemon/text/merge.h"
#include "daemon/text/tokenizer.h"
#include "daemon/wordmap.h"

struct tokenizer {
        enum vocabulary_kind kind;
        enum vocabulary_splitter splitter;
        enum vocabulary_normaliser normaliser;
        enum vocabulary_blank blank;
        bool blank_once, whole_wins, unknown_run, squeezes;
        uint32_t vocab, entry_count, unknown;
        uint32_t byte_ids[256];  /* all of them, or all VOCABULARY_NONE */
        uint32_t shortest_added; /* bytes; 0: nothing is added */
        size_t piece_max;
        char *bytes;           /* of all pieces, one after another */
        uint32_t *begins;      /* in bytes: entry_count + 1 of them */
        uint8_t *strips;       /* by id */
        struct wordmap *words; /* the NORMAL entries; NULL: nobody looks for them */
        struct merge_book book;
        /*
         * USER entries, and CONTROL beside them; NULL: there are none.  late_users: USER
         * entries are found in a fragment once its blanks are as they should be.
         */
        struct matcher *users, *added;
        bool late_users;
};

#endif
