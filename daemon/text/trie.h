/*
 * Trie: finds which words of a set begin a text, one byte after another.
 *
 * It takes nine bytes of memory for each byte of its words at most.  Hostile words make it neither
 * larger nor slower: a step is a binary search among at most 256 bytes.  Read-only after it is
 * made; any thread may use it.
 */
#ifndef DAEMON_TEXT_TRIE_H
#define DAEMON_TEXT_TRIE_H

#include <stddef.h>
#include <stdint.h>

#define TRIE_NONE UINT32_MAX
#define TRIE_ROOT 0u

struct trie;

struct trie_word {
        const char *bytes; /* at least one */
        uint32_t count, value;
};

/*
 * Sorts the words.  Of equal words the one with the largest value counts.  They have less than
 * 2 GiB together.  0 or -ENOMEM.
 */
int trie_new(struct trie_word *words, uint32_t count, struct trie **ret_trie);
struct trie *trie_free(struct trie *trie); /* takes NULL */

/* The node behind this byte.  TRIE_NONE: no word goes on with it. */
uint32_t trie_step(const struct trie *trie, uint32_t node, char byte);

/* The value of the word that ends in this node.  TRIE_NONE: none does. */
uint32_t trie_value(const struct trie *trie, uint32_t node);

/* Bytes of the longest word that begins the text; 0: there is none. */
size_t trie_longest(const struct trie *trie, const char *text, size_t bytes, uint64_t *steps);

#endif
