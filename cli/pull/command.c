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
#include "cli/pull/fetch.h"
#include "cli/pull/get.h"
#include "cli/pull/import.h"
#include "cli/pull/plan.h"
#include "cli/pull/preview.h"
#include "cli/pull/retry.h"
#include "store/gguf-join.h"

#define SPARE_BYTES   (64u << 20)  /* of the disk, that a pull leaves */
#define PREVIEW_BYTES (256u << 20) /* a smaller model is fetched before it is looked at */

struct pull {
        struct cli *cli;
        struct web *web; /* NULL: the source is on this machine */
        struct hub hub;
        struct store store;
        struct source source;
        char origin[2304]; /* the source, as text */
        char revision[256];
        char *folder; /* of a source on this machine */
        struct listing listing;
        struct choice choice;
        struct fetch_file *files; /* of the choice */
        char **urls, **names;     /* of the files */
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

static uint32_t retries_of(const struct pull *pull)
{
        return pull->cli->pull.retries ? pull->cli->pull.retries : PULL_RETRIES;
}

static uint64_t bytes_of(const struct pull *pull)
{
        uint64_t bytes = 0;

        for (size_t i = 0; i < pull->choice.count; i++) {
                if (!pull->files[i].size_known)
                        return 0;
                bytes += pull->files[i].bytes;
        }
        return bytes;
}

/* ---- which files ---- */

/* The file of a URL, and the other pieces if it is the first one. */
static int list_url(struct pull *pull, char *want, size_t want_bytes, char *why, size_t why_bytes)
{
        char path[1024], piece[1100];
        const char *name;
        unsigned number, count;
        size_t stem;
        int r = 0;

        snprintf(path, sizeof(path), "%.*s", (int)strcspn(pull->source.place, "?#"),
                 pull->source.place);
        name = file_name(path);
        if (!is_gguf_model(name) || strlen(name) > 200) {
                snprintf(
                        why, why_bytes,
                        "%.1000s is no URL of a GGUF file (FILE.gguf); a model of several files is "
                        "pulled from a repository of Hugging Face, or from a folder of this "
                        "machine",
                        pull->source.place);
                return -EINVAL;
        }
        snprintf(want, want_bytes, "%s", name);
        if (!is_gguf_piece(name, &number, &count, &stem))
                return listing_add(&pull->listing, name, 0, "");
        if (count > GGUF_PIECES_MAX) {
                snprintf(why, why_bytes, "%s is one of %u pieces; at most %u can be joined", name,
                         count, GGUF_PIECES_MAX);
                return -EINVAL;
        }
        for (unsigned i = 1; i <= count && !r; i++) {
                snprintf(piece, sizeof(piece), "%.*s-%05u-of-%05u.gguf", (int)stem, name, i, count);
                r = listing_add(&pull->listing, piece, 0, "");
        }
        return r;
}

static int list_files(struct pull *pull, char *want, size_t want_bytes, char *why, size_t why_bytes)
{
        struct source *source = &pull->source;
        char commit[128];
        int r;

        switch (source->kind) {
        case SOURCE_HUB:
                snprintf(want, want_bytes, "%s", source->want);
                r = hub_list(pull->web, &pull->hub, source, retries_of(pull), commit,
                             &pull->listing, why, why_bytes);
                if (!r)
                        snprintf(pull->revision, sizeof(pull->revision), "%s", commit);
                return r;
        case SOURCE_URL:
                return list_url(pull, want, want_bytes, why, why_bytes);
        default:
                r = import_list(source->place, &pull->folder, want, &pull->listing, why, why_bytes);
                if (!r)
                        snprintf(source->place, sizeof(source->place), "%s%s%s", pull->folder,
                                 *want ? "/" : "", want);
                return r;
        }
}

/* Where a file of the choice is. */
static char *place_of(const struct pull *pull, const struct listed *file)
{
        const struct source *source = &pull->source;
        char url[4096];
        size_t path;

        switch (source->kind) {
        case SOURCE_HUB:
                return hub_url(&pull->hub, source, pull->revision, file->path, url, sizeof(url))
                               ? strdup(url)
                               : NULL;
        case SOURCE_URL:
                /* Pieces lie beside each other, with the same query. */
                path = strcspn(source->place, "?#");
                while (path && source->place[path - 1] != '/')
                        path--;
                snprintf(url, sizeof(url), "%.*s%s%s", (int)path, source->place, file->path,
                         source->place + strcspn(source->place, "?#"));
                return strdup(url);
        default:
                snprintf(url, sizeof(url), "%s/%s", pull->folder, file->path);
                return strdup(url);
        }
}

/* A file of a URL may have a name that the disk or samovard would not like. */
static int name_files(struct pull *pull, char *why, size_t why_bytes)
{
        const char *sha256 = pull->cli->pull.sha256;

        pull->files = calloc(pull->choice.count, sizeof(*pull->files));
        pull->urls = calloc(pull->choice.count, sizeof(*pull->urls));
        pull->names = calloc(pull->choice.count, sizeof(*pull->names));
        if (!pull->files || !pull->urls || !pull->names)
                return -ENOMEM;
        for (size_t i = 0; i < pull->choice.count; i++) {
                const struct listed *file = &pull->listing.files[pull->choice.files[i]];

                if (strchr(file_name(file->path), '=')) {
                        snprintf(why, why_bytes,
                                 "%s: the name has a =, but samovard reads --model PATH=NAME: "
                                 "rename a copy of the file, and pull that",
                                 file->path);
                        return -EINVAL;
                }
                pull->names[i] = strdup(file_name(file->path));
                if (!pull->names[i])
                        return -ENOMEM;
                pull->urls[i] = place_of(pull, file);
                if (!pull->urls[i]) {
                        snprintf(why, why_bytes, "%s: its address is too long", file->path);
                        return -ENAMETOOLONG;
                }
                pull->files[i] = (struct fetch_file){
                        .url = pull->urls[i],
                        .name = pull->names[i],
                        .bytes = file->bytes,
                        .size_known = pull->source.kind != SOURCE_URL,
                        .digest = sha256 && pull->choice.count == 1 ? sha256 : file->digest,
                };
        }
        return 0;
}

static int choose_files(struct pull *pull)
{
        const struct pull_options *options = &pull->cli->pull;
        char why[2048] = "", want[256] = "";
        int r = list_files(pull, want, sizeof(want), why, sizeof(why));

        if (r == -ECANCELED)
                return stopped(pull);
        if (!r)
                r = choose(&pull->listing,
                           pull->source.kind == SOURCE_HUB ? pull->source.repository
                                                           : pull->source.place,
                           want, &pull->choice, why, sizeof(why));
        if (!r && options->sha256 && pull->choice.count > 1) {
                snprintf(why, sizeof(why), "--sha256 is for one file, but this model has %zu",
                         pull->choice.count);
                r = -EINVAL;
        }
        if (!r)
                r = name_files(pull, why, sizeof(why));
        if (r)
                return fail(*why ? why : "out of memory");
        snprintf(pull->name, sizeof(pull->name), "%s",
                 options->name ? options->name : pull->choice.name);
        source_write(&pull->source, pull->origin, sizeof(pull->origin));
        return 0;
}

/*
 * Asks for the sizes of the files of a URL.  A server that does not tell them, or that refuses now
 * and may not later, leaves them unknown.
 */
static int learn_sizes(struct pull *pull)
{
        struct get_answer answer;
        char why[512];

        for (size_t i = 0; i < pull->choice.count; i++) {
                struct fetch_file *file = &pull->files[i];
                int r = get(pull->web,
                            &(struct get_ask){ .url = file->url,
                                               .to = 1,
                                               .retries = retries_of(pull),
                                               .head_only = true },
                            &answer, why, sizeof(why));

                if (r == -ECANCELED)
                        return stopped(pull);
                if (r)
                        return fail(why);
                file->bytes = answer.total;
                file->size_known = answer.total;
                get_answer_deinit(&answer);
        }
        return 0;
}

/* ---- what is there ---- */

static bool same_origin(const struct pull *pull, const char *origin)
{
        char repository[256];

        if (pull->source.kind != SOURCE_HUB)
                return !strcmp(origin, pull->origin);
        snprintf(repository, sizeof(repository), "hf:%s", pull->source.repository);
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

static bool is_current(const struct pull *pull, const struct manifest *manifest)
{
        if (!*pull->revision || strcmp(manifest->revision, pull->revision) ||
            strcmp(manifest->model, pull->choice.model))
                return false;
        if (pull->choice.form == CHOICE_PIECES)
                return has_file(manifest, pull->choice.model);
        for (size_t i = 0; i < pull->choice.count; i++)
                if (!has_file(manifest, pull->files[i].name))
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
        uint64_t needed = bytes_of(pull), have = 0, left = free_bytes(pull);
        char need[AMOUNT_BYTES], there[AMOUNT_BYTES];

        for (size_t i = 0; i < pull->choice.count; i++)
                have += pull->files[i].have;
        if (pull->source.kind == SOURCE_PATH)
                return 0; /* a link needs nothing, and a copy fails early enough */
        needed -= have < needed ? have : needed;
        if (pull->choice.form == CHOICE_PIECES)
                needed += bytes_of(pull); /* while they are joined */
        if (!needed || left == UINT64_MAX || needed + SPARE_BYTES <= left)
                return 0;
        say("%s needs %s%s, but %s has only %s free; $SAMOVAR_MODELS names another folder",
            pull->name, amount_bytes((double)needed, need),
            pull->choice.form == CHOICE_PIECES ? " (its pieces are joined, which takes a copy)"
                                               : "",
            pull->store.places[0], amount_bytes((double)left, there));
        return CLI_FAILED;
}

/* ---- the steps ---- */

static int show_plan(struct pull *pull)
{
        struct verdict verdict = { 0 };
        struct plan plan = {
                .source = pull->origin,
                .revision = pull->revision,
                .name = pull->name,
                .place = pull->store.places[0],
                .bytes = bytes_of(pull),
                .free_bytes = free_bytes(pull),
                .files = pull->files,
                .file_count = pull->choice.count,
                .listing = pull->source.kind == SOURCE_HUB ? &pull->listing : NULL,
                .choice = &pull->choice,
                .verdict = &verdict,
        };

        if (pull->source.kind != SOURCE_PATH) {
                if (preview(pull->web, pull->source.kind == SOURCE_HUB ? &pull->hub : NULL,
                            &pull->choice, pull->files, &verdict))
                        return stopped(pull);
        } else if (pull->choice.form != CHOICE_PIECES) {
                verdict_ask(pull->source.place, &verdict);
        }
        return pull->cli->json ? plan_print_json(&plan) : plan_print(&plan);
}

/* A large model that cannot be served is not fetched. */
static int check_early(struct pull *pull)
{
        uint64_t bytes = bytes_of(pull), have = 0;
        struct verdict verdict = { 0 };

        for (size_t i = 0; i < pull->choice.count; i++)
                have += pull->files[i].have;
        if (pull->source.kind == SOURCE_PATH || bytes < PREVIEW_BYTES || have > bytes / 2 ||
            pull->cli->pull.force)
                return 0;
        if (preview(pull->web, pull->source.kind == SOURCE_HUB ? &pull->hub : NULL, &pull->choice,
                    pull->files, &verdict))
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
        for (size_t i = 0; i < pull->choice.count; i++) {
                const struct fetch_file *file = &pull->files[i];
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
                                 .hub = pull->source.kind == SOURCE_HUB ? &pull->hub : NULL,
                                 .source = &pull->source,
                                 .incoming = &pull->incoming,
                                 .files = pull->files,
                                 .count = pull->choice.count,
                                 .retries = retries_of(pull),
                                 .progress = &pull->progress };
        char why[1024] = "", size[AMOUNT_BYTES];
        uint64_t bytes, have = 0;
        int r = incoming_tidy(&pull->incoming, (const char *const *)pull->names,
                              pull->choice.count);

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
        bytes = bytes_of(pull);
        for (size_t i = 0; i < pull->choice.count; i++)
                have += pull->files[i].have;
        say("%s %s%s%s%s", pull->web ? "pulling" : "importing", pull->name, bytes ? ", " : "",
            bytes ? amount_bytes((double)bytes, size) : "", have ? ", the rest of it" : "");
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
        char **pieces = calloc(pull->choice.count, sizeof(*pieces));
        uint64_t bytes = 0;
        int r = pieces ? 0 : -ENOMEM;

        snprintf(why, sizeof(why), "out of memory");
        incoming_path(&pull->incoming, pull->choice.model, "", to);
        for (size_t i = 0; i < pull->choice.count && !r; i++)
                if (asprintf(&pieces[i], "%s/%s", pull->incoming.folder, pull->files[i].name) < 0)
                        r = -ENOMEM;
        progress_begin(&pull->progress, "joining the pieces", 0);
        if (!r)
                r = gguf_join(&(struct gguf_joining){ .pieces = (const char *const *)pieces,
                                                      .piece_count = pull->choice.count,
                                                      .to = to,
                                                      .on_progress = on_joined,
                                                      .arg = &pull->progress },
                              &bytes, sha256, why, sizeof(why));
        progress_clear(&pull->progress);
        if (!r)
                r = manifest_add(&pull->manifest, pull->choice.model, bytes, sha256);
        for (size_t i = 0; pieces && i < pull->choice.count; i++)
                free(pieces[i]);
        free(pieces);
        if (r == -ECANCELED)
                return stopped(pull);
        return r ? fail(why) : 0;
}

static int make_manifest(struct pull *pull)
{
        const char *revision = *pull->revision || pull->choice.count > 1 ? pull->revision
                                                                         : pull->files[0].revision;
        int r = manifest_set(&pull->manifest, pull->origin, revision, pull->choice.model);

        pull->manifest.pulled_s = (uint64_t)time(NULL);
        if (!r && pull->choice.form == CHOICE_PIECES)
                return join_pieces(pull);
        for (size_t i = 0; i < pull->choice.count && !r; i++)
                r = manifest_add(&pull->manifest, pull->files[i].name, pull->files[i].bytes,
                                 pull->files[i].sha256);
        return r ? fail("out of memory") : 0;
}

/* samovard looks at what has come, before it gets its name. */
static int check_served(struct pull *pull)
{
        struct verdict verdict;
        char path[STORE_PATH_BYTES];

        if (pull->choice.form == CHOICE_FOLDER)
                snprintf(path, sizeof(path), "%s", pull->incoming.folder);
        else
                incoming_path(&pull->incoming, pull->choice.model, "", path);
        verdict_ask(path, &verdict);
        if ((verdict.known && verdict.served) || pull->cli->pull.force)
                return 0;
        say("%s is there as a whole, but samovard %s%s; --force keeps it all the same, samovar rm "
            "%s removes it",
            pull->name, verdict.known ? "cannot serve it: " : "could not be asked about it",
            verdict.known ? verdict.why : "", pull->name);
        return CLI_FAILED;
}

static int commit(struct pull *pull)
{
        char text[STORE_PATH_BYTES + 64], size[AMOUNT_BYTES], took[AMOUNT_BYTES];
        const char *joined[] = { pull->choice.model };
        int r = pull->choice.form == CHOICE_PIECES ? incoming_tidy(&pull->incoming, joined, 1) : 0;

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

/* The path on stdout, or the manifest. */
static int print_result(const struct pull *pull)
{
        struct store_model model;
        struct bytes text = { 0 };
        struct json_builder json = json_build(&text);
        int r = store_find(&pull->store, pull->name, &model);

        if (r)
                return fail(strerror(-r));
        if (pull->cli->json) {
                json_put_object(&json);
                json_put_key_word(&json, "name", model.name);
                json_put_key_word(&json, "path", model.path);
                manifest_put(&json, &model.manifest);
                json_put_object_end(&json);
                r = json_put_end(&json);
        } else {
                r = bytes_add(&text, model.path, strlen(model.path));
        }
        if (!r)
                r = bytes_add(&text, "\n", 1);
        r = r ? fail("out of memory") : screen_raw(text.at, text.count);
        bytes_deinit(&text);
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

        if (pull->hub.withheld && pull->source.kind == SOURCE_HUB)
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
        if (pull->source.kind == SOURCE_URL)
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

static void deinit(struct pull *pull)
{
        for (size_t i = 0; i < pull->choice.count; i++) {
                free(pull->urls ? pull->urls[i] : NULL);
                free(pull->names ? pull->names[i] : NULL);
        }
        free(pull->urls);
        free(pull->names);
        free(pull->files);
        free(pull->folder);
        choice_deinit(&pull->choice);
        listing_deinit(&pull->listing);
        manifest_deinit(&pull->manifest);
        web_free(pull->web);
}

int cli_pull(struct cli *cli)
{
        struct pull pull = { .cli = cli, .incoming.lock_fd = -1, .begin_ms = clock_ms() };
        char why[512];
        int r = check_options(cli);

        if (r)
                return r;
        hub_open(&pull.hub);
        if (source_read(cli->arguments[0], pull.hub.endpoint, &pull.source, why, sizeof(why))) {
                say("%s", why);
                return CLI_USAGE;
        }
        if (store_open(&pull.store))
                return fail("there is no folder for models: set $HOME, or $SAMOVAR_MODELS to one");
        if (pull.source.kind != SOURCE_PATH && web_new(&pull.web, why, sizeof(why)))
                return fail(why);
        stop_watch();
        r = run(&pull);
        deinit(&pull);
        return r;
}
