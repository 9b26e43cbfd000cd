/*
 * Reads a vocabulary from SentencePiece's tokenizer.model: a protobuf message.
 *
 *      1 pieces, each:   1 the piece, 2 its score (float), 3 its type (1 if absent)
 *      2 trainer:        3 model type (1: unigram, 2: BPE), 24 the blank goes after a text,
 *                        35 unknown characters become bytes, 40 unknown, 41 bos, 42 eos
 *      3 normaliser:     2 its compiled rules, 3 a blank is put in front,
 *                        4 extra blanks are removed, 5 blanks become bars
 *
 * A message is a sequence of fields.  Each has a key (number << 3 | wire type) and a value: 0 a
 * varint, 1 eight bytes, 2 a length and its bytes, 5 four bytes.  Unknown fields are skipped.  No
 * nesting is deeper than shown here.
 */
#include <endian.h>
#include <float.h>
#include <inttypes.h>
#include <string.h>

#include "daemon/files/side-tokens.h"
#include "daemon/files/vocabulary-builder.h"
#include "daemon/files/vocabulary.h"

#define UNKNOWN_PENALTY 10.0f

struct message {
        const char *at;
        size_t left;
};

struct field {
        uint32_t number, wire;
        uint64_t value;       /* of wire types 0, 1 and 5 */
        struct message bytes; /* of wire type 2 */
};

enum { WIRE_VARINT = 0, WIRE_EIGHT = 1, WIRE_BYTES = 2, WIRE_FOUR = 5 };
enum { END = 1 };

static const struct {
        enum entry_kind kind;
        enum spelling spelling;
} kinds[] = {
        [1] = { ENTRY_NORMAL, SPELT_BARS },   [2] = { ENTRY_UNKNOWN, SPELT_PLAIN },
        [3] = { ENTRY_CONTROL, SPELT_PLAIN }, [4] = { ENTRY_USER, SPELT_BARS },
        [5] = { ENTRY_UNUSED, SPELT_BARS },   [6] = { ENTRY_BYTE, SPELT_HEX },
};

struct vocabulary_reader {
        struct vocabulary_builder m;
        const struct side_files *side;
        uint64_t id;   /* the next piece's; in the end, how many pieces there are */
        uint64_t type; /* of the model */
        uint64_t blank, squeezes, escapes, suffix, falls_back;
        uint64_t special[3]; /* unknown, bos, eos */
        struct message rules;
};

static bool take_varint(struct message *message, uint64_t *ret_value)
{
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64 && message->left; shift += 7) {
                uint8_t byte = (uint8_t)*message->at++;

                message->left--;
                value |= (uint64_t)(byte & 0x7F) << shift;
                if (!(byte & 0x80)) {
                        *ret_value = value;
                        return true;
                }
        }
        return false;
}

static bool take_fixed(struct message *message, unsigned bytes, uint64_t *ret_value)
{
        uint64_t value = 0;

        if (message->left < bytes)
                return false;
        memcpy(&value, message->at, bytes);
        *ret_value = le64toh(value);
        message->at += bytes;
        message->left -= bytes;
        return true;
}

/* Returns 0, END or -EINVAL. */
static int take_field(struct vocabulary_reader *rd, struct message *message,
                      struct field *ret_field)
{
        struct field f = { 0 };
        uint64_t key;
        bool good = true;

        if (!message->left)
                return END;
        if (!take_varint(message, &key) || key >> 3 == 0 || key >> 3 >= 1u << 29)
                return vocabulary_builder_refuse(
                        &rd->m, "%zu bytes before its end, no field begins", message->left);
        f.number = (uint32_t)(key >> 3);
        f.wire = key & 7;
        if (f.wire == WIRE_VARINT) {
                good = take_varint(message, &f.value);
        } else if (f.wire == WIRE_EIGHT || f.wire == WIRE_FOUR) {
                good = take_fixed(message, f.wire == WIRE_EIGHT ? 8 : 4, &f.value);
        } else if (f.wire == WIRE_BYTES) {
                good = take_varint(message, &f.value) && f.value <= message->left;
                if (good) {
                        f.bytes = (struct message){ message->at, f.value };
                        message->at += f.value;
                        message->left -= f.value;
                }
        } else {
                good = false;
        }
        if (!good)
                return vocabulary_builder_refuse(&rd->m, "field %u does not fit into it", f.number);
        *ret_field = f;
        return 0;
}

static bool is(const struct field *f, uint32_t number, uint32_t wire)
{
        return f->number == number && f->wire == wire;
}

static int read_piece(struct vocabulary_reader *rd, struct message message)
{
        struct message name = { "", 0 };
        uint64_t type = 1, bits = 0;
        uint32_t low;
        struct field f;
        enum entry_kind kind;
        float score;
        int r;

        while (!(r = take_field(rd, &message, &f))) {
                if (is(&f, 1, WIRE_BYTES))
                        name = f.bytes;
                else if (is(&f, 2, WIRE_FOUR))
                        bits = f.value;
                else if (is(&f, 3, WIRE_VARINT))
                        type = f.value;
        }
        if (r < 0)
                return r;
        if (!type || type > 6)
                return vocabulary_builder_refuse(
                        &rd->m, "the type of token %" PRIu64 " is not 1 to 6", rd->id);
        low = (uint32_t)bits;
        memcpy(&score, &low, sizeof(score));
        kind = kinds[type].kind;
        /* No text has a blank once blanks are bars. */
        if ((kind == ENTRY_NORMAL || kind == ENTRY_USER) && memchr(name.at, ' ', name.left))
                kind = ENTRY_UNUSED;
        return error_pass(vocabulary_builder_add_entry(&rd->m, rd->id++, name.at, name.left, kind,
                                                       kinds[type].spelling, score));
}

/* A piece that is a zero byte: SentencePiece has the byte's token in its place. */
static void drop_zero(struct vocabulary_reader *rd)
{
        for (uint64_t id = 0; id < rd->id; id++) {
                struct entry *e = &rd->m.entries[id];

                if (e->kind == ENTRY_NORMAL && e->count == 1 && !e->bytes[0])
                        e->kind = ENTRY_UNUSED;
        }
}

static int read_trainer(struct vocabulary_reader *rd, struct message message)
{
        struct field f;
        int r;

        while (!(r = take_field(rd, &message, &f))) {
                if (is(&f, 3, WIRE_VARINT))
                        rd->type = f.value;
                else if (is(&f, 35, WIRE_VARINT))
                        rd->falls_back = f.value;
                else if (is(&f, 24, WIRE_VARINT))
                        rd->suffix = f.value;
                else if (f.number >= 40 && f.number <= 42 && f.wire == WIRE_VARINT)
                        rd->special[f.number - 40] = f.value;
        }
        return r < 0 ? r : 0;
}

static int read_normaliser(struct vocabulary_reader *rd, struct message message)
{
        struct field f;
        int r;

        while (!(r = take_field(rd, &message, &f))) {
                if (is(&f, 2, WIRE_BYTES))
                        rd->rules = f.bytes;
                else if (is(&f, 3, WIRE_VARINT))
                        rd->blank = f.value;
                else if (is(&f, 4, WIRE_VARINT))
                        rd->squeezes = f.value;
                else if (is(&f, 5, WIRE_VARINT))
                        rd->escapes = f.value;
        }
        return r < 0 ? r : 0;
}

static int count_pieces(struct vocabulary_reader *rd, struct message message, uint64_t *ret_count)
{
        struct field f;
        int r;

        *ret_count = 0;
        while (!(r = take_field(rd, &message, &f)))
                *ret_count += is(&f, 1, WIRE_BYTES);
        return r < 0 ? r : 0;
}

/* -1, stored as all bits set, means that there is no such token. */
static uint32_t special(const struct vocabulary_reader *rd, unsigned which)
{
        uint64_t id = rd->special[which];

        return id < rd->id ? (uint32_t)id : VOCABULARY_NONE;
}

static uint32_t count_blanks(const struct entry *e)
{
        uint32_t blanks = 0;

        for (uint32_t i = 0; i < e->count; i++)
                blanks += e->bytes[i] == ' ';
        return blanks;
}

/* SentencePiece's scores of unknown characters, and of pieces that a user has defined. */
static void set_scores(struct vocabulary_reader *rd)
{
        float lowest = FLT_MAX, highest = FLT_MIN;

        for (uint64_t id = 0; id < rd->id; id++) {
                float score = (float)rd->m.entries[id].score;

                if (rd->m.entries[id].kind != ENTRY_NORMAL)
                        continue;
                lowest = score < lowest ? score : lowest;
                highest = score > highest ? score : highest;
        }
        rd->m.v.single_sums = true;
        rd->m.v.unknown_score = (double)(lowest - UNKNOWN_PENALTY);
        for (uint64_t id = 0; id < rd->id; id++) {
                struct entry *e = &rd->m.entries[id];

                if (e->kind == ENTRY_USER) /* a blank is a bar of three bytes there */
                        e->score =
                                (double)((float)(e->count + 2 * count_blanks(e)) * highest) - 0.1;
        }
}

/*
 * Where a blank goes.  With `legacy`, transformers encodes each text between added tokens for
 * itself.
 */
static enum vocabulary_blank choose_blank(const struct vocabulary_reader *rd)
{
        if (!side_files_is_on(rd->side, "add_prefix_space", rd->blank))
                return BLANK_NEVER;
        if (rd->suffix)
                return BLANK_LAST;
        return side_files_is_on(rd->side, "legacy", false) ? BLANK_EACH : BLANK_FIRST;
}

static int judge(struct vocabulary_reader *rd)
{
        struct vocabulary *v = &rd->m.v;

        if (rd->type != 1 && rd->type != 2)
                return vocabulary_builder_refuse(&rd->m,
                                                 "its model type is %" PRIu64
                                                 "; only 1 (unigram) and 2 (BPE) are supported",
                                                 rd->type);
        if (!rd->escapes)
                return vocabulary_builder_refuse(
                        &rd->m, "it does not write blanks as bars, which is not supported");
        v->kind = rd->type == 1 ? VOCABULARY_UNIGRAM : VOCABULARY_CHARACTERS;
        v->by_score = rd->type == 2;
        v->original = true;
        v->blank = choose_blank(rd);
        v->unknown_run = true;
        v->squeezes = rd->squeezes;
        v->unknown = special(rd, 0);
        v->bos = special(rd, 1);
        v->eos = special(rd, 2);
        v->add_bos = v->bos != VOCABULARY_NONE;
        if (rd->falls_back)
                drop_zero(rd);
        if (rd->type == 1)
                set_scores(rd);
        if (!rd->rules.left)
                return 0;
        return error_pass(vocabulary_builder_add_normal(&rd->m, NORMAL_RULES, NULL, rd->rules.at,
                                                        rd->rules.left));
}

static int read_all(struct vocabulary_reader *rd, struct message message)
{
        struct field f;
        int r;

        while (!(r = take_field(rd, &message, &f))) {
                if (is(&f, 1, WIRE_BYTES))
                        r = read_piece(rd, f.bytes);
                else if (is(&f, 2, WIRE_BYTES))
                        r = read_trainer(rd, f.bytes);
                else if (is(&f, 3, WIRE_BYTES))
                        r = read_normaliser(rd, f.bytes);
                if (r)
                        return error_pass(r);
        }
        if (r == END)
                r = judge(rd);
        if (!r)
                r = side_tokens_add(rd->side, &rd->m);
        if (!r)
                side_tokens_set_ends(rd->side, &rd->m);
        return error_pass(r);
}

int vocabulary_from_model(const char *bytes, size_t count, const struct side_files *side,
                          struct vocabulary **ret_vocabulary, char *why, size_t why_bytes)
{
        const struct message message = { bytes, count };
        /* The format's defaults for absent fields. */
        struct vocabulary_reader rd = { .m = { .why = why, .why_bytes = why_bytes },
                                        .side = side,
                                        .type = 1,
                                        .blank = 1,
                                        .squeezes = 1,
                                        .escapes = 1,
                                        .special = { 0, 1, 2 } };
        uint64_t pieces, ids = 0;
        int r = count_pieces(&rd, message, &pieces);

        if (!r)
                r = side_files_fit(side, pieces, &ids, why, why_bytes);
        if (!r)
                r = vocabulary_builder_begin(&rd.m, ids, 0, count + side_files_bytes(side), why,
                                             why_bytes);
        if (!r)
                r = read_all(&rd, message);
        if (!r)
                r = vocabulary_builder_finish(&rd.m, ret_vocabulary);
        if (r)
                vocabulary_builder_free(&rd.m);
        return error_pass(r);
}
