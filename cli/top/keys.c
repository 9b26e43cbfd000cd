#include "cli/top/keys.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define ESCAPE '\x1b'

size_t keys_room(const struct keys *keys)
{
        return sizeof(keys->bytes) - keys->count;
}

void keys_add(struct keys *keys, const char *bytes, size_t count)
{
        assert(count <= keys_room(keys));
        memcpy(keys->bytes + keys->count, bytes, count);
        keys->count += count;
}

static void drop(struct keys *keys, size_t count)
{
        keys->count -= count;
        memmove(keys->bytes, keys->bytes + count, keys->count);
}

/* The key of "ESC [ 5 ~"; 0: none of ours. */
static int key_of_number(int number)
{
        switch (number) {
        case 1:
        case 7:
                return KEY_HOME;
        case 4:
        case 8:
                return KEY_END;
        case 5:
                return KEY_PAGE_UP;
        case 6:
                return KEY_PAGE_DOWN;
        default:
                return 0;
        }
}

/* The key of the last letter of "ESC [ A", "ESC [ 1 ; 5 A" or "ESC O A"; 0: none of ours. */
static int key_of_letter(char letter)
{
        switch (letter) {
        case 'A':
                return KEY_UP;
        case 'B':
                return KEY_DOWN;
        case 'H':
                return KEY_HOME;
        case 'F':
                return KEY_END;
        default:
                return 0;
        }
}

/*
 * The bytes of the sequence at the front, which begins with ESC; 0: its end is missing.  ESC and
 * another character is a key with Alt, which has no meaning here.
 */
static size_t sequence_length(const struct keys *keys)
{
        size_t at = 2;

        if (keys->count < 2)
                return 0;
        if (keys->bytes[1] == 'O')
                return keys->count < 3 ? 0 : 3;
        if (keys->bytes[1] != '[')
                return keys->bytes[1] == ESCAPE ? 1 : 2;
        while (at < keys->count && (keys->bytes[at] < '@' || keys->bytes[at] > '~'))
                at++;
        if (at < keys->count)
                return at + 1;
        return keys->count == sizeof(keys->bytes) ? keys->count : 0; /* no terminal sends that */
}

static int key_of_sequence(const char *sequence, size_t length)
{
        char last = sequence[length - 1];

        if (length == 1)
                return KEY_ESCAPE;
        if (sequence[1] != '[' && sequence[1] != 'O')
                return 0;
        return last == '~' ? key_of_number(atoi(sequence + 2)) : key_of_letter(last);
}

bool keys_next(struct keys *keys, int *ret_key)
{
        size_t length;

        while (keys->count) {
                if (keys->bytes[0] != ESCAPE) {
                        *ret_key = (unsigned char)keys->bytes[0];
                        drop(keys, 1);
                        if (*ret_key < 128) /* not a piece of a character beyond ASCII */
                                return true;
                        continue;
                }
                length = sequence_length(keys);
                if (!length)
                        return false;
                *ret_key = key_of_sequence(keys->bytes, length);
                drop(keys, length);
                if (*ret_key)
                        return true;
        }
        return false;
}

bool keys_give_up(struct keys *keys)
{
        bool alone = keys->count == 1;

        keys->count = 0;
        return alone;
}
