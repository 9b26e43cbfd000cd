/* The inside of a pool, for the files regex-*.c of terms only. */
#ifndef CONSTRAINT_REGEX_TERMS_H
#define CONSTRAINT_REGEX_TERMS_H

#include "daemon/constraint/regex-pool.h"

#define DEPTH_MAX       1000u /* of terms: deriving recurses that far */
#define CHILDREN_A_TERM 4u    /* on the average */
#define MEMO_SLOTS      (1u << 14)
#define SETS_MAX        4096u
#define NUMBERS_MAX     4096u
#define SCRATCH_SIZE    (1u << 16)

enum term_kind {
        TERM_NONE,
        TERM_EMPTY,
        TERM_SET,    /* a: the set */
        TERM_CONCAT, /* a, then b */
        TERM_OR,     /* b children from a, sorted */
        TERM_AND,
        TERM_NOT,    /* of a */
        TERM_REPEAT, /* of a, from b to c times */
        TERM_NUMBER, /* a: the range; b, c: the state */
};

enum term_life {
        LIFE_UNKNOWN,
        LIFE_ALIVE,
        LIFE_DEAD,
};

struct term {
        uint8_t kind, life;
        bool nullable;
        bool finite;  /* matches finitely many texts; false: perhaps not */
        bool complex; /* an intersection or a complement is inside: is it alive? */
        uint32_t depth;
        uint32_t a, b, c;
        uint32_t chain; /* of the hash; 0: the last */
};

struct memo {
        uint32_t term, byte, result;
};

struct regex_pool {
        struct term *terms;
        uint32_t *buckets;
        uint32_t *children;
        struct byte_set *sets;
        struct number_range *numbers;
        struct memo *memo;
        uint32_t *scratch; /* a stack of children that are being collected */
        uint32_t term_count, terms_max, bucket_mask, child_count, children_max, set_count,
                number_count, scratch_count;
        uint32_t room; /* terms that it could take when regex_pool_limit() was called */
        enum regex_spent spent;
        uint64_t fuel;
        uint32_t plain_asked; /* the last character that regex_plain() looked at */
        bool plain_answer;
        uint8_t class_of[256]; /* by the first sets, and by numbers: regex_classes() */
        uint32_t classed_sets; /* how many sets */
        unsigned classes;      /* 0: not asked yet */
        bool classed_numbers;
};

uint32_t pool_fail(struct regex_pool *pool, enum regex_spent spent);
uint32_t pool_number(struct regex_pool *pool, uint32_t range, struct number_state state);
/* The union or intersection of the terms on the scratch stack from `base`, which are taken off. */
uint32_t pool_combine(struct regex_pool *pool, enum term_kind kind, uint32_t base);
bool pool_push(struct regex_pool *pool, uint32_t term);

#endif
