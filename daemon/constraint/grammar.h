/*
 * A compiled constraint: rules over lexemes.  The contract between the readers of schemas and
 * grammars, which make one, and the matcher, which follows it.
 *
 * A symbol is a lexeme (an expression over bytes) or a rule.  A rule has one of three forms:
 *
 *      alternatives    sequences of symbols
 *      list            elements with a separator, counted: a large count costs nothing
 *      object          keyed members, each at most once: a register has which ones are there
 *
 * The language is that of the rules as a context-free grammar: a lexeme ends wherever its
 * expression may end, not only where it is longest.  Rules may be recursive in any way.
 *
 * To make one: grammar_new(), then rules in any order, then grammar_seal().  Compilers of schemas,
 * expressions and other forms add to a grammar that exists, so it may have several of them, which
 * share its budgets.  Failures of the first steps, and budgets that are spent, are remembered:
 * grammar_seal() tells them.  Afterwards everything is read-only but the
 * tables of the lexer and its pool of expressions.  These grow while matchers read, within the
 * budget of `struct grammar_limits`.  So a grammar and all its matchers belong to one thread at a
 * time, and are handed over as one.  Another thread may only count references, outside of this
 * module.
 */
#ifndef CONSTRAINT_GRAMMAR_H
#define CONSTRAINT_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/constraint/lexer.h"
#include "daemon/constraint/regex-pool.h"

#define SYMBOL_NONE UINT32_MAX
#define SYMBOL_RULE 0x80000000u /* with the number of a rule; without: the number of a lexeme */
#define SYMBOL_END  0x40000000u /* behind a sequence, with the number of its rule */

struct grammar_limits {
        uint32_t terms;   /* of expressions, until it is sealed */
        uint32_t growth;  /* terms that matchers may add */
        uint32_t states;  /* of the lexer */
        uint32_t symbols; /* of all sequences */
        uint64_t fuel;    /* work to compile: terms made and derived */
};

extern const struct grammar_limits grammar_limits_default;

/* Elements: prefix[0] is the first one, ...; `rest` is each one behind these. */
struct grammar_list {
        uint32_t prefix, prefix_count; /* in `symbols` */
        uint32_t rest;                 /* SYMBOL_NONE: there are none behind the prefix */
        uint32_t separator;            /* SYMBOL_NONE: none */
        uint32_t min, max;             /* REGEX_FOREVER: no bound */
        uint32_t rule;                 /* set here, as the next */
        bool skips_empty; /* elements may be empty: then those that are empty are not counted */
};

/* A member's key, with all around it: two lexemes, one for the first member of an object. */
struct grammar_member {
        uint32_t first_key, next_key; /* lexemes; equal keys of two members are a bug */
        uint32_t value;               /* a symbol; SYMBOL_NONE: the member must not be there */
        bool required;
        bool repeats; /* stands for many keys: may come more than once */
};

/* Members come in their order, or in any if `any_order` is set; repeating ones are last. */
struct grammar_object {
        uint32_t members, member_count; /* in `members` */
        uint32_t needs, need_count;     /* in `needs`: pairs (if this is there, that is, too) */
        uint32_t min, max;              /* members; REGEX_FOREVER: no bound */
        uint32_t rule;                  /* set here */
        bool any_order;
};

enum rule_form {
        RULE_OPEN, /* not defined yet */
        RULE_ALTERNATIVES,
        RULE_LIST,
        RULE_OBJECT,
};

struct grammar_rule {
        enum rule_form form;
        uint32_t first; /* of `sequences`, or the index of a list or an object */
        bool nullable, productive;
};

struct grammar_sequence {
        uint32_t symbols, next; /* next: of the same rule; SYMBOL_NONE: the last */
};

struct grammar {
        struct regex_pool *pool;
        struct lexer lexer;
        struct grammar_limits limits;
        struct grammar_rule *rules;
        struct grammar_sequence *sequences;
        struct grammar_list *lists;
        struct grammar_object *objects;
        struct grammar_member *members;
        uint32_t *needs;
        uint32_t *symbols;
        uint32_t rule_count, sequence_count, list_count, object_count, member_count, need_count,
                symbol_count;
        uint32_t register_words; /* that the largest object needs */
        uint32_t root;
        int failed; /* -ENOMEM, or -E2BIG: a budget is spent */
};

/* NULL: out of memory. */
struct grammar *grammar_new(const struct grammar_limits *limits);
struct grammar *grammar_free(struct grammar *grammar); /* takes NULL */

/* A new rule, which is defined by one of the next three. */
uint32_t grammar_rule(struct grammar *grammar);
/* Adds an alternative; `count` may be 0. */
void grammar_add(struct grammar *grammar, uint32_t rule, const uint32_t *symbols, uint32_t count);
/* `prefix` of the list and the offsets of the object are set here. */
void grammar_set_list(struct grammar *grammar, uint32_t rule, struct grammar_list list,
                      const uint32_t *prefix);
void grammar_set_object(struct grammar *grammar, uint32_t rule, struct grammar_object object,
                        const struct grammar_member *members, const uint32_t *needs);
/* The symbol of an expression. */
uint32_t grammar_lexeme(struct grammar *grammar, uint32_t term);
/*
 * The symbol of an expression that ends the whole text.  It is the last symbol wherever a rule has
 * it, and so is that rule, up to the root.  Each of its texts can be longer.  Unlike a lexeme that
 * may end after each byte, it costs a matcher no rows.
 */
uint32_t grammar_tail(struct grammar *grammar, uint32_t term);

/*
 * A control token: no text can spell it.  As a lexeme it is one byte that UTF-8 does not have, and
 * its number.
 */
uint32_t grammar_token(struct grammar *grammar, uint32_t token);
#define TOKEN_LEAD  0xff
#define TOKEN_BYTES 6u /* what a matcher reads for a control token */
void grammar_token_bytes(uint32_t token, uint8_t ret_bytes[TOKEN_BYTES]);

/*
 * Completes it.  Alternatives that match no text are dropped.  Returns 0; -EINVAL if no text
 * matches at all; -E2BIG if a budget is spent; or -ENOMEM.  *why has a sentence then.
 */
int grammar_seal(struct grammar *grammar, uint32_t root, char *why, size_t why_bytes);

/* Ends a compilation that returned `r`, with this root: seals the grammar, or frees it. */
int grammar_finish(struct grammar *grammar, int r, uint32_t root, struct grammar **ret_grammar,
                   char *why, size_t why_bytes);

/*
 * Are its budgets, which all matchers share and which are not given back, used so far that only
 * work which is sure to be needed should be done?
 */
bool grammar_is_crowded(const struct grammar *grammar);

/* All memory that it has or may take. */
size_t grammar_bytes(const struct grammar *grammar);

#endif
