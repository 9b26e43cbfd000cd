/*
 * Keys: what a person types, out of the bytes that a terminal sends.  A sequence may come in
 * pieces.  Sequences that mean nothing here are dropped whole, so that their letters are no keys.
 */
#ifndef CLI_TOP_KEYS_H
#define CLI_TOP_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* A character of ASCII is its own key; these are the others. */
enum key {
        KEY_UP = 256,
        KEY_DOWN,
        KEY_PAGE_UP,
        KEY_PAGE_DOWN,
        KEY_HOME,
        KEY_END,
        KEY_ESCAPE,
};

#define KEY_CTRL(letter) ((letter)&0x1f)

/* A sequence that is not whole after this time is the key Escape, or nothing. */
#define KEYS_WAIT_MS 50

struct keys {
        char bytes[64];
        size_t count;
};

/* Takes at most keys_room() bytes. */
size_t keys_room(const struct keys *keys);
void keys_add(struct keys *keys, const char *bytes, size_t count);
/* True: *ret_key is the next key.  False: there is none, or its end is missing (keys->count). */
bool keys_next(struct keys *keys, int *ret_key);
/* KEYS_WAIT_MS have passed: drops an unfinished sequence.  True: it is the key Escape. */
bool keys_give_up(struct keys *keys);

#endif
