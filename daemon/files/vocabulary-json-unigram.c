/* The model of tokenizer.json if it is Unigram: a list of pieces, each with its score. */
#include <math.h>
#include <string.h>

#include "daemon/files/vocabulary-json-parts.h"

#define UNKNOWN_PENALTY 10
#define EXACT_POWERS    22

static const double powers[EXACT_POWERS + 1] = { 1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                 1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22 };

/*
 * The number as `tokenizers` reads it, whose last digit may be wrong: its digits are divided by a
 * power of ten, which rounds twice.  Only so are equal sums equal in both.
 */
static bool read_score(const struct json_document *json, uint32_t node, double *ret_score)
{
        const char *at = json_number(json, node), *mark = at ? strpbrk(at, ".eE") : NULL;
        bool is_negative = at && *at == '-', has_point = false;
        uint64_t digits = 0;
        int point = 0;

        if (!json_real(json, node, ret_score))
                return false;
        if (!mark || strpbrk(at, "eE"))
                return true;
        for (at += is_negative; *at; at++) {
                unsigned digit = (unsigned)(*at - '0');

                if (*at == '.') {
                        has_point = true;
                        continue;
                }
                if (digits > (UINT64_MAX - digit) / 10) {
                        if (!has_point)
                                return true;
                        break;
                }
                digits = digits * 10 + digit;
                point += has_point;
        }
        if (point > EXACT_POWERS)
                return true;
        *ret_score = (double)digits / powers[point];
        if (is_negative)
                *ret_score = -*ret_score;
        return true;
}

static const char *read_piece(const struct json_tokenizer *rd, uint32_t node, size_t *ret_bytes,
                              double *ret_score)
{
        uint32_t first = json_first(rd->json, node);

        if (json_count(rd->json, node) != 2 ||
            !read_score(rd->json, json_next(rd->json, first), ret_score))
                return NULL;
        return json_string(rd->json, first, ret_bytes);
}

int json_tokenizer_measure_scored(struct json_tokenizer *rd, uint64_t *ret_count,
                                  uint64_t *ret_bytes)
{
        uint32_t list = json_tokenizer_member(rd, rd->model, "vocab");

        *ret_count = *ret_bytes = 0;
        for (uint32_t n = json_first(rd->json, list); n != JSON_NONE; n = json_next(rd->json, n)) {
                size_t bytes;
                double score;

                if (!read_piece(rd, n, &bytes, &score))
                        return vocabulary_builder_refuse(
                                &rd->m, "piece %llu of its model is not a text and a score",
                                (unsigned long long)*ret_count);
                *ret_bytes += bytes;
                ++*ret_count;
        }
        return 0;
}

/* An added token that is a piece, too, gets the score of the piece. */
static int add_piece(struct json_tokenizer *rd, uint64_t id, const char *name, size_t bytes,
                     double score)
{
        bool hex = rd->fallback && bytes == 6 && !memcmp(name, "<0x", 3);

        if (!vocabulary_builder_has(&rd->m, id))
                return error_pass(vocabulary_builder_add_entry(
                        &rd->m, id, name, bytes, hex ? ENTRY_BYTE : ENTRY_NORMAL,
                        hex ? SPELT_HEX : SPELT_BARS, score));
        if (vocabulary_builder_find(&rd->m, name, bytes) != id)
                return vocabulary_builder_refuse(&rd->m,
                                                 "token id %llu is two tokens, '%s' and another",
                                                 (unsigned long long)id, shown(name).text);
        rd->m.entries[id].score = score;
        return 0;
}

int json_tokenizer_read_scored(struct json_tokenizer *rd)
{
        uint32_t list = json_tokenizer_member(rd, rd->model, "vocab");
        uint64_t id = 0, unknown;
        double lowest = INFINITY;
        int r = 0;

        for (uint32_t i = 0; i < rd->m.entry_capacity; i++)
                rd->m.entries[i].score = -INFINITY; /* added tokens that are no pieces */
        for (uint32_t n = json_first(rd->json, list); !r && n != JSON_NONE;
             n = json_next(rd->json, n)) {
                size_t bytes = 0;
                double score = 0;
                const char *name = read_piece(rd, n, &bytes, &score);

                r = add_piece(rd, id++, name, bytes, score);
                lowest = score < lowest ? score : lowest;
        }
        if (r)
                return error_pass(r);
        if (!json_whole(rd->json, json_tokenizer_member(rd, rd->model, "unk_id"), &unknown) ||
            unknown >= id)
                return vocabulary_builder_refuse(&rd->m, "its model's 'unk_id' is not a token");
        rd->m.v.unknown = (uint32_t)unknown;
        rd->m.v.unknown_score = lowest - UNKNOWN_PENALTY;
        rd->m.v.unknown_run = true;
        rd->m.v.spelt_bytes = true;
        return 0;
}
