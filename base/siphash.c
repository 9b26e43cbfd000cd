#include "base/siphash.h"

struct state {
        uint64_t a, b, c, d;
};

static inline uint64_t turn(uint64_t x, unsigned bits)
{
        return x << bits | x >> (64 - bits);
}

static inline void mix(struct state *s, unsigned rounds)
{
        while (rounds--) {
                s->a += s->b;
                s->c += s->d;
                s->b = turn(s->b, 13) ^ s->a;
                s->d = turn(s->d, 16) ^ s->c;
                s->a = turn(s->a, 32);
                s->c += s->b;
                s->a += s->d;
                s->b = turn(s->b, 17) ^ s->c;
                s->d = turn(s->d, 21) ^ s->a;
                s->c = turn(s->c, 32);
        }
}

/* Makes a word of fewer than eight bytes, little endian. */
static uint64_t word(const unsigned char *bytes, size_t count)
{
        uint64_t out = 0;

        for (size_t i = 0; i < count; i++)
                out |= (uint64_t)bytes[i] << 8 * i;
        return out;
}

/* The same for eight bytes; compilers turn this form into a single load. */
static uint64_t whole_word(const unsigned char *b)
{
        return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24 |
               (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48 |
               (uint64_t)b[7] << 56;
}

/* Mixes in all bytes and their count, with `rounds` rounds for each word. */
static void absorb(struct state *s, const unsigned char *at, size_t count, unsigned rounds)
{
        uint64_t last = (uint64_t)count << 56, next;

        for (; count >= 8; at += 8, count -= 8) {
                next = whole_word(at);
                s->d ^= next;
                mix(s, rounds);
                s->a ^= next;
        }
        last |= word(at, count);
        s->d ^= last;
        mix(s, rounds);
        s->a ^= last;
}

static struct state begin(const uint64_t key[2])
{
        return (struct state){
                .a = key[0] ^ UINT64_C(0x736f6d6570736575),
                .b = key[1] ^ UINT64_C(0x646f72616e646f6d),
                .c = key[0] ^ UINT64_C(0x6c7967656e657261),
                .d = key[1] ^ UINT64_C(0x7465646279746573),
        };
}

static uint64_t end(const struct state *s)
{
        return s->a ^ s->b ^ s->c ^ s->d;
}

void siphash(const uint64_t key[2], const void *bytes, size_t count, uint64_t ret_hash[2])
{
        struct state s = begin(key);

        s.b ^= 0xee;
        absorb(&s, bytes, count, 2);
        s.c ^= 0xee;
        mix(&s, 4);
        ret_hash[0] = end(&s);
        s.b ^= 0xdd;
        mix(&s, 4);
        ret_hash[1] = end(&s);
}

uint64_t siphash_short(const uint64_t key[2], const void *bytes, size_t count)
{
        struct state s = begin(key);

        absorb(&s, bytes, count, 1);
        s.c ^= 0xff;
        mix(&s, 3);
        return end(&s);
}
