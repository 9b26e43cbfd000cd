#include "daemon/edge/op-tokenize.h"

#include <errno.h>

#include "daemon/edge/encode-job.h"
#include "daemon/edge/encode-work.h"
#include "daemon/edge/op-checks.h"
#include "daemon/edge/values.h"
#include "base/error.h"

/* ---- tokenize ---- */

static int encode(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        struct encode_job *job = encode_job_new(peer, asked, served, work_tokenize);
        size_t bytes;
        int r;

        if (!job)
                return error_raise(-ENOMEM);
        job->done = encode_job_reply;
        bytes = asked->text.count + encode_job_ids_bytes(job, asked->text.count);
        r = encode_job_take_text(job, asked, &asked->text);
        if (!r)
                r = encode_job_pay_and_post(job, bytes, ret_problem);
        if (r)
                encode_job_free(job);
        return error_pass(r);
}

int op_tokenize(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = op_check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = encode(peer, served, asked, ret_problem);
        return error_pass(r);
}

/* ---- detokenize ---- */

static int decode(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        size_t text_max = asked->token_count * tokenizer_piece_max(served->tokenizer);
        size_t ids_bytes = asked->token_count * sizeof(uint32_t);
        struct encode_job *job = encode_job_new(peer, asked, served, work_detokenize);
        int r;

        if (!job)
                return error_raise(-ENOMEM);
        if (text_max > job->frame_max)
                /* A longer text is refused before it is made. */
                text_max = job->frame_max;
        job->done = encode_job_reply;
        job->job.ids = asked->memory;
        job->job.id_count = asked->token_count;
        asked->memory = NULL;
        r = encode_job_pay_and_post(job, ids_bytes + text_max, ret_problem);
        if (r)
                encode_job_free(job);
        return error_pass(r);
}

int op_detokenize(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = op_check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = decode(peer, served, asked, ret_problem);
        return error_pass(r);
}

/* ---- pieces ---- */

/* Finds how many ids the request is about. */
static int count_pieces(const struct served *served, const struct wire_request *asked,
                        uint32_t *ret_count, struct wire_problem *ret_problem)
{
        uint32_t vocab = tokenizer_vocab(served->tokenizer), left;

        *ret_count = asked->token_count;
        if (asked->tokens)
                return 0;
        if (asked->from >= vocab)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "from",
                                   "from is %u; the largest id is %u", asked->from, vocab - 1);
        left = vocab - asked->from;
        *ret_count = left;
        if (!wire_has(asked, WIRE_F_LENGTH))
                return 0;
        if (!asked->length)
                return wire_refuse(ret_problem, SMV_BAD_VALUE, asked->id, "length",
                                   "length is 0; it may be from 1 to %u", UINT32_MAX);
        if (asked->length < left)
                *ret_count = asked->length;
        return 0;
}

static int spell(struct peer *peer, struct served *served, struct wire_request *asked,
                 uint32_t count, struct wire_problem *ret_problem)
{
        struct encode_job *job = encode_job_new(peer, asked, served, work_pieces);
        size_t ids_bytes = asked->token_count * sizeof(uint32_t), reply_max;
        int r;

        if (!job)
                return error_raise(-ENOMEM);
        reply_max = work_pieces_bytes_max(served->tokenizer, count);
        if (reply_max > job->frame_max)
                reply_max = job->frame_max;
        job->done = encode_job_reply;
        job->from = asked->from;
        job->job.ids = asked->memory;
        job->job.id_count = count;
        asked->memory = NULL;
        r = encode_job_pay_and_post(job, ids_bytes + reply_max, ret_problem);
        if (r)
                encode_job_free(job);
        return error_pass(r);
}

int op_pieces(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        uint32_t count = 0;
        int r;

        r = op_check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = count_pieces(served, asked, &count, ret_problem);
        if (!r)
                r = spell(peer, served, asked, count, ret_problem);
        return error_pass(r);
}

/* ---- template ---- */

/* The text is rendered; the text worker makes the reply, with the ids if they are wanted. */
static int on_rendered(struct encode_job *job, struct wire_problem *ret_problem)
{
        return error_pass(encode_job_again(job, job->tokenizes, work_template, encode_job_reply,
                                           ret_problem));
}

static int render(struct peer *peer, struct served *served, struct wire_request *asked,
                  struct wire_problem *ret_problem)
{
        struct encode_job *job = encode_job_new(peer, asked, served, work_render);
        int r;

        if (!job)
                return error_raise(-ENOMEM);
        job->done = on_rendered;
        job->tokenizes = asked->tokenize;
        r = encode_job_take_messages(job, asked);
        if (!r)
                r = encode_job_pay_and_post(job, values_bytes(&job->chat), ret_problem);
        if (r)
                encode_job_free(job);
        return error_pass(r);
}

int op_template(struct peer *peer, struct wire_request *asked, struct wire_problem *ret_problem)
{
        struct served *served = NULL;
        int r;

        r = op_check_new(peer, asked, EDGE_ENDING, &served, ret_problem);
        if (!r)
                r = op_check_chat(served, asked, ret_problem);
        if (!r)
                r = render(peer, served, asked, ret_problem);
        return error_pass(r);
}
