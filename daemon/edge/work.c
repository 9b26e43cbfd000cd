#include "daemon/edge/work.h"

#include <errno.h>
#include <stdlib.h>

#include "daemon/edge/task.h"
#include "daemon/edge/values.h"
#include "daemon/error.h"
#include "daemon/sys.h"
#include "daemon/why.h"

/* The most bytes of a reply besides the content that is counted. */
#define REPLY_HEAD_BYTES 64u
#define SLICE_IDS        (16u << 10)

static struct peer_task *task_of(struct scribe_job *job)
{
        return job->owner;
}

static void drop_text(struct scribe_job *job)
{
        struct peer_task *task = task_of(job);

        buffer_deinit(&task->frame);
        task_drop_rendered(task);
        job->text = NULL;
        job->text_bytes = 0;
}

static void drop_ids(struct scribe_job *job)
{
        free(job->ids);
        job->ids = NULL;
}

static int read_frame(struct peer_task *task)
{
        struct buffer *frame = &task->frame;
        int r;

        r = wire_decode(frame->bytes + frame->start, buffer_count(frame), &task->asked,
                        &task->problem);
        if (r)
                return error_pass(r);
        task->asked.frame = *frame;
        buffer_init(frame, 0);
        return 0;
}

int work_read(struct scribe_job *job)
{
        int r = scribe_is_cancelled(job) ? -ECANCELED : read_frame(task_of(job));

        drop_text(job);
        return error_pass(r);
}

int work_prompt(struct scribe_job *job)
{
        int r = scribe_encode(job);

        drop_text(job);
        if (job->id_count >= task_of(job)->ids_max)
                drop_ids(job);
        return error_pass(r);
}

/* ---- messages ---- */

static int refuse_rendering(struct peer_task *task, char *why)
{
        why_line(why);
        return wire_refuse(&task->problem, SMV_BAD_VALUE, task->id, "messages", "%s", why);
}

static bool job_cancelled(void *job)
{
        return scribe_is_cancelled(job);
}

static int make_conversation(struct peer_task *task, struct arena *arena,
                             struct conversation *ret_about)
{
        const struct wire_talk *talk = &task->talk;
        int r;

        *ret_about = (struct conversation){ .add_generation_prompt = talk->add_generation_prompt,
                                            .bytes = values_bytes(talk),
                                            .cancelled = job_cancelled,
                                            .arg = &task->job };
        r = values_list(arena, &talk->messages, &ret_about->messages);
        if (!r)
                r = values_list(arena, &talk->tools, &ret_about->tools);
        if (!r)
                r = values_map(arena, &talk->template_vars, &ret_about->vars);
        if (r == VALUE_E_TWICE)
                return wire_refuse(&task->problem, SMV_BAD_VALUE, task->id, "messages",
                                   "a map of the conversation has a key twice");
        return error_pass(r);
}

/* Notes the parts that the template wrote: control tokens are found only there. */
static int take_parts(struct peer_task *task)
{
        const struct rendered *rendered = &task->rendered;
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
        task->parts = parts;
        task->job.controls = parts;
        task->job.control_count = count;
        return 0;
}

static int render(struct peer_task *task)
{
        const struct chat *chat = task->served->chat;
        struct conversation about;
        struct arena *arena;
        char why[200] = "";
        struct tm now;
        int r;

        r = arena_new(values_arena_bytes(&task->talk), &arena);
        if (r)
                return error_pass(r);
        sys_local_time(&now);
        r = make_conversation(task, arena, &about);
        if (!r) {
                r = chat_render(chat, arena, &about, &now, &task->rendered, why, sizeof(why));
                if (r == -EINVAL)
                        r = refuse_rendering(task, why);
        }
        arena_free(arena);
        return r ? error_pass(r) : error_pass(take_parts(task));
}

int work_render(struct scribe_job *job)
{
        struct peer_task *task = task_of(job);
        int r = scribe_is_cancelled(job) ? -ECANCELED : render(task);

        buffer_deinit(&task->frame);
        if (r) {
                task_drop_rendered(task);
                return error_pass(r);
        }
        job->text = task->rendered.text;
        job->text_bytes = task->rendered.bytes;
        return 0;
}

int work_clear(struct scribe_job *job)
{
        buffer_deinit(&task_of(job)->reply);
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
static int begin_reply(struct peer_task *task, size_t bytes, uint32_t pairs,
                       struct wire_writer *writer)
{
        bool is_long = bytes > task->reply_front;
        size_t front = is_long ? task->reply_front : 0, behind = is_long ? task->reply_behind : 0;
        int r;

        if (bytes > task->frame_max) {
                task->answer_bytes = bytes;
                return WORK_E_LONG;
        }
        buffer_init(&task->reply, front + bytes + 4 + behind);
        r = buffer_reserve_both(&task->reply, front, bytes + 4 + behind);
        if (r)
                return error_pass(r);
        wire_begin(writer, &task->reply);
        wire_put_ok(writer, task->id, pairs);
        return 0;
}

static int put_ids(struct scribe_job *job, struct wire_writer *writer)
{
        wire_put_text(writer, "tokens");
        wire_put_array(writer, (uint32_t)job->id_count);
        for (size_t i = 0; i < job->id_count; i++) {
                if (i % SLICE_IDS == 0 && scribe_is_cancelled(job))
                        return -ECANCELED;
                wire_put_uint(writer, job->ids[i]);
        }
        return 0;
}

static int reply_ids(struct scribe_job *job)
{
        struct wire_writer writer;
        int r;

        r = begin_reply(task_of(job), ids_bytes(job->ids, job->id_count), 1, &writer);
        if (!r)
                r = put_ids(job, &writer);
        return r ? error_pass(r) : error_pass(wire_end(&writer));
}

static int reply_rendered(struct scribe_job *job)
{
        struct peer_task *task = task_of(job);
        size_t bytes = REPLY_HEAD_BYTES + job->text_bytes;
        struct wire_writer writer;
        int r;

        if (task->tokenizes)
                bytes += ids_bytes(job->ids, job->id_count);
        r = begin_reply(task, bytes, task->tokenizes ? 2 : 1, &writer);
        if (r)
                return error_pass(r);
        wire_put_text(&writer, "text");
        wire_put_bytes(&writer, job->text, job->text_bytes);
        if (task->tokenizes)
                r = put_ids(job, &writer);
        return r ? error_pass(r) : error_pass(wire_end(&writer));
}

int work_template(struct scribe_job *job)
{
        int r = task_of(job)->tokenizes ? scribe_encode(job) : 0;

        if (!r)
                r = reply_rendered(job);
        drop_text(job);
        drop_ids(job);
        return error_pass(r);
}

int work_tokenize(struct scribe_job *job)
{
        int r = scribe_encode(job);

        drop_text(job);
        if (!r)
                r = reply_ids(job);
        drop_ids(job);
        return error_pass(r);
}

/* Measures the text of these ids first: an id of a few bytes may have a much longer piece. */
static int measure(struct scribe_job *job, size_t *ret_bytes)
{
        uint32_t vocab = tokenizer_vocab(job->tokenizer);
        struct peer_task *task = task_of(job);
        size_t bytes = 0, piece;

        for (size_t i = 0; i < job->id_count; i++) {
                if (i % SLICE_IDS == 0 && scribe_is_cancelled(job))
                        return -ECANCELED;
                if (job->ids[i] >= vocab) {
                        task->at = i;
                        task->bad_id = job->ids[i];
                        return WORK_E_BAD_ID;
                }
                tokenizer_piece(job->tokenizer, job->ids[i], &piece);
                bytes += piece;
        }
        *ret_bytes = bytes + REPLY_HEAD_BYTES;
        return 0;
}

static int put_text(struct scribe_job *job)
{
        struct peer_task *task = task_of(job);
        struct wire_writer writer;
        size_t bytes;
        int r;

        r = measure(job, &bytes);
        if (!r)
                r = begin_reply(task, bytes, 1, &writer);
        if (!r)
                r = scribe_decode(job);
        if (r)
                return error_pass(r);
        wire_put_text(&writer, "text");
        wire_put_bin(&writer, job->joined, job->joined_bytes);
        return error_pass(wire_end(&writer));
}

int work_detokenize(struct scribe_job *job)
{
        int r = put_text(job);

        drop_ids(job);
        free(job->joined);
        job->joined = NULL;
        return error_pass(r);
}
