#include "daemon/edge/answer-form.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "daemon/constraint/description.h"
#include "daemon/text/parts/dialect.h"
#include "daemon/text/tokenizer.h"

enum answer_reasoning answer_reasoning(const struct served *served, bool parts, bool is_open)
{
        const struct dialect *dialect = served->dialect;

        if (!parts || !dialect || !dialect_has_reasoning(dialect))
                return ANSWER_WITHOUT;
        return is_open ? ANSWER_IS_OPEN : ANSWER_MAY_OPEN;
}

/* ---- marks ---- */

#define MARKS_MAX 3u /* in one literal, with words between them */

struct literal {
        char bytes[MARKS_MAX * (MARK_BYTES_MAX + 16u)];
        size_t count;
};

static void add_text(struct literal *to, const char *text)
{
        memcpy(to->bytes + to->count, text, strlen(text));
        to->count += strlen(text);
}

/* As a control token or as text, as the model has it. */
static void add_mark(struct literal *to, const struct dialect *dialect, enum dialect_mark mark)
{
        if (dialect->marks[mark].is_token) {
                grammar_token_bytes(dialect->marks[mark].token, (uint8_t *)to->bytes + to->count);
                to->count += TOKEN_BYTES;
        } else if (dialect->marks[mark].bytes) {
                add_text(to, dialect->marks[mark].spelling.text);
        }
}

static struct structure literal_part(const struct literal *literal)
{
        return (struct structure){ .kind = STRUCTURE_LITERAL,
                                   .text = { literal->bytes, (uint32_t)literal->count } };
}

/* ---- reasoning ---- */

/* All that stands before the answer, with its memory. */
struct preface {
        struct literal open, close, answer;
        struct structure closing; /* the end of reasoning, as a part */
        struct structure parts[3], choices[2];
};

/* Newlines behind the mark that ends reasoning belong to it. */
static struct structure newlines(const struct dialect *dialect)
{
        static const char *const some[] = { "", "\\n?", "\\n{0,2}" };
        unsigned most = dialect->marks[MARK_THINK_END].spelling.newlines_after;
        const char *text = some[most < 2 ? most : 2];

        return (struct structure){ .kind = STRUCTURE_REGEX,
                                   .text = { text, (uint32_t)strlen(text) } };
}

static void find_marks(const struct dialect *dialect, struct preface *preface)
{
        if (dialect->shape != SHAPE_CHANNELS) {
                add_mark(&preface->open, dialect, MARK_THINK);
                add_mark(&preface->close, dialect, MARK_THINK_END);
                return;
        }
        add_mark(&preface->open, dialect, MARK_CHANNEL);
        add_text(&preface->open, "analysis");
        add_mark(&preface->open, dialect, MARK_MESSAGE);
        add_mark(&preface->close, dialect, MARK_END);
        add_mark(&preface->close, dialect, MARK_START);
        add_text(&preface->close, "assistant");
        add_mark(&preface->answer, dialect, MARK_CHANNEL);
        add_text(&preface->answer, "final");
        add_mark(&preface->answer, dialect, MARK_MESSAGE);
}

/* Fills the parts in front of the answer.  Returns how many there are. */
static uint32_t make_preface(const struct dialect *dialect, enum answer_reasoning reasoning,
                             struct preface *preface, struct structure *ret_parts)
{
        struct structure *parts = preface->parts;
        uint32_t count = 0;

        find_marks(dialect, preface);
        preface->closing = literal_part(&preface->close);
        parts[0] = literal_part(&preface->open);
        parts[1] = (struct structure){ .kind = STRUCTURE_TEXT,
                                       .parts = &preface->closing,
                                       .count = 1,
                                       .min = 1,
                                       .max = 1,
                                       .closed = true };
        parts[2] = newlines(dialect);
        if (reasoning == ANSWER_IS_OPEN) {
                ret_parts[count++] = parts[1];
                ret_parts[count++] = parts[2];
        } else if (preface->open.count) {
                preface->choices[0] = (struct structure){ .kind = STRUCTURE_SEQUENCE };
                preface->choices[1] = (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                                          .parts = parts,
                                                          .count = 3 };
                ret_parts[count++] = (struct structure){ .kind = STRUCTURE_CHOICE,
                                                         .parts = preface->choices,
                                                         .count = 2 };
        }
        if (preface->answer.count)
                ret_parts[count++] = literal_part(&preface->answer);
        return count;
}

/* ---- the whole ---- */

static uint32_t find_control(const void *arg, const char *text, size_t bytes)
{
        const struct tokenizer *tokenizer = arg;

        for (uint32_t i = 0; i < tokenizer_vocab(tokenizer); i++) {
                size_t count;
                const char *spelling;

                if (tokenizer_kind(tokenizer, i) != ENTRY_CONTROL)
                        continue;
                spelling = tokenizer_spelling(tokenizer, i, &count);
                if (count == bytes && !memcmp(spelling, text, bytes))
                        return i;
        }
        return UINT32_MAX;
}

static int compile(const struct served *served, enum answer_reasoning reasoning,
                   const struct description *description, struct grammar **ret_grammar, char *why,
                   size_t why_bytes)
{
        struct preface preface = { 0 };
        struct structure parts[4];
        struct structure whole = { .kind = STRUCTURE_SEQUENCE, .parts = parts };
        char path[8];
        int r;

        if (reasoning != ANSWER_WITHOUT)
                whole.count = make_preface(served->dialect, reasoning, &preface, parts);
        snprintf(path, sizeof(path), "/%u", whole.count);
        parts[whole.count++] = description->root;
        r = structure_compile(&whole, &grammar_limits_default, ret_grammar, why, why_bytes);
        if (r < 0)
                description_explain(description, path, why, why_bytes);
        return error_pass(r);
}

int answer_form_compile(const struct served *served, enum answer_reasoning reasoning,
                        const char *text, size_t bytes, struct grammar **ret_grammar, char *why,
                        size_t why_bytes)
{
        const struct description_tokens tokens = { find_control, served->tokenizer };
        struct description description;
        int r;

        r = description_open(text, bytes, &tokens, &description, why, why_bytes);
        if (r)
                return error_pass(r);
        r = compile(served, reasoning, &description, ret_grammar, why, why_bytes);
        description_close(&description);
        return error_pass(r);
}
