/*
 * Sends a step to the device, and brings its tokens back.
 *
 * Everything that varies is sent in one letter, in pinned memory.  The device reads it when it
 * comes to it, so the host must not write the letter again before.  There are as many letters as
 * steps may be in progress, and one more.  Tokens stay on the device, where the next step finds
 * them.  A copy of them comes back, and the host reads it once its moment is over.
 */
#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static size_t lines(size_t bytes)
{
        return (bytes + 255) / 256 * 256;
}

static void lay_out(struct cuda *cuda)
{
        const kernels_conf *conf = &cuda->conf;
        letter_offsets *o = &cuda->offsets;

        cuda->letter_pages_max = conf->rows_max + 2 * conf->pages_max + 256;
        o->rows = lines(sizeof(letter));
        o->runs = o->rows + lines(conf->rows_max * sizeof(sent_row));
        o->want = o->runs + lines(conf->rows_max * sizeof(seen_run));
        o->picks = o->want + lines(conf->wants_max * sizeof(uint32_t));
        o->pages = o->picks + lines(conf->wants_max * sizeof(pick));
        o->end = o->pages + lines(cuda->letter_pages_max * sizeof(step_page));
}

static int replies_init(struct cuda *cuda)
{
        uint32_t wants = cuda->conf.wants_max;
        int r = 0;

        for (uint32_t i = 0; i < STEPS_KEPT && !r; i++) {
                reply *reply = &cuda->replies[i];

                if ((r = device_pinned_new(cuda->device, cuda->offsets.end,
                                           (void **)&cuda->letters[i])) ||
                    (r = device_moment_new(cuda->device, &cuda->read[i])) ||
                    (r = device_moment_new(cuda->device, &reply->done)) ||
                    (r = device_pinned_new(cuda->device, wants * sizeof(uint32_t),
                                           (void **)&reply->tokens)))
                        return r;
                r = device_pinned_new(cuda->device,
                                      (size_t)wants * PICK_LOGPROBS_MAX * sizeof(logprob),
                                      (void **)&reply->logprobs);
        }
        return r;
}

int cuda_steps_init(struct cuda *cuda)
{
        const kernels_conf *conf = &cuda->conf;
        struct device *device = cuda->device;
        size_t entries = (size_t)conf->slots_max * conf->pages_max;
        int r;

        lay_out(cuda);
        if ((r = steps_init(&cuda->steps, conf)) || (r = replies_init(cuda)) ||
            (r = device_new(device, cuda->offsets.end, (void **)&cuda->sent)) ||
            (r = device_new(device, entries * sizeof(uint32_t), (void **)&cuda->tables)) ||
            (r = device_new(device, sizeof(step_counts), (void **)&cuda->counts)) ||
            (r = device_new(device, conf->rows_max * sizeof(seen_row), (void **)&cuda->rows)) ||
            (r = device_new(device, (size_t)STEPS_KEPT * conf->wants_max * sizeof(uint32_t),
                            (void **)&cuda->kept)))
                return r;
        cuda->view = { cuda->counts,
                       cuda->rows,
                       (const seen_run *)(cuda->sent + cuda->offsets.runs),
                       cuda->tables,
                       (const uint32_t *)(cuda->sent + cuda->offsets.want),
                       (const pick *)(cuda->sent + cuda->offsets.picks),
                       conf->pages_max,
                       0 };
        return 0;
}

void cuda_steps_deinit(struct cuda *cuda)
{
        for (uint32_t i = 0; i < STEPS_KEPT; i++) {
                device_pinned_delete(cuda->device, cuda->letters[i]);
                device_pinned_delete(cuda->device, cuda->replies[i].tokens);
                device_pinned_delete(cuda->device, cuda->replies[i].logprobs);
                device_moment_delete(cuda->device, cuda->read[i]);
                device_moment_delete(cuda->device, cuda->replies[i].done);
        }
        device_delete(cuda->device, cuda->sent);
        device_delete(cuda->device, cuda->tables);
        device_delete(cuda->device, cuda->counts);
        device_delete(cuda->device, cuda->rows);
        device_delete(cuda->device, cuda->kept);
        steps_deinit(&cuda->steps);
}

static void write_rows(struct cuda *cuda, uint8_t *to)
{
        const step *step = &cuda->steps.step;
        sent_row *rows = (sent_row *)(to + cuda->offsets.rows);
        seen_run *runs = (seen_run *)(to + cuda->offsets.runs);

        for (uint32_t i = 0; i < step->row_count; i++) {
                const step_row *row = &step->rows[i];

                rows[i] = { row->slot, row->position, row->token, row->write, SENT_TOKEN };
                if (row->from_row != STEP_TOKEN)
                        rows[i].from =
                                (uint32_t)(row->from_step % STEPS_KEPT) * cuda->conf.wants_max +
                                steps_source(&cuda->steps, row);
        }
        for (uint32_t i = 0; i < step->run_count; i++) {
                const step_run *run = &step->runs[i];

                runs[i] = { run->row, run->count, step->rows[run->row].slot,
                            step->rows[run->row].position };
        }
        memcpy(to + cuda->offsets.want, step->want, step->want_count * sizeof(uint32_t));
        memcpy(to + cuda->offsets.picks, step->picks, step->want_count * sizeof(pick));
}

/*
 * On the device, page entries are written in no order.  So if an entry changes twice in a step,
 * both times its last value is sent.
 */
static void write_pages(struct cuda *cuda, uint32_t at, const step_page *pages, uint32_t count)
{
        step_page *to = (step_page *)(cuda->letters[at] + cuda->offsets.pages);
        const uint32_t *last = cuda->steps.tables;

        for (uint32_t i = 0; i < count; i++)
                to[i] = { pages[i].slot, pages[i].index,
                          last[(size_t)pages[i].slot * cuda->conf.pages_max + pages[i].index] };
}

static int post(struct cuda *cuda, uint32_t at, uint32_t page_count)
{
        const letter_offsets *o = &cuda->offsets;
        begin_args args = { (const step_counts *)cuda->sent,
                            (const sent_row *)(cuda->sent + o->rows),
                            (const step_page *)(cuda->sent + o->pages),
                            (const uint32_t *)(cuda->sent + offsetof(letter, page_count)),
                            cuda->kept,
                            cuda->tables,
                            cuda->conf.pages_max,
                            cuda->counts,
                            cuda->rows };
        int r;

        if ((r = device_upload(cuda->device, STREAM_STEPS, cuda->sent, cuda->letters[at],
                               o->pages + page_count * sizeof(step_page))) ||
            (r = device_mark(cuda->device, STREAM_STEPS, cuda->read[at])))
                return r;
        return begin(cuda->device, &args);
}

/*
 * If there are too many page entries for one letter, the first ones are sent before, in letters
 * without rows.
 */
static int post_pages(struct cuda *cuda, uint32_t at, const step *step, uint32_t *ret_rest)
{
        uint32_t done = 0, most = cuda->letter_pages_max;
        int r = device_wait(cuda->device, cuda->read[at]);

        for (; !r && step->page_count - done > most; done += most) {
                letter *letter = (struct letter *)cuda->letters[at];

                *letter = { { 0, 0, 0 }, most };
                write_pages(cuda, at, step->pages + done, most);
                r = post(cuda, at, most);
                if (!r)
                        r = device_wait(cuda->device, cuda->read[at]);
        }
        *ret_rest = done;
        return r;
}

static int send_off(struct cuda *cuda, const kv *kv, const step *step)
{
        uint32_t at = (uint32_t)(step->number % STEPS_KEPT), done, left;
        letter *letter = (struct letter *)cuda->letters[at];
        int r = post_pages(cuda, at, step, &done);

        if (r)
                return r;
        left = step->page_count - done;
        *letter = { { step->row_count, step->run_count, step->want_count }, left };
        write_rows(cuda, cuda->letters[at]);
        write_pages(cuda, at, step->pages + done, left);
        cuda->view.rows_max = cuda_bucket(step->row_count, cuda->conf.rows_max);
        cuda->wants_bucket =
                step->want_count ? cuda_bucket(step->want_count, cuda->conf.wants_max) : 0;
        r = post(cuda, at, left);
        for (uint32_t i = 0; i < step->copy_count && !r; i++)
                r = device_copy(cuda->device, STREAM_STEPS,
                                kv->pages + step->copies[i].to * kv->page_bytes,
                                kv->pages + step->copies[i].from * kv->page_bytes, kv->page_bytes);
        return r;
}

int cuda_step_begin(struct kernels *k, kv *kv, const step *step)
{
        struct cuda *cuda = cuda_of(k);
        recording *recording;
        int r = cuda->lost;

        if (r)
                return r;
        steps_take(&cuda->steps, step);
        r = send_off(cuda, kv, step);
        if (r)
                return cuda_outcome(cuda, r);
        recording = cuda_recording(cuda);
        if (!recording) {
                cuda_plans_forget(cuda);
                return 0;
        }
        r = cuda_outcome(cuda, device_replay(cuda->device, STREAM_STEPS, recording));
        return r ? r : STEP_REHEARSED;
}

static bool wants_logprobs(const step *step)
{
        for (uint32_t i = 0; i < step->want_count; i++)
                if (step->picks[i].logprobs)
                        return true;
        return false;
}

int cuda_step_end(struct kernels *k)
{
        struct cuda *cuda = cuda_of(k);
        const step *step = &cuda->steps.step;
        uint32_t at = (uint32_t)(step->number % STEPS_KEPT);
        size_t bytes = step->want_count * sizeof(uint32_t);
        reply *reply = &cuda->replies[at];
        int r = 0;

        if (step->want_count) {
                r = device_copy(cuda->device, STREAM_STEPS,
                                cuda->kept + (size_t)at * cuda->conf.wants_max, cuda->tokens,
                                bytes);
                if (!r)
                        r = device_download(cuda->device, STREAM_STEPS, reply->tokens, cuda->tokens,
                                            bytes);
                if (!r && wants_logprobs(step))
                        r = device_download(
                                cuda->device, STREAM_STEPS, reply->logprobs, cuda->logprobs,
                                (size_t)step->want_count * PICK_LOGPROBS_MAX * sizeof(logprob));
        }
        if (!r)
                r = device_mark(cuda->device, STREAM_STEPS, reply->done);
        steps_end(&cuda->steps);
        return cuda_outcome(cuda, r);
}

static const step_kept *kept_of(struct cuda *cuda, uint64_t number)
{
        const step_kept *kept = &cuda->steps.kept[number % STEPS_KEPT];

        assert(kept->known && kept->number == number);
        return kept;
}

int cuda_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens)
{
        struct cuda *cuda = cuda_of(k);
        const reply *reply = &cuda->replies[number % STEPS_KEPT];
        uint32_t count = kept_of(cuda, number)->count;
        int r = cuda->lost ? cuda->lost : device_wait(cuda->device, reply->done);

        if (r)
                return cuda_outcome(cuda, r);
        if (count)
                memcpy(ret_tokens, reply->tokens, count * sizeof(*ret_tokens));
        return 0;
}

void cuda_logprobs(struct kernels *k, uint64_t number, uint32_t want, logprob *ret_logprobs)
{
        struct cuda *cuda = cuda_of(k);
        const step_kept *kept = kept_of(cuda, number);
        const reply *reply = &cuda->replies[number % STEPS_KEPT];

        assert(want < kept->count);
        memcpy(ret_logprobs, reply->logprobs + (size_t)want * PICK_LOGPROBS_MAX,
               kept->told[want] * sizeof(*ret_logprobs));
}
