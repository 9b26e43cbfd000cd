/*
 * Automata: tables that read a text once, a class of characters at a time.
 *
 * The forward automaton finds where a match that begins at a given place ends.  Of all matches it
 * finds the one that a program which tries alternatives in order finds first, not the longest.  It
 * learns of a match with the character behind it, because a condition may ask for that one.
 *
 * The backward automaton of a look reads the text from its end.  It says for each place whether
 * the look matches from there on.
 *
 * A column is a class, or `classes` at the end (or begin) of the text, plus (classes + 1) times
 * the bits of the looks at that place.
 */
#ifndef DAEMON_TEXT_EXPRESSION_AUTOMATON_H
#define DAEMON_TEXT_EXPRESSION_AUTOMATON_H

#include "daemon/text/expression/classes.h"
#include "daemon/text/expression/program.h"

#define AUTOMATON_STATES_MAX 16384u
#define AUTOMATON_BYTES_MAX  (16u << 20)
#define AUTOMATON_DEAD       0u /* the state that no match leaves */

struct automaton {
        uint32_t columns, states;
        /*
         * [state * columns + column]: the next state, times 2.  Forward: plus 1 if a match ends
         * before this character.  Backward: plus 1 if the look matches from here on.
         */
        uint32_t *next;
        /* Forward: the state at the begin of a match, by the class before it (or none). */
        uint32_t starts[CLASSES_MAX + 1];
        uint32_t start; /* backward: the state at the end of the text */
        bool remembers; /* starts[] are not all the same */
        /*
         * Forward: it may read on without end where no match ends.  Then one that begins at each
         * place takes quadratic time, unless the reader prevents it.
         */
        bool overruns;
};

/* 0, -EINVAL with the fault in *why, or -ENOMEM. */
int automaton_forward(struct automaton *ret_automaton, const struct program *program,
                      const struct classes *classes, char *why, size_t why_bytes);
int automaton_backward(struct automaton *ret_automaton, const struct program *program,
                       const struct classes *classes, uint32_t look, char *why, size_t why_bytes);
void automaton_deinit(struct automaton *automaton); /* all zero is fine */

#endif
