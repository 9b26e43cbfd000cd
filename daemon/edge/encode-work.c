#include "daemon/edge/encode-work.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/edge/answer-form.h"
#include "daemon/edge/call-form.h"
#include "daemon/edge/encode-job.h"
#include "daemon/edge/values.h"
#include "daemon/edge/wire.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/errtext.h"
#include "daemon/text/parts/argument-types.h"
#include "daemon/text/parts/dialect.h"

/* The most bytes of a reply besides the content that is counted. */
#define REPLY_HEAD_BYTES 64u
#define SLICE_IDS        (16u << 10)

static struct encode_job *encode_job_of(struct text_job *job)
{
        return job->owner;
}

static void drop_text(struct text_job *job)
{
        struct encode_job *encode = encode_job_of(job);

        buffer_deinit(&encode->frame);
        encode_job_drop_rendered(encode);
        job->text = NULL;
        job->text_bytes = 0;
}

static void drop_ids(struct text_job *job)
{
        free(job->ids);
        job->ids = NULL;
}

static int read_frame(struct encode_job *encode)
{
        struct buffer *frame = &encode->frame;
        int r;

        r = wire_decode(frame->bytes + frame->start, buffer_count(frame), &encode->asked,
                        &encode->problem);
        if (r)
                return error_pass(r);
        encode->asked.frame = *frame;
        buffer_init(frame, 0);
        return 0;
}

int work_decode(struct text_job *job)
{
        int r = text_job_is_cancelled(job) ? -ECANCELED : read_frame(encode_job_of(job));

        drop_text(job);
        return error_pass(r);
}

int work_prompt(struct text_job *job)
{
        int r = text_worker_encode(job);

        drop_text(job);
        if (job->id_count >= encode_job_of(job)->ids_max)
                drop_ids(job);
        return error_pass(r);
}

int work_constrain(struct text_job *job)
{
        struct encode_job *encode = encode_job_of(job);
        const char *field = "constraint";
        char why[200] = "";
        int r;

        if (text_job_is_cancelled(job))
                return -ECANCELED;
        r = answer_form_compile(encode->served, &encode->form, &encode->grammar, &field, why,
                                sizeof(why));
        if (r != -EINVAL && r != -E2BIG)
                return error_pass(r);
        errtext_one_line(why);
        return wire_refuse(&encode->problem, SMV_BAD_VALUE, encode->id, field, "%s", why);
}

/* ---- calls ---- */

/* Which calls the answer may have, by the tools of the conversation. */
static int wish(struct encode_job *encode, struct arena *arena, struct value tools)
{
        const struct dialect *dialect = encode->served->dialect;
        const struct wire_chat *chat = &encode->chat;
        struct call_question question = {
                encode->form.constraint.count > 0, chat->tool_choice, chat->calls_max, tools, { 0 }
        };
        bool required = chat->tool_choice == WIRE_TOOLS_REQUIRED;
        char why[200] = "";
        int r = values_list(arena, &chat->allowed_tools, &question.names);

        if (r < 0)
                return error_pass(r);
        if (!dialect || !dialect_has_calls(dialect))
                return required ? wire_refuse(&encode->problem, SMV_BAD_VALUE, encode->id,
                                              "tool_choice",
                                              "tool_choice is required, but it is not known how "
                                              "this model writes calls: it has no tool_dialect")
                                : 0;
        r = call_wish_put(&question, &encode->calls, why, sizeof(why));
        if (!r && encode->calls.count > SMV_CONSTRAINT_BYTES_MAX) {
                snprintf(why, sizeof(why),
                         "the tools that may be called have %zu bytes, and calls by a grammar may "
                         "have %u: offer fewer tools, or name some in allowed_tools",
                         encode->calls.count, SMV_CONSTRAINT_BYTES_MAX);
                r = error_raise(-EINVAL);
        }
        if (!r && encode->calls.count)
                encode->form.calls =
                        (struct wire_text){ encode->calls.at, (uint32_t)encode->calls.count };
        if (r != -EINVAL)
                return error_pass(r);
        errtext_one_line(why);
        return wire_refuse(&encode->problem, SMV_BAD_VALUE, encode->id, "tools", "%s", why);
}

/* ---- messages ---- */

static int refuse_rendering(struct encode_job *encode, char *why)
{
        errtext_one_line(why);
        return wire_refuse(&encode->problem, SMV_BAD_VALUE, encode->id, "messages", "%s", why);
}

static bool job_cancelled(void *job)
{
        return text_job_is_cancelled(job);
}

static int make_conversation(struct encode_job *encode, struct arena *arena,
                             struct conversation *ret_about)
{
        const struct wire_chat *chat = &encode->chat;
        uint64_t nonce = 0;
        bool marks = encode->continues || chat->continue_final_message;
        int r = marks ? sys_random(&nonce, sizeof(nonce)) : 0;

        if (r)
                return error_raise(r);
        *ret_about = (struct conversation){ .add_generation_prompt = chat->add_generation_prompt,
                                            .continues = encode->continues,
                                            .continue_final_message = chat->continue_final_message,
                                            .nonce = nonce,
                                            .bytes = values_bytes(chat),
                                            .cancelled = job_cancelled,
                                            .arg = &encode->job };
        r = values_list(arena, &chat->messages, &ret_about->messages);
        if (!r)
                r = values_list(arena, &chat->tools, &ret_about->tools);
        if (!r)
                r = values_map(arena, &chat->template_vars, &ret_about->vars);
        if (r == VALUE_E_TWICE)
                return wire_refuse(&encode->problem, SMV_BAD_VALUE, encode->id, "messages",
                                   "a map of the conversation has a key twice");
        return error_pass(r);
}

/* Notes the parts that the template wrote: control tokens are found only there. */
static int take_parts(struct encode_job *encode)
{
        const struct rendered *rendered = &encode->rendered;
        struct text_part *parts = reallocarray(NULL, rendered->span_count + 1, sizeof(*parts));
        size_t at = 0, count = 0;

        if (!parts)
                return error_raise(-ENOMEM);
        for (size_t i = 0; i < rendered->span_count; i++) {
                const struct rendered_span *span = &rendered->spans[i];

                if (span->origin == TEXT_OURS && span->bytes)
                        parts[count++] = (struct text_part){ at, at + span->bytes };
                at += span->bytes;
        }
        encode->parts = parts;
        encode->job.controls = parts;
        encode->job.control_count = count;
        return 0;
}

static int render(struct encode_job *encode)
{
        const struct chat *chat = encode->served->chat;
        const struct dialect *dialect = encode->served->dialect;
        struct conversation about;
        struct arena *arena;
        char why[200] = "";
        struct tm now;
        int r;

        r = arena_new(values_arena_bytes(&encode->chat) + values_bytes(&encode->chat) +
                              CHAT_TURN_BYTES + CHAT_CALLS_BYTES,
                      &arena);
        if (r)
                return error_pass(r);
        sys_local_time(&now);
        r = make_conversation(encode, arena, &about);
        if (!r && dialect && dialect->shape == SHAPE_TAGGED)
                r = argument_types_make(about.tools, &encode->argument_types);
        if (!r && encode->op == WIRE_GENERATE)
                r = wish(encode, arena, about.tools);
        if (!r) {
                r = chat_render(chat, arena, &about, &now, &encode->rendered, why, sizeof(why));
                if (r == -EINVAL)
                        r = refuse_rendering(encode, why);
        }
        arena_free(arena);
        return r ? error_pass(r) : error_pass(take_parts(encode));
}

/* The tools beside a handle, whose history was told of them. */
static int wish_of_tools(struct encode_job *encode)
{
        struct arena *arena;
        struct value tools;
        int r = arena_new(values_arena_bytes(&encode->chat), &arena);

        if (r)
                return error_pass(r);
        r = values_list(arena, &encode->chat.tools, &tools);
        if (r == VALUE_E_TWICE)
                r = wire_refuse(&encode->problem, SMV_BAD_VALUE, encode->id, "tools",
                                "a map of the tools has a key twice");
        if (!r)
                r = wish(encode, arena, tools);
        arena_free(arena);
        return error_pass(r);
}

int work_wish(struct text_job *job)
{
        struct encode_job *encode = encode_job_of(job);
        int r = text_job_is_cancelled(job) ? -ECANCELED : wish_of_tools(encode);

        buffer_deinit(&encode->frame);
        return error_pass(r);
}

int work_render(struct text_job *job)
{
        struct encode_job *encode = encode_job_of(job);
        int r = text_job_is_cancelled(job) ? -ECANCELED : render(encode);

        buffer_deinit(&encode->frame);
        if (r) {
                encode_job_drop_rendered(encode);
                return error_pass(r);
        }
        job->text = encode->rendered.text;
        job->text_bytes = encode->rendered.bytes;
        return 0;
}

/* The most bytes that msgpack makes of these ids, with the head of the reply. */
static size_t ids_bytes(const uint32_t *ids, size_t count)
{
        size_t bytes = REPLY_HEAD_BYTES;

        for (size_t i = 0; i < count; i++)
                bytes += ids[i] < 0x80 ? 1 : ids[i] < 0x100 ? 2 : ids[i] < 0x10000 ? 3 : 5;
        return bytes;
}

/*
 * Begins a reply of `bytes`.  A long one gets room in front and behind for what its peer is sent
 * before and after, because a buffer that grows is copied.  For a short one that does not matter.
 */
static int begin_reply(struct encode_job *encode, size_t bytes, uint32_t pairs,
                       struct wire_writer *writer)
{
        bool is_long = bytes > encode->reply_front;
        size_t front = is_long ? encode->reply_front : 0,
               behind = is_long ? encode->reply_behind : 0;
        int r;

        if (bytes > encode->frame_max) {
                encode->answer_bytes = bytes;
                return WORK_E_LONG;
        }
        buffer_init(&encode->reply, front + bytes + 4 + behind);
        r = buffer_reserve_both(&encode->reply, front, bytes + 4 + behind);
        if (r)
                return error_pass(r);
        wire_begin(writer, &encode->reply);
        wire_put_ok(writer, encode->id, pairs);
        return 0;
}

static int put_ids(struct text_job *job, struct wire_writer *writer)
{
        wire_put_text(writer, "tokens");
        wire_put_array(writer, (uint32_t)job->id_count);
        for (size_t i = 0; i < job->id_count; i++) {
                if (i % SLICE_IDS == 0 && text_job_is_cancelled(job))
                        return -ECANCELED;
                wire_put_uint(writer, job->ids[i]);
        }
        return 0;
}

static int reply_ids(struct text_job *job)
{
        struct wire_writer writer;
        int r;

        r = begin_reply(encode_job_of(job), ids_bytes(job->ids, job->id_count), 1, &writer);
        if (!r)
                r = put_ids(job, &writer);
        return r ? error_pass(r) : error_pass(wire_end(&writer));
}

static int reply_rendered(struct text_job *job)
{
        struct encode_job *encode = encode_job_of(job);
        size_t bytes = REPLY_HEAD_BYTES + job->text_bytes;
        struct wire_writer writer;
        int r;

        if (encode->tokenizes)
                bytes += ids_bytes(job->ids, job->id_count);
        r = begin_reply(encode, bytes, encode->tokenizes ? 2 : 1, &writer);
        if (r)
                return error_pass(r);
        wire_put_text(&writer, "text");
        wire_put_bytes(&writer, job->text, job->text_bytes);
        if (encode->tokenizes)
                r = put_ids(job, &writer);
        return r ? error_pass(r) : error_pass(wire_end(&writer));
}

int work_template(struct text_job *job)
{
        int r = encode_job_of(job)->tokenizes ? text_worker_encode(job) : 0;

        if (!r)
                r = reply_rendered(job);
        drop_text(job);
        drop_ids(job);
        return error_pass(r);
}

int work_tokenize(struct text_job *job)
{
        int r = text_worker_encode(job);

        drop_text(job);
        if (!r)
                r = reply_ids(job);
        drop_ids(job);
        return error_pass(r);
}

/* The job has a list of ids, or is about successive ones. */
static uint32_t id_at(struct text_job *job, size_t i)
{
        return job->ids ? job->ids[i] : encode_job_of(job)->from + (uint32_t)i;
}

/* Is the id at this index one of the model's?  Now and then: is the job still wanted? */
static int check_id(struct text_job *job, size_t i)
{
        struct encode_job *encode = encode_job_of(job);

        if (i % SLICE_IDS == 0 && text_job_is_cancelled(job))
                return -ECANCELED;
        if (id_at(job, i) < tokenizer_vocab(job->tokenizer))
                return 0;
        encode->at = i;
        encode->bad_id = id_at(job, i);
        return WORK_E_BAD_ID;
}

/* Measures the text of these ids first: an id of a few bytes may have a much longer piece. */
static int measure(struct text_job *job, size_t *ret_bytes)
{
        size_t bytes = 0, piece;

        for (size_t i = 0; i < job->id_count; i++) {
                int r = check_id(job, i);

                if (r)
                        return r;
                tokenizer_piece(job->tokenizer, job->ids[i], &piece);
                bytes += piece;
        }
        *ret_bytes = bytes + REPLY_HEAD_BYTES;
        return 0;
}

static int put_text(struct text_job *job)
{
        struct encode_job *encode = encode_job_of(job);
        struct wire_writer writer;
        size_t bytes;
        int r;

        r = measure(job, &bytes);
        if (!r)
                r = begin_reply(encode, bytes, 1, &writer);
        if (!r)
                r = text_worker_decode(job);
        if (r)
                return error_pass(r);
        wire_put_text(&writer, "text");
        wire_put_bin(&writer, job->joined, job->joined_bytes);
        return error_pass(wire_end(&writer));
}

int work_detokenize(struct text_job *job)
{
        int r = put_text(job);

        drop_ids(job);
        free(job->joined);
        job->joined = NULL;
        return error_pass(r);
}

/* ---- pieces ---- */

/* The most bytes of a piece's head and its kind in msgpack: a spelling has 1024 bytes at most. */
#define PIECE_HEAD_BYTES 4u

enum {
#define X(number, name, word) PIECE_##name = (number),
        SMV_PIECE_KINDS(X)
#undef X
};

static const uint8_t kinds[ENTRY_KIND_N] = {
        [ENTRY_NORMAL] = PIECE_TEXT,     [ENTRY_USER] = PIECE_USER,
        [ENTRY_BYTE] = PIECE_BYTE,       [ENTRY_CONTROL] = PIECE_CONTROL,
        [ENTRY_UNKNOWN] = PIECE_UNKNOWN, [ENTRY_UNUSED] = PIECE_UNUSED,
};

size_t work_pieces_bytes_max(const struct tokenizer *tokenizer, size_t count)
{
        return REPLY_HEAD_BYTES + count * (tokenizer_piece_max(tokenizer) + PIECE_HEAD_BYTES);
}

/* Measures the reply.  A range of ids ends where the reply would be longer than a frame. */
static int measure_pieces(struct text_job *job, size_t *ret_bytes)
{
        size_t bytes = REPLY_HEAD_BYTES, piece;

        for (size_t i = 0; i < job->id_count; i++) {
                int r = check_id(job, i);

                if (r)
                        return r;
                tokenizer_spelling(job->tokenizer, id_at(job, i), &piece);
                piece += PIECE_HEAD_BYTES;
                if (!job->ids && i && bytes + piece > encode_job_of(job)->frame_max)
                        job->id_count = i;
                else
                        bytes += piece;
        }
        *ret_bytes = bytes;
        return 0;
}

static int put_pieces(struct text_job *job)
{
        const struct tokenizer *tokenizer = job->tokenizer;
        struct wire_writer writer;
        size_t bytes = 0;
        int r;

        r = measure_pieces(job, &bytes);
        if (!r)
                r = begin_reply(encode_job_of(job), bytes, 3, &writer);
        if (r)
                return error_pass(r);
        wire_put_text(&writer, "vocab");
        wire_put_uint(&writer, tokenizer_vocab(tokenizer));
        wire_put_text(&writer, "kinds");
        wire_put_array(&writer, (uint32_t)job->id_count);
        for (size_t i = 0; i < job->id_count; i++)
                wire_put_uint(&writer, kinds[tokenizer_kind(tokenizer, id_at(job, i))]);
        wire_put_text(&writer, "pieces");
        wire_put_array(&writer, (uint32_t)job->id_count);
        for (size_t i = 0; i < job->id_count; i++) {
                const char *piece = tokenizer_spelling(tokenizer, id_at(job, i), &bytes);

                if (i % SLICE_IDS == 0 && text_job_is_cancelled(job))
                        return -ECANCELED;
                wire_put_bin(&writer, piece, bytes);
        }
        return error_pass(wire_end(&writer));
}

int work_pieces(struct text_job *job)
{
        int r = put_pieces(job);

        drop_ids(job);
        return error_pass(r);
}
