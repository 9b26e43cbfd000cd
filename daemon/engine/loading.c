#include "daemon/engine/loading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "daemon/engine/model.h"
#include "base/error.h"
#include "base/errtext.h"
#include "base/log.h"
#include "base/sys.h"

#define REPORT_NS 5000000000u

struct loading {
        struct stats *stats;
        bool (*go_on)(void *arg);
        void *arg;
        uint64_t total, reported_ns;
};

static bool report_progress(void *arg, const struct weights_progress *progress)
{
        struct loading *l = arg;
        uint64_t now = sys_clock_ns();

        /* The total is shown only after the files were checked again. */
        counter_set(&l->stats->load_bytes,
                    progress->bytes < l->total ? progress->bytes : l->total - 1);
        counter_set(&l->stats->load_way, progress->way);
        if (now - l->reported_ns >= REPORT_NS) {
                log_info("loading bytes=%" PRIu64 " of=%" PRIu64 " method=%s", progress->bytes,
                         l->total, load_way_name(progress->way));
                l->reported_ns = now;
        }
        return l->go_on(l->arg);
}

/* Names the file, if it has failed. */
static void finish_why(const struct loading_conf *conf, const char *setting, const char *path,
                       int r)
{
        char where[192];

        if (!conf->why)
                return;
        snprintf(where, sizeof(where), "%s%.150s", setting, path ? path : "");
        if (!r || r == -ECANCELED)
                conf->why[0] = '\0';
        else if (conf->why[0] && path)
                errtext_prefix(conf->why, conf->why_bytes, r, where);
}

static bool look_on(void *arg, const struct weights_progress *progress)
{
        struct loading *l = arg;

        (void)progress;
        return l->go_on(l->arg);
}

int loading_run_first(const struct loading_conf *conf, struct model *model,
                      bool (*go_on)(void *arg), void *arg)
{
        struct loading loading = { .go_on = go_on, .arg = arg };
        const struct weights_conf weights = { conf->way, conf->threads, look_on, &loading };
        enum load_way way = conf->way;
        int r;

        log_info("loading draft_model bytes=%" PRIu64, model_to_load(model));
        r = model_load(model, &weights, &way, conf->why, conf->why_bytes);
        finish_why(conf, "draft_model: ", conf->draft_path, r);
        return error_pass(r);
}

int loading_run(const struct loading_conf *conf, struct model *model, struct stats *stats,
                bool (*go_on)(void *arg), void *arg)
{
        uint64_t began = sys_clock_ns();
        struct loading loading = { stats, go_on, arg, model_to_load(model), began };
        const struct weights_conf weights = { conf->way, conf->threads, report_progress, &loading };
        enum load_way way = conf->way;
        double seconds;
        int r;

        log_info("loading bytes=%" PRIu64 " method=%s", loading.total, load_way_name(way));
        r = model_load(model, &weights, &way, conf->why, conf->why_bytes);
        finish_why(conf, "", conf->path, r);
        if (r)
                return error_pass(r);
        seconds = (double)(sys_clock_ns() - began) / 1e9;
        counter_set(&stats->load_way, way);
        counter_set(&stats->load_bytes, loading.total);
        log_info("loaded bytes=%" PRIu64 " seconds=%.3f gb_per_s=%.2f method=%s", loading.total,
                 seconds, (double)loading.total / 1e9 / seconds, load_way_name(way));
        return 0;
}
