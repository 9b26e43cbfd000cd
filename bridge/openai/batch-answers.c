#include "bridge/openai/batch-answers.h"

#include <errno.h>
#include <string.h>

#include "base/sys.h"
#include "bridge/core/fields.h"
#include "json/reader.h"

#define NODES_MAX (1u << 26)

int batch_answers_append(struct batch_answers *answers, const struct bytes *line)
{
        size_t done = 0;

        while (done < line->count) {
                ssize_t n = sys_pwrite(answers->fd, line->at + done, line->count - done,
                                       answers->bytes + done);

                if (n <= 0) {
                        (void)sys_truncate(answers->fd, answers->bytes);
                        return n ? (int)n : -EIO;
                }
                done += (size_t)n;
        }
        answers->bytes += line->count;
        return 0;
}

/* 1: the line is a new answer; 0: it is not; -ENOMEM. */
static int read_line(struct text line, struct batch_ids *ids)
{
        struct json_document *json;
        struct text id;
        char why[128];
        int r = json_parse(line.at, line.bytes, NODES_MAX, &json, why, sizeof(why));

        if (r)
                return r == -ENOMEM ? r : 0;
        id = text_of(json, json_member(json, 0, "custom_id"));
        r = json_kind(json, json_member(json, 0, "response")) == JSON_OBJECT && id.at &&
            batch_ids_answer(ids, id);
        json_free(json);
        return r;
}

int batch_recovery_next(struct batch_recovery *recovery, struct batch_ids *ids, size_t bytes)
{
        size_t until = recovery->at + bytes;

        while (recovery->at < until) {
                const char *from = recovery->text.at + recovery->at;
                size_t left = recovery->text.bytes - recovery->at;
                const char *end = left ? memchr(from, '\n', left) : NULL;
                int r = end ? read_line((struct text){ from, (size_t)(end - from) }, ids) : 0;

                if (r <= 0)
                        return r;
                recovery->at += (size_t)(end - from) + 1;
                recovery->count++;
        }
        return 1;
}

int batch_answers_cut(struct batch_answers *answers, uint64_t bytes)
{
        int r = sys_truncate(answers->fd, bytes);

        if (!r)
                answers->bytes = bytes;
        return r;
}
