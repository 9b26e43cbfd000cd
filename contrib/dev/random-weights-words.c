#include "contrib/dev/random-weights-words.h"

#include <assert.h>
#include <string.h>

#define BYTES      256u
#define LETTERS    26u
#define FIRSTS     (LETTERS + 1) /* a blank may come first */
#define WORD_MAX   16u           /* letters */
#define NAME_BYTES (2 * WORD_MAX + 32)

enum { TYPE_NORMAL = 1, TYPE_CONTROL = 3 };

/* Bytes are written as letters: printable ones as themselves, the others as letters after
 * Latin-1. */
static unsigned letter_of(unsigned byte)
{
        unsigned code = 256;

        if ((byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xff && byte != 0xad))
                return byte;
        for (unsigned b = 0; b < byte; b++)
                code += !((b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xff && b != 0xad));
        return code;
}

/* Writes the letter in UTF-8. */
static char *put_byte(char *to, unsigned byte)
{
        unsigned code = letter_of(byte);

        if (code >= 0x80) {
                *to++ = (char)(0xc0 | code >> 6);
                code = 0x80 | (code & 0x3f);
        }
        *to++ = (char)code;
        return to;
}

/*
 * There are FIRSTS * LETTERS^(letters - 1) words of `letters` letters, sorted by their letters.
 * The word with one letter less has the number n / LETTERS among those.
 */
static unsigned word_letters(uint32_t token, uint32_t *ret_number)
{
        uint32_t n = token - BYTES, many = FIRSTS * LETTERS;
        unsigned letters = 2;

        for (; n >= many; many *= LETTERS) {
                n -= many;
                letters++;
        }
        *ret_number = n;
        return letters;
}

static char *put_word(char *to, unsigned letters, uint32_t number)
{
        unsigned last = number % LETTERS;

        if (letters == 1)
                return put_byte(to, number == LETTERS ? ' ' : 'a' + number);
        to = put_word(to, letters - 1, number / LETTERS);
        return put_byte(to, 'a' + last);
}

static void token_name(uint32_t token, uint32_t normal, char *name)
{
        uint32_t number;
        char *end;

        if (token == normal || token == normal + 1) {
                strcpy(name, token == normal ? "<|begin_of_text|>" : "<|end_of_text|>");
                return;
        }
        if (token > normal) {
                snprintf(name, NAME_BYTES, "<|reserved_%u|>", token - normal);
                return;
        }
        if (token < BYTES) {
                end = put_byte(name, token);
        } else {
                unsigned letters = word_letters(token, &number);

                end = put_word(name, letters, number);
        }
        *end = '\0';
}

static void merge_name(uint32_t token, char *name)
{
        uint32_t number;
        unsigned letters = word_letters(token, &number);
        char *end = put_word(name, letters - 1, number / LETTERS);

        *end++ = ' ';
        end = put_byte(end, 'a' + number % LETTERS);
        *end = '\0';
}

void words_out(struct out *o, uint32_t vocab, uint32_t controls)
{
        uint32_t normal = vocab - controls;
        char name[NAME_BYTES];

        assert(normal >= BYTES && controls >= 2);
        out_pair_strings(o, "tokenizer.ggml.tokens", vocab);
        for (uint32_t t = 0; t < vocab; t++) {
                token_name(t, normal, name);
                out_string(o, name);
        }
        out_pair_ints(o, "tokenizer.ggml.token_type", vocab);
        for (uint32_t t = 0; t < vocab; t++)
                out_int(o, t < normal ? TYPE_NORMAL : TYPE_CONTROL, 4);
        out_pair_strings(o, "tokenizer.ggml.merges", normal - BYTES);
        for (uint32_t t = BYTES; t < normal; t++) {
                merge_name(t, name);
                out_string(o, name);
        }
}
