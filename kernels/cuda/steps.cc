/*
 * Sends a step to the device, and brings its tokens back.
 *
 * Everything that varies, masks and edits of picks too, is sent in one upload, from pinned memory.
 * The device reads this memory later, so the host must not write it again before. There are as
 * many uploads as steps may be in progress, and one more. Tokens stay on the device, where the
 * next step finds them. A copy of them comes back, and the host reads it once its event has
 * happened.
 */
#include "kernels/cuda/cuda.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static size_t align256(size_t bytes)
{
        return (bytes + 255) / 256 * 256;
}

static void lay_out(struct cuda *cuda)
{
        const kernels_conf *conf = &cuda->conf;
        /* No token has two edits. */
        const size_t more = smaller(PICK_EDITS_MAX, conf->vocab_max) * sizeof(pick_edit) +
                            mask_words(conf->vocab_max) * sizeof(uint32_t);
        step_upload_offsets *o = &cuda->offsets;

        cuda->upload_pages_max = cuda->steps.groups * (conf->rows_max + 2 * conf->pages_max + 256);
        o->rows = align256(sizeof(step_upload));
        o->runs = o->rows + align256(conf->rows_max * sizeof(upload_row));
        o->want = o->runs + align256(conf->rows_max * sizeof(view_run));
        o->picks = o->want + align256(conf->wants_max * sizeof(uint32_t));
        o->pages = o->picks + align256(conf->wants_max * sizeof(pick));
        o->end = o->pages + align256(cuda->upload_pages_max * sizeof(step_page)) +
                 conf->wants_max * more;
}

static int transfers_init(struct cuda *cuda)
{
        const size_t row_floats = (size_t)cuda->conf.row_copies_max * cuda->conf.vocab_max;
        uint32_t wants = cuda->conf.wants_max;
        int r = 0;

        for (uint32_t i = 0; i < STEPS_RESULTS && !r; i++) {
                step_download *step_download = &cuda->downloads[i];

                if ((r = device_pinned_new(cuda->device, cuda->offsets.end,
                                           (void **)&cuda->uploads[i])) ||
                    (r = device_event_new(cuda->device, &cuda->read[i])) ||
                    (r = device_event_new(cuda->device, &step_download->done)) ||
                    (r = device_pinned_new(cuda->device, wants * sizeof(uint32_t),
                                           (void **)&step_download->tokens)))
                        return r;
                r = device_pinned_new(cuda->device,
                                      (size_t)wants * PICK_ENTRIES_MAX * sizeof(logprob),
                                      (void **)&step_download->entries);
                if (!r && row_floats)
                        r = device_pinned_new(cuda->device, row_floats * sizeof(float),
                                              (void **)&step_download->rows);
        }
        return r;
}

int cuda_steps_init(struct cuda *cuda)
{
        const kernels_conf *conf = &cuda->conf;
        struct device *device = cuda->device;
        size_t entries;
        int r = steps_init_on_device(&cuda->steps, conf);

        if (r)
                return r;
        entries = (size_t)cuda->steps.groups * conf->slots_max * conf->pages_max;
        lay_out(cuda);
        if ((r = transfers_init(cuda)) ||
            (r = device_new(device, cuda->offsets.end, (void **)&cuda->sent)) ||
            (r = device_new(device, entries * sizeof(uint32_t), (void **)&cuda->tables)) ||
            (r = device_new(device, sizeof(step_counts), (void **)&cuda->counts)) ||
            (r = device_new(device, conf->rows_max * sizeof(view_row), (void **)&cuda->rows)) ||
            (r = device_new(device, (size_t)STEPS_RESULTS * conf->wants_max * sizeof(uint32_t),
                            (void **)&cuda->picked)))
                return r;
        cuda->view = { cuda->counts,
                       cuda->rows,
                       (const view_run *)(cuda->sent + cuda->offsets.runs),
                       cuda->tables,
                       (const uint32_t *)(cuda->sent + cuda->offsets.want),
                       (const pick *)(cuda->sent + cuda->offsets.picks),
                       conf->pages_max,
                       0 };
        return 0;
}

void cuda_steps_deinit(struct cuda *cuda)
{
        for (uint32_t i = 0; i < STEPS_RESULTS; i++) {
                device_pinned_delete(cuda->device, cuda->uploads[i]);
                device_pinned_delete(cuda->device, cuda->downloads[i].tokens);
                device_pinned_delete(cuda->device, cuda->downloads[i].entries);
                device_pinned_delete(cuda->device, cuda->downloads[i].rows);
                device_event_delete(cuda->device, cuda->read[i]);
                device_event_delete(cuda->device, cuda->downloads[i].done);
        }
        device_delete(cuda->device, cuda->sent);
        device_delete(cuda->device, cuda->tables);
        device_delete(cuda->device, cuda->counts);
        device_delete(cuda->device, cuda->rows);
        device_delete(cuda->device, cuda->picked);
        steps_deinit(&cuda->steps);
}

static void write_rows(struct cuda *cuda, uint8_t *to)
{
        const step *step = &cuda->steps.step;
        upload_row *rows = (upload_row *)(to + cuda->offsets.rows);
        view_run *runs = (view_run *)(to + cuda->offsets.runs);

        for (uint32_t i = 0; i < step->row_count; i++) {
                const step_row *row = &step->rows[i];

                rows[i] = { row->slot, row->position, row->token, row->write, UPLOAD_OWN_TOKEN };
                if (row->from_row != STEP_TOKEN)
                        rows[i].from =
                                (uint32_t)(row->from_step % STEPS_RESULTS) * cuda->conf.wants_max +
                                steps_pick_index(&cuda->steps, row);
        }
        for (uint32_t i = 0; i < step->run_count; i++) {
                const step_run *run = &step->runs[i];

                runs[i] = { run->row, run->count, step->rows[run->row].slot,
                            step->rows[run->row].position };
        }
        memcpy(to + cuda->offsets.want, step->want, step->want_count * sizeof(uint32_t));
}

/* Copies numbers to the upload, from *at on; returns where they will be on the device. */
static const void *write_more(const struct cuda *cuda, uint8_t *to, size_t *at, const void *from,
                              size_t bytes)
{
        const void *sent = cuda->sent + *at;

        memcpy(to + *at, from, bytes);
        *at += bytes;
        return sent;
}

/* Writes edits and masks from `at` on; returns where they end. */
static size_t write_picks(const struct cuda *cuda, uint8_t *to, size_t at)
{
        const size_t mask_bytes = mask_words(cuda->conf.vocab_max) * sizeof(uint32_t);
        const step *step = &cuda->steps.step;
        pick *picks = (pick *)(to + cuda->offsets.picks);

        for (uint32_t i = 0; i < step->want_count; i++) {
                const pick *one = &step->picks[i];

                picks[i] = *one;
                if (one->edit_count)
                        picks[i].edits = (const pick_edit *)write_more(
                                cuda, to, &at, one->edits, one->edit_count * sizeof(pick_edit));
                if (one->mask)
                        picks[i].mask =
                                (const uint32_t *)write_more(cuda, to, &at, one->mask, mask_bytes);
        }
        return at;
}

/*
 * On the device, page entries are written in no order.  So if an entry changes twice in a step,
 * both times its last value is sent.
 */
static void write_pages(struct cuda *cuda, uint32_t at, const step_page *pages, uint32_t count)
{
        step_page *to = (step_page *)(cuda->uploads[at] + cuda->offsets.pages);
        const uint32_t *last = cuda->steps.tables;

        for (uint32_t i = 0; i < count; i++)
                to[i] = { pages[i].slot, pages[i].index,
                          last[steps_tables_of(&cuda->steps, pages[i].group) +
                               (size_t)pages[i].slot * cuda->conf.pages_max + pages[i].index],
                          pages[i].group };
}

static size_t pages_end(const struct cuda *cuda, uint32_t page_count)
{
        return cuda->offsets.pages + page_count * sizeof(step_page);
}

static int send_upload(struct cuda *cuda, uint32_t at, size_t bytes)
{
        const step_upload_offsets *o = &cuda->offsets;
        upload_step_args args = { (const step_counts *)cuda->sent,
                                  (const upload_row *)(cuda->sent + o->rows),
                                  (const step_page *)(cuda->sent + o->pages),
                                  (const uint32_t *)(cuda->sent +
                                                     offsetof(step_upload, page_count)),
                                  cuda->picked,
                                  cuda->tables,
                                  cuda->conf.slots_max,
                                  cuda->conf.pages_max,
                                  cuda->counts,
                                  cuda->rows };
        int r;

        if ((r = device_upload(cuda->device, STREAM_STEPS, cuda->sent, cuda->uploads[at], bytes)) ||
            (r = device_event_record(cuda->device, STREAM_STEPS, cuda->read[at])))
                return r;
        return upload_step(cuda->device, &args);
}

/*
 * If there are too many page entries for one upload, the first ones are sent before, in uploads
 * without rows.
 */
static int send_excess_pages(struct cuda *cuda, uint32_t at, const step *step, uint32_t *ret_rest)
{
        uint32_t done = 0, most = cuda->upload_pages_max;
        int r = device_event_wait(cuda->device, cuda->read[at]);

        for (; !r && step->page_count - done > most; done += most) {
                step_upload *step_upload = (struct step_upload *)cuda->uploads[at];

                *step_upload = { { 0, 0, 0 }, most };
                write_pages(cuda, at, step->pages + done, most);
                r = send_upload(cuda, at, pages_end(cuda, most));
                if (!r)
                        r = device_event_wait(cuda->device, cuda->read[at]);
        }
        *ret_rest = done;
        return r;
}

static int copy_pages(struct cuda *cuda, kv *const *pools, const step *step)
{
        int r = 0;

        for (uint32_t pool = 0; pool < KV_POOLS_MAX; pool++)
                for (uint32_t i = 0; pools[pool] && i < step->copy_count && !r; i++)
                        if (step->copies[i].group == pools[pool]->shape.group)
                                r = cuda_kv_copy(cuda, pools[pool], &step->copies[i]);
        return r;
}

static int send_step(struct cuda *cuda, kv *const *pools, const step *step)
{
        uint32_t at = (uint32_t)(step->number % STEPS_RESULTS), done, left;
        size_t end;
        step_upload *step_upload = (struct step_upload *)cuda->uploads[at];
        int r = send_excess_pages(cuda, at, step, &done);

        if (r)
                return r;
        left = step->page_count - done;
        *step_upload = { { step->row_count, step->run_count, step->want_count }, left };
        write_rows(cuda, cuda->uploads[at]);
        write_pages(cuda, at, step->pages + done, left);
        end = write_picks(cuda, cuda->uploads[at], pages_end(cuda, left));
        cuda->view.rows_max = cuda_bucket(step->row_count, cuda->conf.rows_max);
        cuda->wants_bucket =
                step->want_count ? cuda_bucket(step->want_count, cuda->conf.wants_max) : 0;
        r = send_upload(cuda, at, end);
        return r ? r : copy_pages(cuda, pools, step);
}

int cuda_step_begin(struct kernels *k, kv *const *pools, const step *step)
{
        struct cuda *cuda = cuda_of(k);
        graph *graph;
        int r = cuda->lost;

        if (r)
                return r;
        steps_begin_on_device(&cuda->steps, step);
        r = send_step(cuda, pools, step);
        if (r)
                return cuda_check(cuda, r);
        graph = cuda_graph(cuda);
        if (!graph) {
                cuda_plans_forget(cuda);
                return 0;
        }
        r = cuda_check(cuda, device_graph_launch(cuda->device, STREAM_STEPS, graph));
        return r ? r : STEP_REPLAYED;
}

/* A replayed step has the logits and the vocabulary of the warm-up. */
static int send_rows(struct cuda *cuda, uint32_t at)
{
        const step_result *result = &cuda->steps.result[at];
        int r = 0;

        for (uint32_t i = 0; i < result->count && !r; i++)
                if (result->copies[i])
                        r = device_download(cuda->device, STREAM_STEPS,
                                            cuda->downloads[at].rows +
                                                    steps_copy_of(&cuda->steps, result, i),
                                            cuda->logits + (size_t)i * cuda->vocab,
                                            cuda->vocab * sizeof(float));
        return r;
}

/* Keeps the tokens for the next steps, and sends the host what it asked for. */
static int send_results(struct cuda *cuda, uint32_t at)
{
        const uint32_t wants = cuda->steps.step.want_count;
        const uint32_t entries = cuda->steps.result[at].first_entries[wants];
        const size_t bytes = wants * sizeof(uint32_t);
        step_download *to = &cuda->downloads[at];
        int r;

        if ((r = device_copy(cuda->device, STREAM_STEPS,
                             cuda->picked + (size_t)at * cuda->conf.wants_max, cuda->tokens,
                             bytes)) ||
            (r = device_download(cuda->device, STREAM_STEPS, to->tokens, cuda->tokens, bytes)))
                return r;
        if (entries)
                r = device_download(cuda->device, STREAM_STEPS, to->entries, cuda->entries,
                                    entries * sizeof(logprob));
        return r ? r : send_rows(cuda, at);
}

int cuda_step_end(struct kernels *k)
{
        struct cuda *cuda = cuda_of(k);
        const step *step = &cuda->steps.step;
        uint32_t at = (uint32_t)(step->number % STEPS_RESULTS);
        step_download *step_download = &cuda->downloads[at];
        int r = cuda_pick_more(cuda);

        if (!r && step->want_count)
                r = send_results(cuda, at);
        if (!r)
                r = device_event_record(cuda->device, STREAM_STEPS, step_download->done);
        steps_end(&cuda->steps);
        return cuda_check(cuda, r);
}

static const step_result *result_of(struct cuda *cuda, uint64_t number)
{
        const step_result *result = &cuda->steps.result[number % STEPS_RESULTS];

        assert(result->valid && result->number == number);
        return result;
}

int cuda_collect(struct kernels *k, uint64_t number, uint32_t *ret_tokens)
{
        struct cuda *cuda = cuda_of(k);
        const step_download *step_download = &cuda->downloads[number % STEPS_RESULTS];
        uint32_t count = result_of(cuda, number)->count;
        int r = cuda->lost ? cuda->lost : device_event_wait(cuda->device, step_download->done);

        if (r)
                return cuda_check(cuda, r);
        if (count)
                memcpy(ret_tokens, step_download->tokens, count * sizeof(*ret_tokens));
        return 0;
}

void cuda_logprobs(struct kernels *k, uint64_t number, uint32_t want, logprob *ret_logprobs)
{
        struct cuda *cuda = cuda_of(k);
        const step_result *result = result_of(cuda, number);
        const step_download *step_download = &cuda->downloads[number % STEPS_RESULTS];

        memcpy(ret_logprobs, step_download->entries + result->first_entries[want],
               steps_entry_count(result, want) * sizeof(*ret_logprobs));
}

const float *cuda_row(struct kernels *k, uint64_t number, uint32_t want)
{
        struct cuda *cuda = cuda_of(k);
        const step_result *result = result_of(cuda, number);

        return cuda->downloads[number % STEPS_RESULTS].rows +
               steps_copy_of(&cuda->steps, result, want);
}
