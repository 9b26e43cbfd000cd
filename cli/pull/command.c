#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "cli/amounts.h"
#include "cli/cli.h"
#include "cli/clock.h"
#include "cli/pull/get.h"
#include "cli/pull/import.h"
#include "cli/pull/plan.h"
#include "cli/pull/preview.h"
#include "cli/pull/retry.h"
#include "cli/pull/selection.h"
#include "store/gguf-join.h"

#define SPARE_BYTES   (64u << 20)  /* of the disk, that a pull leaves */
#define PREVIEW_BYTES (256u << 20) /* a smaller model is fetched before it is looked at */

struct pull {
        struct cli *cli;
        struct web *web; /* NULL: the source is on this machine */
        struct hub hub;
        struct store store;
        struct selection chosen;
        char name[STORE_NAME_BYTES + 1];
        struct incoming incoming;
        struct manifest manifest;
        struct progress progress;
        uint64_t begin_ms;
};

static int fail(const char *why)
{
        say("%s", why);
        return CLI_FAILED;
}

static int stopped(const struct pull *pull)
{
        say("stopped; the same command continues%s%s", *pull->name ? ", or samovar rm " : "",
            *pull->name ? pull->name : "");
        return CLI_INTERRUPTED;
}

static struct selection_ask selection_ask_of(const struct pull *pull)
{
        return (struct selection_ask){ .web = pull->web,
                                       .hub = &pull->hub,
                                       .retries = pull->cli->pull.retries,
                                       .sha256 = pull->cli->pull.sha256 };
}

static int choose_files(struct pull *pull)
{
        struct selection_ask ask = selection_ask_of(pull);
        const char *name = pull->cli->pull.name;
        char why[2048] = "";
        int r = selection_make(&pull->chosen, &ask, why, sizeof(why));

        if (r)
                return r == -ECANCELED ? stopped(pull) : fail(why);
        snprintf(pull->name, sizeof(pull->name), "%s", name ? name : pull->chosen.choice.name);
        return 0;
}

static int learn_sizes(struct pull *pull)
{
        struct selection_ask ask = selection_ask_of(pull);
        char why[512] = "";
        int r = selection_learn_sizes(&pull->chosen, &ask, why, sizeof(why));

        return r == -ECANCELED ? stopped(pull) : r ? fail(why) : 0;
}

/* ---- what is there ---- */

static bool same_origin(const struct pull *pull, const char *origin)
{
        char repository[256];

        if (pull->chosen.source.kind != SOURCE_HUB)
                return !strcmp(origin, pull->chosen.origin);
        snprintf(repository, sizeof(repository), "hf:%s", pull->chosen.source.repository);
        return !strncmp(origin, repository, strlen(repository)) &&
               strchr(":@", origin[strlen(repository)]);
}

static bool has_file(const struct manifest *manifest, const char *name)
{
        for (size_t i = 0; i < manifest->file_count; i++)
                if (!strcmp(manifest->files[i].name, name))
                        return true;
        return false;
}

/*
 * The file of a URL is the one that is there: by its digest, if the user gave it, or else by the
 * validator and the size that the server tells.
 */
static bool is_same_file(const struct fetch_file *file, const struct manifest *manifest)
{
        const struct manifest_file *old = manifest->files;

        if (manifest->file_count != 1 || strcmp(old->name, file->name))
                return false;
        if (*file->digest)
                return !strcasecmp(file->digest, old->sha256);
        return *file->revision && !strcmp(file->revision, manifest->revision) && file->size_known &&
               file->bytes == old->bytes;
}

static bool is_current(const struct pull *pull, const struct manifest *manifest)
{
        if (strcmp(manifest->model, pull->chosen.choice.model))
                return false;
        if (pull->chosen.source.kind == SOURCE_URL && pull->chosen.choice.count == 1)
                return is_same_file(&pull->chosen.files[0], manifest);
        if (!*pull->chosen.revision || strcmp(manifest->revision, pull->chosen.revision))
                return false;
        if (pull->chosen.choice.form == CHOICE_PIECES)
                return has_file(manifest, pull->chosen.choice.model);
        for (size_t i = 0; i < pull->chosen.choice.count; i++)
                if (!has_file(manifest, pull->chosen.files[i].name))
                        return false;
        return true;
}

/*
 * -1: the model is there already, at this revision; an exit status: another one has its name; 0:
 * it is to be pulled.
 */
static int look_at_old(struct pull *pull)
{
        struct manifest old;
        char entry[STORE_PATH_BYTES];
        struct stat file;
        int r;

        snprintf(entry, sizeof(entry), "%.4000s/%s", pull->store.places[0], pull->name);
        if (stat(entry, &file) < 0 || pull->cli->pull.force)
                return 0;
        r = manifest_read(entry, &old);
        if (r) {
                say("%s is there, and was not pulled: --name gives the new one another name, "
                    "--force replaces it",
                    entry);
                return CLI_FAILED;
        }
        if (!same_origin(pull, old.source)) {
                say("%s is there already, from %s: --name gives the new one another name, "
                    "--force replaces it",
                    pull->name, old.source);
                r = CLI_FAILED;
        } else if (is_current(pull, &old)) {
                say("%s is there already, and up to date", pull->name);
                r = -1;
        }
        manifest_deinit(&old);
        return r;
}

static uint64_t free_bytes(const struct pull *pull)
{
        char path[STORE_PATH_BYTES], *slash;
        struct statvfs disk;

        snprintf(path, sizeof(path), "%s", pull->store.places[0]);
        while (statvfs(path, &disk) < 0) {
                slash = strrchr(path, '/');
                if (!slash || slash == path)
                        return UINT64_MAX;
                *slash = '\0';
        }
        return (uint64_t)disk.f_bavail * disk.f_frsize;
}

static int check_disk(const struct pull *pull)
{
        uint64_t needed = selection_bytes(&pull->chosen), left = free_bytes(pull), have;
        char need[AMOUNT_BYTES], there[AMOUNT_BYTES];

        if (pull->chosen.source.kind == SOURCE_PATH)
                return 0; /* a link needs nothing, and a copy fails early enough */
        have = selection_have(&pull->chosen);
        needed -= have < needed ? have : needed;
        if (pull->chosen.choice.form == CHOICE_PIECES)
                needed += selection_bytes(&pull->chosen); /* while they are joined */
        if (!needed || left == UINT64_MAX || needed + SPARE_BYTES <= left)
                return 0;
        say("%s needs %s%s, but %s has only %s free; $SAMOVAR_MODELS names another folder",
            pull->name, amount_bytes((double)needed, need),
            pull->chosen.choice.form == CHOICE_PIECES
                    ? " (its pieces are joined, which takes a copy)"
                    : "",
            pull->store.places[0], amount_bytes((double)left, there));
        return CLI_FAILED;
}

/* ---- the steps ---- */

static int show_plan(struct pull *pull)
{
        struct verdict verdict = { 0 };
        struct plan plan = {
                .source = pull->chosen.origin,
                .revision = pull->chosen.revision,
                .name = pull->name,
                .place = pull->store.places[0],
                .bytes = selection_bytes(&pull->chosen),
                .free_bytes = free_bytes(pull),
                .files = pull->chosen.files,
                .file_count = pull->chosen.choice.count,
                .listing = pull->chosen.source.kind == SOURCE_HUB ? &pull->chosen.listing : NULL,
                .choice = &pull->chosen.choice,
                .verdict = &verdict,
        };

        if (pull->chosen.source.kind != SOURCE_PATH) {
                if (preview(pull->web, pull->chosen.source.kind == SOURCE_HUB ? &pull->hub : NULL,
                            &pull->chosen.choice, pull->chosen.files, &verdict))
                        return stopped(pull);
        } else if (pull->chosen.choice.form != CHOICE_PIECES) {
                verdict_ask(pull->chosen.source.place, &verdict);
        }
        return pull->cli->json ? plan_print_json(&plan) : plan_print(&plan);
}

/* A large model that cannot be served is not fetched. */
static int check_early(struct pull *pull)
{
        uint64_t bytes = selection_bytes(&pull->chosen);
        struct verdict verdict = { 0 };

        if (pull->chosen.source.kind == SOURCE_PATH || bytes < PREVIEW_BYTES ||
            selection_have(&pull->chosen) > bytes / 2 || pull->cli->pull.force)
                return 0;
        if (preview(pull->web, pull->chosen.source.kind == SOURCE_HUB ? &pull->hub : NULL,
                    &pull->chosen.choice, pull->chosen.files, &verdict))
                return stopped(pull);
        if (!verdict.known || verdict.served)
                return 0;
        say("samovard cannot serve %s, so it is not fetched: %s; --force fetches it all the same",
            pull->name, verdict.why);
        return CLI_FAILED;
}

/* The name that an older revision has for this file; NULL: it does not have it. */
static const char *old_name(const struct manifest *old, const struct fetch_file *file)
{
        for (size_t i = 0; i < old->file_count && strlen(file->digest) == 64; i++)
                if (!strcasecmp(old->files[i].sha256, file->digest))
                        return old->files[i].name;
        return NULL;
}

/* Files that an older revision has as well are linked, and not fetched again. */
static void take_old_files(struct pull *pull)
{
        struct manifest old;
        char from[STORE_PATH_BYTES], to[STORE_PATH_BYTES];

        if (manifest_read(pull->incoming.target, &old))
                return;
        for (size_t i = 0; i < pull->chosen.choice.count; i++) {
                const struct fetch_file *file = &pull->chosen.files[i];
                const char *name = old_name(&old, file);
                struct incoming_state state = { .bytes = file->bytes };

                if (!name || !incoming_path(&pull->incoming, file->name, "", to) ||
                    (size_t)snprintf(from, sizeof(from), "%s/%s", pull->incoming.target, name) >=
                            sizeof(from))
                        continue;
                snprintf(state.url, sizeof(state.url), "%s", file->url);
                snprintf(state.digest, sizeof(state.digest), "%s", file->digest);
                snprintf(state.sha256, sizeof(state.sha256), "%s", file->digest);
                if (!link(from, to))
                        incoming_write_state(&pull->incoming, file->name, &state);
        }
        manifest_deinit(&old);
}

static int get_files(struct pull *pull)
{
        struct fetch_ask ask = { .web = pull->web,
                                 .hub = pull->chosen.source.kind == SOURCE_HUB ? &pull->hub : NULL,
                                 .source = &pull->chosen.source,
                                 .incoming = &pull->incoming,
                                 .files = pull->chosen.files,
                                 .count = pull->chosen.choice.count,
                                 .retries = pull->cli->pull.retries,
                                 .digest_is_given = pull->cli->pull.sha256,
                                 .progress = &pull->progress };
        char why[1024] = "", size[AMOUNT_BYTES];
        uint64_t bytes;
        int r = incoming_tidy(&pull->incoming, (const char *const *)pull->chosen.names,
                              pull->chosen.choice.count);

        if (!r && !pull->cli->pull.force)
                take_old_files(pull);
        if (!r)
                r = fetch_look(&ask);
        if (r)
                return fail(strerror(-r));
        r = check_early(pull);
        if (!r)
                r = check_disk(pull);
        if (r)
                return r;
        bytes = selection_bytes(&pull->chosen);
        say("%s %s%s%s%s", pull->web ? "pulling" : "importing", pull->name, bytes ? ", " : "",
            bytes ? amount_bytes((double)bytes, size) : "",
            selection_have(&pull->chosen) ? ", the rest of it" : "");
        progress_begin(&pull->progress, pull->web ? "pulling" : "importing", bytes);
        r = pull->web ? fetch(&ask, why, sizeof(why)) : import(&ask, why, sizeof(why));
        if (r == -ECANCELED)
                return stopped(pull);
        return r ? fail(why) : 0;
}

static bool on_joined(void *arg, uint64_t bytes, uint64_t total)
{
        struct progress *progress = arg;

        progress->total = total;
        progress_show(progress, bytes);
        return !stop_wanted();
}

static int join_pieces(struct pull *pull)
{
        char to[STORE_PATH_BYTES], why[512], sha256[SHA256_HEX_BYTES];
        char **pieces = calloc(pull->chosen.choice.count, sizeof(*pieces));
        uint64_t bytes = 0;
        int r = pieces ? 0 : -ENOMEM;

        snprintf(why, sizeof(why), "out of memory");
        incoming_path(&pull->incoming, pull->chosen.choice.model, "", to);
        for (size_t i = 0; i < pull->chosen.choice.count && !r; i++)
                if (asprintf(&pieces[i], "%s/%s", pull->incoming.folder,
                             pull->chosen.files[i].name) < 0)
                        r = -ENOMEM;
        progress_begin(&pull->progress, "joining the pieces", 0);
        if (!r)
                r = gguf_join(&(struct gguf_joining){ .pieces = (const char *const *)pieces,
                                                      .piece_count = pull->chosen.choice.count,
                                                      .to = to,
                                                      .on_progress = on_joined,
                                                      .arg = &pull->progress },
                              &bytes, sha256, why, sizeof(why));
        progress_clear(&pull->progress);
        if (!r)
                r = manifest_add(&pull->manifest, pull->chosen.choice.model, bytes, sha256);
        for (size_t i = 0; pieces && i < pull->chosen.choice.count; i++)
                free(pieces[i]);
        free(pieces);
        if (r == -ECANCELED)
                return stopped(pull);
        return r ? fail(why) : 0;
}

static int make_manifest(struct pull *pull)
{
        const char *revision = *pull->chosen.revision || pull->chosen.choice.count > 1
                                       ? pull->chosen.revision
                                       : pull->chosen.files[0].revision;
        int r = manifest_set(&pull->manifest, pull->chosen.origin, revision,
                             pull->chosen.choice.model);

        pull->manifest.pulled_s = (uint64_t)time(NULL);
        if (!r && pull->chosen.choice.form == CHOICE_PIECES)
                return join_pieces(pull);
        for (size_t i = 0; i < pull->chosen.choice.count && !r; i++)
                r = manifest_add(&pull->manifest, pull->chosen.files[i].name,
                                 pull->chosen.files[i].bytes, pull->chosen.files[i].sha256);
        return r ? fail("out of memory") : 0;
}

/* samovard looks at what has come, before it gets its name. */
static int check_served(struct pull *pull)
{
        struct verdict verdict;
        char path[STORE_PATH_BYTES], why[STORE_REFUSAL_BYTES];

        if (pull->chosen.choice.form == CHOICE_FOLDER)
                snprintf(path, sizeof(path), "%s", pull->incoming.folder);
        else
                incoming_path(&pull->incoming, pull->chosen.choice.model, "", path);
        verdict_ask(path, &verdict);
        if ((verdict.known && verdict.served) || pull->cli->pull.force)
                return 0;
        snprintf(why, sizeof(why), "samovard %s%s",
                 verdict.known ? "cannot serve it: " : "could not be asked about it",
                 verdict.known ? verdict.why : "");
        incoming_refuse(&pull->incoming, why);
        say("%s is there as a whole, but %s; --force keeps it all the same, samovar rm %s removes "
            "it",
            pull->name, why, pull->name);
        return CLI_FAILED;
}

static int commit(struct pull *pull)
{
        char text[STORE_PATH_BYTES + 64], size[AMOUNT_BYTES], took[AMOUNT_BYTES];
        const char *joined[] = { pull->chosen.choice.model };
        int r = pull->chosen.choice.form == CHOICE_PIECES
                        ? incoming_tidy(&pull->incoming, joined, 1)
                        : 0;

        if (!r)
                r = incoming_commit(&pull->incoming, &pull->manifest);
        if (r) {
                snprintf(text, sizeof(text), "cannot put %s into its place: %s", pull->name,
                         strerror(-r));
                return fail(text);
        }
        say("%s %s, %s, in %s: samovar ask --model %s", pull->web ? "pulled" : "imported",
            pull->name, amount_bytes((double)manifest_bytes(&pull->manifest), size),
            amount_wait((clock_ms() - pull->begin_ms + 999) / 1000, took), pull->name);
        return 0;
}

static int print_manifest(const struct store_model *model)
{
        struct bytes text = { 0 };
        struct json_builder json = json_build(&text);
        int r;

        json_put_object(&json);
        json_put_key_word(&json, "name", model->name);
        json_put_key_word(&json, "path", model->path);
        manifest_put(&json, &model->manifest);
        json_put_object_end(&json);
        r = json_put_end(&json);
        if (!r)
                r = bytes_add(&text, "\n", 1);
        r = r ? fail("out of memory") : screen_raw(text.at, text.count);
        bytes_deinit(&text);
        return r;
}

/* The path on stdout, or the manifest.  The name of a file may have controls of a terminal. */
static int print_result(const struct pull *pull)
{
        struct store_model model;
        struct screen screen;
        int r = store_find(&pull->store, pull->name, &model);

        if (r)
                return fail(strerror(-r));
        if (pull->cli->json) {
                r = print_manifest(&model);
        } else {
                screen_open(&screen, STDOUT_FILENO);
                r = screen_text(&screen, model.path, strlen(model.path));
                if (!r)
                        r = screen_text(&screen, "\n", 1);
        }
        store_model_deinit(&model);
        return r;
}

static int run_locked(struct pull *pull)
{
        pid_t holder;
        int r = incoming_open(&pull->store, pull->name, &pull->incoming, &holder);

        if (r == -EBUSY) {
                say("process %d pulls %s already", (int)holder, pull->name);
                return CLI_FAILED;
        }
        if (r == -EPERM) {
                say("%s/.pull belongs to another user, or has links: remove it, or name another "
                    "folder with $SAMOVAR_MODELS",
                    pull->store.places[0]);
                return CLI_FAILED;
        }
        if (r) {
                say("%s: %s", pull->store.places[0], strerror(-r));
                return CLI_FAILED;
        }
        r = get_files(pull);
        if (!r)
                r = make_manifest(pull);
        if (!r)
                r = check_served(pull);
        if (!r)
                r = commit(pull);
        incoming_close(&pull->incoming);
        return r;
}

static int run(struct pull *pull)
{
        int r;

        if (pull->hub.withheld && pull->chosen.source.kind == SOURCE_HUB)
                say("%s", pull->hub.withheld);
        r = choose_files(pull);
        if (r)
                return r;
        if (!store_may_name(pull->name, strlen(pull->name))) {
                say("%s is no name of a model: --name gives it one, of up to %u letters, digits "
                    "and ._+-",
                    pull->name, STORE_NAME_BYTES);
                return CLI_USAGE;
        }
        if (pull->chosen.source.kind == SOURCE_URL)
                r = learn_sizes(pull);
        if (r)
                return r;
        if (pull->cli->pull.dry_run)
                return show_plan(pull);
        r = look_at_old(pull);
        if (!r)
                r = run_locked(pull);
        return r > 0 ? r : print_result(pull);
}

static bool is_sha256(const char *text)
{
        return strlen(text) == 64 && !text[strspn(text, "0123456789abcdefABCDEF")];
}

static int check_options(const struct cli *cli)
{
        if (cli->argument_count != 1) {
                say("pull takes one model: OWNER/NAME or OWNER/NAME:Q4_K_M of Hugging Face, a URL "
                    "of a GGUF file, or a path that begins with ./ or /");
                return CLI_USAGE;
        }
        if (cli->pull.sha256 && !is_sha256(cli->pull.sha256)) {
                say("--sha256 is %.80s; it must be 64 hexadecimal digits", cli->pull.sha256);
                return CLI_USAGE;
        }
        return 0;
}

int cli_pull(struct cli *cli)
{
        struct pull pull = { .cli = cli, .incoming.lock_fd = -1, .begin_ms = clock_ms() };
        char why[512];
        int r = check_options(cli);

        if (r)
                return r;
        hub_open(&pull.hub);
        if (source_read(cli->arguments[0], pull.hub.endpoint, &pull.chosen.source, why,
                        sizeof(why))) {
                say("%s", why);
                return CLI_USAGE;
        }
        if (store_open(&pull.store))
                return fail("there is no folder for models: set $HOME, or $SAMOVAR_MODELS to one");
        if (pull.chosen.source.kind != SOURCE_PATH && web_new(&pull.web, why, sizeof(why)))
                return fail(why);
        stop_watch();
        r = run(&pull);
        selection_deinit(&pull.chosen);
        manifest_deinit(&pull.manifest);
        web_free(pull.web);
        return r;
}
