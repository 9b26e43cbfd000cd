#include "daemon/edge/answer-form.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "daemon/constraint/description.h"
#include "daemon/edge/call-form.h"
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
                             const struct call_form *calls, struct preface *preface,
                             struct structure *ret_parts)
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
        if (calls && dialect->traits & DIALECT_IN_REASONING) {
                parts[1].without = calls->marks;
                parts[1].without_count = calls->mark_count;
        }
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

/* All parts of an answer, with their memory. */
struct answer {
        const struct served *served;
        const struct answer_form *form;
        struct description description; /* of its constraint, if it has one */
        struct call_form calls;         /* the same */
        struct preface preface;
        struct structure described[2], choices[2], parts[4], whole;
        char description_path[24], calls_path[24]; /* in the whole */
};

/* The text of the description, behind the marks of an answer. */
static struct structure describe(struct answer *answer)
{
        answer->described[0] = literal_part(&answer->preface.answer);
        answer->described[1] = answer->description.root;
        return (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                   .parts = answer->described,
                                   .count = 2 };
}

static struct structure make_main(struct answer *answer, unsigned place)
{
        bool constrained = answer->form->constraint.count, calls = answer->form->calls.count;

        snprintf(answer->description_path, sizeof(answer->description_path), "/%u%s/1", place,
                 calls ? "/1" : "");
        snprintf(answer->calls_path, sizeof(answer->calls_path), "/%u%s", place,
                 !calls || answer->calls.required ? ""
                 : constrained                    ? "/0"
                                                  : answer->calls.answer_path);
        if (!calls)
                return describe(answer);
        if (answer->calls.required)
                return answer->calls.calls;
        if (!constrained)
                return answer->calls.answer;
        answer->choices[0] = answer->calls.calls;
        answer->choices[1] = describe(answer);
        return (struct structure){ .kind = STRUCTURE_CHOICE, .parts = answer->choices, .count = 2 };
}

static void make_whole(struct answer *answer)
{
        const struct call_form *calls = answer->form->calls.count ? &answer->calls : NULL;
        uint32_t count = 0;

        if (answer->form->reasoning != ANSWER_WITHOUT)
                count = make_preface(answer->served->dialect, answer->form->reasoning, calls,
                                     &answer->preface, answer->parts);
        answer->parts[count] = make_main(answer, count);
        answer->whole = (struct structure){ .kind = STRUCTURE_SEQUENCE,
                                            .parts = answer->parts,
                                            .count = count + 1 };
}

static int open_texts(struct answer *answer, const char **ret_field, char *why, size_t why_bytes)
{
        const struct description_tokens tokens = { find_control, answer->served->tokenizer };
        const struct wire_text *constraint = &answer->form->constraint;
        const struct wire_text *calls = &answer->form->calls;
        int r = 0;

        *ret_field = "constraint";
        if (constraint->count)
                r = description_open(constraint->bytes, constraint->count, &tokens,
                                     &answer->description, why, why_bytes);
        if (r || !calls->count)
                return error_pass(r);
        r = call_form_open(answer->served->dialect, calls->bytes, calls->count, &answer->calls, why,
                           why_bytes);
        if (!r)
                return 0;
        *ret_field = "tools";
        if (constraint->count)
                description_close(&answer->description);
        return error_pass(r);
}

static void explain(const struct answer *answer, const char **ret_field, char *why,
                    size_t why_bytes)
{
        if (answer->form->calls.count &&
            call_form_explain(&answer->calls, answer->calls_path, why, why_bytes))
                *ret_field = "tools";
        else if (answer->form->constraint.count)
                description_explain(&answer->description, answer->description_path, why, why_bytes);
        else
                *ret_field = "tools";
}

int answer_form_compile(const struct served *served, const struct answer_form *form,
                        struct grammar **ret_grammar, const char **ret_field, char *why,
                        size_t why_bytes)
{
        struct answer answer = { .served = served, .form = form };
        int r = open_texts(&answer, ret_field, why, why_bytes);

        if (r)
                return error_pass(r);
        make_whole(&answer);
        r = structure_compile(&answer.whole, &grammar_limits_default, ret_grammar, why, why_bytes);
        if (r < 0)
                explain(&answer, ret_field, why, why_bytes);
        if (form->constraint.count)
                description_close(&answer.description);
        if (form->calls.count)
                call_form_close(&answer.calls);
        return error_pass(r);
}
