/*
 * The private state of a tokenizer: for tokenizer-open.c, which makes it, and for encodings
 * (encoder.h).
 */
#ifndef DAEMON_TEXT_TOKENIZER_STATE_H
#define DAEMON_TEXT_TOKENIZER_STATE_H

#include "base/wordmap.h"
#include "daemon/model/vocabulary.h"
#include "daemon/text/added-tokens.h"
#include "daemon/text/cutter.h"
#include "daemon/text/expression/charset.h"
#include "daemon/text/merge.h"
#include "daemon/text/normaliser.h"
#include "daemon/text/trie.h"
#include "daemon/text/unigram.h"
#include "daemon/text/wordpiece.h"

struct tokenizer {
        enum vocabulary_kind kind;
        enum vocabulary_border border;
        struct cutter cutter;
        struct cutter letter_cutter; /* of the cuts that see letters: they divide its pieces */
        struct normaliser normaliser;
        enum vocabulary_blank blank;
        bool blank_once, whole_wins, unknown_run, squeezes, squeezes_all;
        bool keeps_bars; /* U+2581 is no blank */
        uint32_t vocab, entry_count, unknown, word_max;
        uint32_t byte_ids[256];  /* VOCABULARY_NONE: no entry is this byte */
        bool drops;              /* text may lack ids, and there is no unknown token */
        uint32_t shortest_added; /* bytes of the shortest added token; 0: there are none */
        size_t piece_max;
        char *bytes;           /* of all entries, one after another; see is_spaced() */
        uint32_t *begins;      /* offsets in `bytes`: entry_count + 1 of them */
        uint8_t *kinds;        /* enum entry_kind, by id */
        uint8_t *matching;     /* by id: ENTRY_STRIPS_LEFT and so on */
        struct charset word;   /* of words, beside which ENTRY_ALONE does not match */
        struct wordmap *words; /* the NORMAL entries; NULL: this tokenizer never looks them up */
        struct merge_table merges;
        struct unigram *unigram; /* NULL: another kind of vocabulary */
        struct trie *kept;       /* USER entries that normalising does not change; or NULL */
        struct wordpiece wordpiece;
        /*
         * users finds the USER entries; added finds these and the CONTROL entries.  late finds USER
         * entries in a fragment that was normalised, after its blanks were written if late_blanks.
         * NULL: there are none.
         */
        struct added_tokens *users, *added, *late;
        bool late_users;  /* all USER entries are late, as SentencePiece has it */
        bool no_users;    /* USER entries are found by their scores alone */
        bool blank_alone; /* a text that normalising has emptied gets its blank, too */
        bool late_blanks;
};

/*
 * Writes a copy with a blank in front, if `lead` and it gets one, and with blanks for bars; see
 * vocabulary.h.  `to` has room for one byte more.  Returns the bytes of the copy.
 */
size_t tokenizer_write_blanks(const struct tokenizer *t, const char *text, size_t bytes, bool lead,
                              char *to);

/*
 * A USER entry is one of the words of a text, too.  If words have a blank in front, `bytes` has one
 * before it, which is no part of its spelling.
 */
static inline bool is_spaced(const struct tokenizer *t, uint32_t id)
{
        return t->border == BORDER_FRONT && t->kinds[id] == ENTRY_USER;
}

/* True if a token of this kind is text that a reader sees. */
static inline bool entry_has_text(enum entry_kind kind)
{
        return kind != ENTRY_CONTROL && kind != ENTRY_UNKNOWN;
}

#endif
