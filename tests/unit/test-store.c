/* The folder of models: places, names, manifests, unfinished pulls, and pieces of GGUF files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/gguf-head.h"
#include "store/gguf-join.h"
#include "store/incoming.h"
#include "store/store.h"
#include "store/text-file.h"

#define DIGEST "5528d7200621b80a29774ca0d463d249f4a8eec6dd1374cafc5fb5b934e8879d"

static char folder[] = "/tmp/test-store-XXXXXX";

static int set_up(void **state)
{
        (void)state;
        strcpy(folder + strlen(folder) - 6, "XXXXXX");
        return !mkdtemp(folder) || setenv("SAMOVAR_MODELS", folder, 1);
}

static int tear_down(void **state)
{
        (void)state;
        return store_remove(folder);
}

/* Writes FOLDER/NAME, and makes the folder above it. */
static void lay(const char *name, const char *text)
{
        char path[512], above[512];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        snprintf(above, sizeof(above), "%s", path);
        *strrchr(above, '/') = '\0';
        mkdir(above, 0755);
        assert_int_equal(text_file_write(path, text, strlen(text)), 0);
}

static void lists_what_may_be_a_model(void **state)
{
        struct store_list list;
        struct store store;

        (void)state;
        lay("b.gguf", "12345");
        lay("a/x.gguf", "123");
        lay("c/config.json", "{}");
        lay("c/model.safetensors", "1234567");
        lay("two/x.gguf", "1");
        lay("two/y.gguf", "1");
        lay("none/readme", "1");
        lay(".hidden/x.gguf", "1");
        lay(".pull/x.gguf", "1");
        lay("readme.txt", "1");
        assert_int_equal(store_open(&store), 0);
        assert_int_equal(store.place_count, 1);
        assert_int_equal(store_list(&store, &list), 0);
        assert_int_equal(list.count, 3);
        assert_string_equal(list.models[0].name, "a");
        assert_string_equal(list.models[0].path + strlen(folder), "/a/x.gguf");
        assert_int_equal(list.models[0].bytes, 3);
        assert_string_equal(list.models[1].name, "b");
        assert_string_equal(list.models[1].path + strlen(folder), "/b.gguf");
        assert_string_equal(list.models[2].name, "c");
        assert_string_equal(list.models[2].path, list.models[2].entry);
        assert_int_equal(list.models[2].bytes, 9);
        assert_false(list.models[2].pulled);
        store_list_deinit(&list);
}

static void finds_a_name_in_any_case_if_it_is_clear(void **state)
{
        struct store_model model;
        struct store store;

        (void)state;
        lay("Tea.gguf", "1");
        lay("cup/x.gguf", "1");
        lay("CUP/x.gguf", "1");
        store_open(&store);
        assert_int_equal(store_find(&store, "Tea", &model), 0);
        assert_int_equal(store_find(&store, "tEA", &model), 0);
        assert_string_equal(model.name, "Tea");
        assert_int_equal(store_find(&store, "cup", &model), 0);
        assert_string_equal(model.name, "cup");
        assert_int_equal(store_find(&store, "Cup", &model), -ENOENT);
        assert_int_equal(store_find(&store, "tea.gguf", &model), -ENOENT);
        assert_int_equal(store_find(&store, "../Tea", &model), -ENOENT);
        assert_int_equal(store_find(&store, "", &model), -ENOENT);
        assert_int_equal(store_find(&store, ".", &model), -ENOENT);
}

static void the_places_depend_on_the_user(void **state)
{
        struct store store;
        bool root = !geteuid();

        (void)state;
        unsetenv("SAMOVAR_MODELS");
        setenv("HOME", "/home/someone", 1);
        unsetenv("XDG_DATA_HOME");
        assert_int_equal(store_open(&store), 0);
        assert_int_equal(store.place_count, 2);
        assert_string_equal(store.places[root], "/home/someone/.local/share/samovar/models");
        assert_string_equal(store.places[!root], STORE_SYSTEM);
        setenv("XDG_DATA_HOME", "/data", 1);
        store_open(&store);
        assert_string_equal(store.places[root], "/data/samovar/models");
        setenv("XDG_DATA_HOME", "relative", 1);
        store_open(&store);
        assert_string_equal(store.places[root], "/home/someone/.local/share/samovar/models");
        unsetenv("XDG_DATA_HOME");
}

static void names_are_words_without_places(void **state)
{
        static const char *const good[] = { "a", "Qwen3-0.6B-Q8_0", "x.y", "_a", "a+b" };
        static const char *const bad[] = { "",
                                           ".",
                                           "..",
                                           ".a",
                                           "-a",
                                           "a/b",
                                           "a b",
                                           "a=b",
                                           "a:b",
                                           "\xc3\xa4",
                                           "a\nb",
                                           "12345678901234567890123456789012345678901234"
                                           "567890123456789012345" };

        (void)state;
        for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++)
                assert_true(store_may_name(good[i], strlen(good[i])));
        for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
                assert_false(store_may_name(bad[i], strlen(bad[i])));
}

static void a_manifest_is_read_as_it_was_written(void **state)
{
        struct manifest manifest = { .pulled_s = 1234 }, again;

        (void)state;
        assert_int_equal(manifest_set(&manifest, "hf:a/b:\"x\"", "abc", "m.gguf"), 0);
        assert_int_equal(manifest_add(&manifest, "m.gguf", UINT64_C(1) << 40, DIGEST), 0);
        assert_int_equal(manifest_add(&manifest, "tokenizer.json", 0, ""), 0);
        assert_int_equal(manifest_write(folder, &manifest), 0);
        assert_int_equal(manifest_read(folder, &again), 0);
        assert_string_equal(again.source, manifest.source);
        assert_string_equal(again.revision, "abc");
        assert_string_equal(again.model, "m.gguf");
        assert_int_equal(again.pulled_s, 1234);
        assert_int_equal(again.file_count, 2);
        assert_string_equal(again.files[0].sha256, DIGEST);
        assert_int_equal(manifest_bytes(&again), UINT64_C(1) << 40);
        manifest_deinit(&again);
        manifest_deinit(&manifest);
}

static void refuses_manifests_that_lead_elsewhere(void **state)
{
        static const char *const cases[] = {
                "",
                "[]",
                "{\"source\":\"a\",\"revision\":\"\",\"model\":\"../"
                "x\",\"pulled_s\":1,\"files\":[]}",
                "{\"source\":\"a\",\"revision\":\"\",\"model\":\"..\",\"pulled_s\":1,\"files\":[]}",
                "{\"source\":\"a\",\"revision\":\"\",\"model\":\"x\",\"pulled_s\":-1,\"files\":[]}",
                "{\"source\":\"a\",\"revision\":\"\",\"model\":\"x\",\"pulled_s\":1,\"files\":"
                "[{\"name\":\"a/b\",\"bytes\":1,\"sha256\":\"\"}]}",
                "{\"source\":1,\"revision\":\"\",\"model\":\"x\",\"pulled_s\":1,\"files\":[]}",
        };
        struct manifest manifest;

        (void)state;
        assert_int_equal(manifest_read(folder, &manifest), -ENOENT);
        for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
                lay(MANIFEST_FILE, cases[i]);
                assert_int_equal(manifest_read(folder, &manifest), -EINVAL);
                assert_null(manifest.files);
        }
}

static void lay_incoming(struct incoming *incoming, const char *file, const char *text)
{
        char path[STORE_PATH_BYTES];

        assert_true(incoming_path(incoming, file, "", path));
        assert_int_equal(text_file_write(path, text, strlen(text)), 0);
}

static void commit(const struct store *store, const char *text)
{
        struct manifest manifest = { .pulled_s = 1 };
        struct incoming incoming;
        pid_t holder;

        assert_int_equal(incoming_open(store, "tea", &incoming, &holder), 0);
        lay_incoming(&incoming, "m.gguf", text);
        manifest_set(&manifest, "hf:a/b", "abc", "m.gguf");
        manifest_add(&manifest, "m.gguf", strlen(text), DIGEST);
        assert_int_equal(incoming_commit(&incoming, &manifest), 0);
        incoming_close(&incoming);
        manifest_deinit(&manifest);
}

static void a_model_is_there_as_a_whole_and_is_replaced_as_a_whole(void **state)
{
        struct store_model model;
        struct store store;
        char pull[300];

        (void)state;
        store_open(&store);
        commit(&store, "first");
        commit(&store, "second one");
        assert_int_equal(store_find(&store, "tea", &model), 0);
        assert_true(model.pulled);
        assert_int_equal(model.bytes, 10);
        assert_string_equal(model.path + strlen(folder), "/tea/m.gguf");
        store_model_deinit(&model);
        snprintf(pull, sizeof(pull), "%s/.pull", folder);
        assert_int_equal(access(pull, F_OK), -1);
}

static void two_cannot_pull_the_same_name(void **state)
{
        struct incoming first, second, other;
        struct store store;
        pid_t holder;

        (void)state;
        store_open(&store);
        assert_int_equal(incoming_open(&store, "tea", &first, &holder), 0);
        assert_int_equal(incoming_open(&store, "tea", &second, &holder), -EBUSY);
        assert_int_equal(holder, getpid());
        assert_int_equal(incoming_open(&store, "cup", &other, &holder), 0);
        incoming_close(&other);
        incoming_close(&first);
        assert_int_equal(incoming_open(&store, "tea", &second, &holder), 0);
        incoming_close(&second);
}

static void what_has_come_stays_and_other_things_go(void **state)
{
        static const char *const files[] = { "a", "b" };
        struct incoming_state known = { .bytes = 7, .etag = "\"x\"", .digest = DIGEST }, again;
        struct incoming incoming;
        struct store store;
        char name[STORE_NAME_BYTES + 1], path[STORE_PATH_BYTES];
        uint64_t bytes;
        pid_t holder;

        (void)state;
        store_open(&store);
        assert_int_equal(incoming_open(&store, "tea", &incoming, &holder), 0);
        lay_incoming(&incoming, "a.part", "123");
        lay_incoming(&incoming, "c", "123");
        assert_int_equal(incoming_write_state(&incoming, "a", &known), 0);
        assert_int_equal(incoming_tidy(&incoming, files, 2), 0);
        incoming_close(&incoming);
        assert_true(incoming_name(&store, 0, name));
        assert_string_equal(name, "tea");
        assert_false(incoming_name(&store, 1, name));
        assert_int_equal(incoming_bytes(&store, "tea", &bytes), 0);
        assert_true(bytes > 3);

        assert_int_equal(incoming_open(&store, "tea", &incoming, &holder), 0);
        assert_int_equal(incoming_read_state(&incoming, "a", &again), 0);
        assert_memory_equal(&again, &known, sizeof(again));
        assert_int_equal(incoming_read_state(&incoming, "b", &again), -ENOENT);
        incoming_path(&incoming, "c", "", path);
        assert_int_equal(access(path, F_OK), -1);
        incoming_path(&incoming, "a", ".part", path);
        assert_int_equal(access(path, F_OK), 0);
        incoming_close(&incoming);
}

/* ---- GGUF ---- */

struct made {
        uint8_t bytes[2048];
        size_t count;
};

static void put(struct made *made, const void *bytes, size_t count)
{
        assert_true(made->count + count <= sizeof(made->bytes));
        memcpy(made->bytes + made->count, bytes, count);
        made->count += count;
}

static void put_number(struct made *made, uint64_t number, size_t bytes)
{
        put(made, &number, bytes);
}

static void put_text(struct made *made, const char *text)
{
        put_number(made, strlen(text), 8);
        put(made, text, strlen(text));
}

static void put_key_number(struct made *made, const char *key, uint32_t type, uint64_t value,
                           size_t bytes)
{
        put_text(made, key);
        put_number(made, type, 4);
        put_number(made, value, bytes);
}

/* A tensor of so many bytes (type 24, of one byte a number) at this offset. */
static void put_tensor(struct made *made, const char *name, uint64_t bytes, uint64_t offset)
{
        put_text(made, name);
        put_number(made, 1, 4);
        put_number(made, bytes, 8);
        put_number(made, 24, 4);
        put_number(made, offset, 8);
}

static void pad(struct made *made)
{
        while (made->count % 32)
                put_number(made, 0, 1);
}

static void begin(struct made *made, uint64_t tensors, uint64_t keys)
{
        made->count = 0;
        put_number(made, 0x46554747, 4);
        put_number(made, 3, 4);
        put_number(made, tensors, 8);
        put_number(made, keys, 8);
}

/* The keys that all pieces have, and before them those of the first: a text and two arrays. */
static void put_keys(struct made *made, unsigned piece, unsigned count)
{
        if (!piece) {
                put_text(made, "general.name");
                put_number(made, 8, 4);
                put_text(made, "tea");
                put_text(made, "words");
                put_number(made, 9, 4);
                put_number(made, 8, 4);
                put_number(made, 2, 8);
                put_text(made, "a");
                put_text(made, "bcd");
                put_text(made, "scores");
                put_number(made, 9, 4);
                put_number(made, 6, 4);
                put_number(made, 3, 8);
                put(made, "123456789012", 12);
        }
        if (count) {
                put_key_number(made, "split.no", 2, piece, 2);
                put_key_number(made, "split.count", 2, count, 2);
                put_key_number(made, "split.tensors.count", 5, 3, 4);
        }
}

static void lay_piece(const char *name, const struct made *made)
{
        char path[512];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        assert_int_equal(text_file_write(path, (const char *)made->bytes, made->count), 0);
}

/* Three tensors of 40, 32 and 5 bytes: two in the first piece, none in the second. */
static void make_piece(struct made *made, unsigned piece)
{
        begin(made, piece == 0 ? 2 : piece == 2 ? 1 : 0, piece ? 3 : 6);
        put_keys(made, piece, 3);
        if (!piece) {
                put_tensor(made, "one", 40, 0);
                put_tensor(made, "two", 32, 64);
        } else if (piece == 2) {
                put_tensor(made, "three", 5, 0);
        }
        pad(made);
        for (unsigned i = 0; i < (piece ? piece == 2 ? 5 : 0 : 96); i++)
                put_number(made, piece * 100 + i, 1);
}

static int join(const char *const names[3], struct bytes *ret_whole, char *why)
{
        char paths[3][512], to[512], sha256[SHA256_HEX_BYTES];
        const char *pieces[3] = { paths[0], paths[1], paths[2] };
        uint64_t bytes;
        int r;

        for (unsigned i = 0; i < 3; i++)
                snprintf(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]);
        snprintf(to, sizeof(to), "%s/whole", folder);
        r = gguf_join(&(struct gguf_joining){ .pieces = pieces, .piece_count = 3, .to = to },
                      &bytes, sha256, why, 256);
        if (!r) {
                assert_int_equal(text_file_read(to, 4096, ret_whole), 0);
                assert_int_equal(ret_whole->count, bytes);
        }
        return r;
}

static void joins_pieces_to_the_file_that_was_cut(void **state)
{
        static const char *const names[] = { "p0", "p1", "p2" };
        struct made wanted, piece;
        struct bytes whole = { 0 };
        char why[256] = "";

        (void)state;
        for (unsigned i = 0; i < 3; i++) {
                make_piece(&piece, i);
                lay_piece(names[i], &piece);
        }
        begin(&wanted, 3, 3);
        put_keys(&wanted, 0, 0);
        put_tensor(&wanted, "one", 40, 0);
        put_tensor(&wanted, "two", 32, 64);
        put_tensor(&wanted, "three", 5, 96);
        pad(&wanted);
        for (unsigned i = 0; i < 96; i++)
                put_number(&wanted, i, 1);
        for (unsigned i = 0; i < 5; i++)
                put_number(&wanted, 200 + i, 1);
        if (join(names, &whole, why))
                fail_msg("%s", why);
        /* The end is padded. */
        assert_true(whole.count >= wanted.count && whole.count < wanted.count + 32);
        assert_memory_equal(whole.at, wanted.bytes, wanted.count);
        bytes_deinit(&whole);
}

static void refuses_pieces_that_do_not_belong_together(void **state)
{
        static const char *const names[] = { "p0", "p1", "p2" };
        static const char *const swapped[] = { "p1", "p0", "p2" };
        struct bytes whole = { 0 };
        struct made piece;
        char why[256];

        (void)state;
        for (unsigned i = 0; i < 3; i++) {
                make_piece(&piece, i);
                lay_piece(names[i], &piece);
        }
        assert_int_equal(join(swapped, &whole, why), -EINVAL);
        assert_string_equal(why, "p1: says that it is piece 2 of 3, not 1 of 3");
        lay("p1", "GGUF");
        assert_int_equal(join(names, &whole, why), -EINVAL);
        assert_string_equal(why, "p1: is no GGUF file of version 2 or 3");
        lay("p1", "");
        assert_int_equal(join(names, &whole, why), -EINVAL);
        assert_string_equal(why, "p1: is empty");
}

/* Every beginning of a head is only too short; a changed byte never leads outside. */
static void reads_heads_that_are_cut_or_broken(void **state)
{
        struct gguf_head head;
        struct made piece;
        size_t end;

        (void)state;
        make_piece(&piece, 0);
        assert_int_equal(gguf_head_read(piece.bytes, piece.count, &head), 0);
        assert_int_equal(head.tensor_count, 2);
        assert_int_equal(head.piece_count, 3);
        end = head.tensors.at + head.tensors.bytes;
        assert_int_equal(head.data_at, (end + 31) / 32 * 32);
        for (size_t bytes = 0; bytes < end; bytes++) {
                uint8_t *cut = malloc(bytes + 1);

                memcpy(cut, piece.bytes, bytes);
                assert_int_equal(gguf_head_read(cut, bytes, &head), -EAGAIN);
                free(cut);
        }
        for (size_t at = 0; at < end; at++) {
                for (unsigned bit = 0; bit < 8; bit++) {
                        uint8_t *broken = malloc(piece.count);

                        memcpy(broken, piece.bytes, piece.count);
                        broken[at] ^= (uint8_t)(1u << bit);
                        gguf_head_read(broken, piece.count, &head);
                        free(broken);
                }
        }
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                STORE_TEST(lists_what_may_be_a_model),
                STORE_TEST(finds_a_name_in_any_case_if_it_is_clear),
                STORE_TEST(the_places_depend_on_the_user),
                STORE_TEST(names_are_words_without_places),
                STORE_TEST(a_manifest_is_read_as_it_was_written),
                STORE_TEST(refuses_manifests_that_lead_elsewhere),
                STORE_TEST(a_model_is_there_as_a_whole_and_is_replaced_as_a_whole),
                STORE_TEST(two_cannot_pull_the_same_name),
                STORE_TEST(what_has_come_stays_and_other_things_go),
                STORE_TEST(joins_pieces_to_the_file_that_was_cut),
                STORE_TEST(refuses_pieces_that_do_not_belong_together),
                STORE_TEST(reads_heads_that_are_cut_or_broken),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
