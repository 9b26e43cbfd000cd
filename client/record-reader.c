#include "client/record-reader.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/*
 * Copies for good: the bytes may be memory that the daemon can write, and the value that was
 * checked must be the value that is used.  So the compiler must not read that memory again.
 */
static void copy(void *to, const char *from, size_t count)
{
        memcpy(to, from, count);
        __asm__ volatile("" : : "r"(to) : "memory");
}

int record_read(const char *bytes, size_t count, struct record *ret_record)
{
        struct smv_record head;
        size_t step;

        if (count < sizeof(head))
                return -EPROTO;
        copy(&head, bytes, sizeof(head));
        head.size = le32toh(head.size);
        head.stream = le32toh(head.stream);
        head.head_bytes = le16toh(head.head_bytes);
        head.sequence = le32toh(head.sequence);

        if (head.head_bytes < sizeof(head) || head.size < head.head_bytes || head.size > count)
                return -EPROTO;

        step = ((size_t)head.size + SMV_RING_ALIGN - 1) / SMV_RING_ALIGN * SMV_RING_ALIGN;
        ret_record->head = head;
        ret_record->payload = bytes + head.head_bytes;
        ret_record->payload_bytes = head.size - head.head_bytes;
        ret_record->step = step < count ? step : count;
        return 0;
}

int record_tokens(const struct record *record, struct bytes *tokens, struct smv_event *ret_event)
{
        struct smv_record_tokens t;
        const char *at = record->payload;
        size_t ids_bytes;
        uint32_t id;
        int r;

        if (record->payload_bytes < sizeof(t))
                return -EPROTO;
        copy(&t, at, sizeof(t));
        t.position = le32toh(t.position);
        t.token_count = le16toh(t.token_count);
        t.text_bytes = le16toh(t.text_bytes);
        ids_bytes = t.token_count * sizeof(id);
        if (record->payload_bytes - sizeof(t) < ids_bytes + t.text_bytes)
                return -EPROTO;

        at += sizeof(t);
        tokens->count = 0;
        for (size_t i = 0; i < t.token_count; i++, at += sizeof(id)) {
                memcpy(&id, at, sizeof(id));
                id = le32toh(id);
                r = bytes_add(tokens, &id, sizeof(id));
                if (r)
                        return r;
        }

        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_TOKENS,
                .stream = record->head.stream,
                .tokens = (const uint32_t *)(const void *)tokens->at,
                .token_count = t.token_count,
                .text = at,
                .text_bytes = t.text_bytes,
                .position = t.position,
                .sequence = record->head.sequence,
        };
        return 0;
}

static float float_of(uint32_t bits)
{
        float value;

        bits = le32toh(bits);
        memcpy(&value, &bits, sizeof(value));
        return value;
}

/* 0 or -ENOMEM. */
static int copy_entries(const char *at, size_t count, struct bytes *entries)
{
        int r = 0;

        entries->count = 0;
        for (size_t i = 0; !r && i < count; i++, at += sizeof(struct smv_record_logprob)) {
                struct smv_record_logprob from;
                struct smv_logprob to;

                copy(&from, at, sizeof(from));
                to.token = le32toh(from.token);
                to.logprob = float_of(from.logprob);
                r = bytes_add(entries, &to, sizeof(to));
        }
        return r;
}

int record_logprobs(const struct record *record, struct bytes *logprobs, size_t *ret_top_count)
{
        struct smv_record_logprobs head;
        const char *at = record->payload;
        size_t count;

        if (record->payload_bytes < sizeof(head))
                return -EPROTO;
        copy(&head, at, sizeof(head));
        head.token_count = le16toh(head.token_count);
        head.top_count = le16toh(head.top_count);
        count = (size_t)head.token_count * (1u + head.top_count);
        if ((record->payload_bytes - sizeof(head)) / sizeof(struct smv_record_logprob) < count)
                return -EPROTO;

        *ret_top_count = head.top_count;
        return copy_entries(at + sizeof(head), count, logprobs);
}

int record_row(const struct record *record, struct bytes *entries, struct smv_row *ret_row,
               bool *ret_is_whole)
{
        struct smv_record_row head;
        size_t count;
        int r;

        if (record->payload_bytes < sizeof(head))
                return -EPROTO;
        copy(&head, record->payload, sizeof(head));
        count = 1u + le16toh(head.top_count);
        if ((record->payload_bytes - sizeof(head)) / sizeof(struct smv_record_logprob) < count)
                return -EPROTO;
        r = copy_entries(record->payload + sizeof(head), count, entries);
        *ret_row = (struct smv_row){
                .position = le32toh(head.position),
                .log_sum = float_of(head.log_sum),
                .entries = (const struct smv_logprob *)(const void *)entries->at,
                .top_count = count - 1,
        };
        *ret_is_whole = head.is_whole;
        return r;
}

int record_ask(const struct record *record, struct smv_event *ret_event)
{
        struct smv_record_ask ask;

        if (record->payload_bytes < sizeof(ask))
                return -EPROTO;
        copy(&ask, record->payload, sizeof(ask));
        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_ASK,
                .stream = record->head.stream,
                .position = le32toh(ask.position),
                .ask = le32toh(ask.kind),
                .sequence = record->head.sequence,
        };
        return 0;
}

int record_prompt_logprobs(const struct record *record, struct bytes *logprobs,
                           struct bytes *tokens, struct smv_event *ret_event)
{
        struct smv_record_logprobs head;
        const struct smv_logprob *at;
        size_t top_count;
        int r;

        r = record_logprobs(record, logprobs, &top_count);
        if (r)
                return r;
        copy(&head, record->payload, sizeof(head));
        at = (const struct smv_logprob *)(const void *)logprobs->at;
        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_PROMPT_LOGPROBS,
                .stream = record->head.stream,
                .token_count = logprobs->count / sizeof(*at) / (1 + top_count),
                .position = le32toh(head.position),
                .logprobs = at,
                .top_count = top_count,
                .sequence = record->head.sequence,
        };
        tokens->count = 0;
        for (size_t i = 0; !r && i < ret_event->token_count; i++)
                r = bytes_add(tokens, &at[i * (1 + top_count)].token, sizeof(at->token));
        ret_event->tokens = (const uint32_t *)(const void *)tokens->at;
        return r;
}

int record_parts(const struct record *record, struct bytes *parts)
{
        struct smv_record_parts head;
        const char *at = record->payload;
        int r = 0;

        if (record->payload_bytes < sizeof(head))
                return -EPROTO;
        copy(&head, at, sizeof(head));
        head.part_count = le32toh(head.part_count);
        if ((record->payload_bytes - sizeof(head)) / sizeof(struct smv_record_part) <
            head.part_count)
                return -EPROTO;

        at += sizeof(head);
        parts->count = 0;
        for (uint32_t i = 0; !r && i < head.part_count; i++, at += sizeof(struct smv_record_part)) {
                struct smv_record_part from;
                struct smv_part to;

                copy(&from, at, sizeof(from));
                to = (struct smv_part){ .kind = le32toh(from.kind),
                                        .bytes = le32toh(from.bytes),
                                        .call = le32toh(from.call),
                                        .flags = le32toh(from.flags) };
                r = bytes_add(parts, &to, sizeof(to));
        }
        return r;
}

int record_progress(const struct record *record, struct smv_event *ret_event)
{
        struct smv_record_progress progress;

        if (record->payload_bytes < sizeof(progress))
                return -EPROTO;
        copy(&progress, record->payload, sizeof(progress));
        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_PROGRESS,
                .stream = record->head.stream,
                .prompt_tokens = le32toh(progress.prompt_tokens),
                .cached_tokens = le32toh(progress.cached_tokens),
                .prefilled = le32toh(progress.prefilled),
                .sequence = record->head.sequence,
        };
        return 0;
}

int record_end(const struct record *record, struct smv_event *ret_event)
{
        struct smv_record_end end = { 0 };
        size_t bytes = record->payload_bytes;

        if (bytes < SMV_RECORD_END_MIN)
                return -EPROTO;
        copy(&end, record->payload, bytes < sizeof(end) ? bytes : sizeof(end));
        if (end.reason < SMV_END_EOS || end.reason > SMV_END_ERROR)
                return -EPROTO;

        *ret_event = (struct smv_event){
                .kind = SMV_EVENT_END,
                .stream = record->head.stream,
                .reason = end.reason,
                .code = le32toh(end.code),
                .prompt_tokens = le32toh(end.prompt_tokens),
                .cached_tokens = le32toh(end.cached_tokens),
                .output_tokens = le32toh(end.output_tokens),
                .queued_ns = le64toh(end.queued_ns),
                .prefill_ns = le64toh(end.prefill_ns),
                .decode_ns = le64toh(end.decode_ns),
                .diverged_at = le32toh(end.diverged_at),
                .diverged_cached_token = le32toh(end.diverged_cached_token),
                .diverged_prompt_token = le32toh(end.diverged_prompt_token),
                .preemptions = le32toh(end.preemptions),
                .blocks_lost = le32toh(end.blocks_lost),
                .recomputed = le32toh(end.recomputed),
                .restored = le32toh(end.restored),
                .stopped_by = end.stopped_by,
                .stop_index = end.stop_index,
                .reasoning_tokens = le32toh(end.reasoning_tokens),
                .calls = le32toh(end.calls),
                .parts_flags = end.parts_flags,
                .asked = le32toh(end.asked),
                .late = le32toh(end.late),
                .drafted = le32toh(end.drafted),
                .drafts_right = le32toh(end.drafts_right),
                .predicted = le32toh(end.predicted),
                .predictions_right = le32toh(end.predictions_right),
                .draft_steps = le32toh(end.draft_steps),
                .no_drafts = le32toh(end.no_drafts),
                .sequence = record->head.sequence,
        };
        for (uint32_t i = 0; i < SMV_DRAFT_TOKENS_MAX; i++) {
                ret_event->drafted_by_depth[i] = le32toh(end.drafted_by_depth[i]);
                ret_event->drafts_right_by_depth[i] = le32toh(end.drafts_right_by_depth[i]);
        }
        return 0;
}
