"""Files and batches in a state folder: they survive a restart, a kill, a full disk and damage."""
import ctypes
import json
import os
import random
import resource
import shutil
import subprocess

import openai

from checkers import chat_answer
from dialects import CHAT, equal
from scripted_model import text_of
from servers import KEYS, Pair, until
from test_openai_sdk import raised
from test_principals import batch_of, chat_line, client, finished, lines_of, upload

CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x20000, 16384, 1 << 18


def start(build, *bridge, state="state"):
    """A relative folder lies in that of the pair, where the bridge runs."""
    return Pair(build, "scripted", bridge=["--state", state, *bridge])


def restart(pair, how="kill"):
    equal("status", getattr(pair, how)("bridge"), 0 if how == "stop" else None)
    pair.start_bridge()


def state_of(pair):
    return pair.folder / "state"


def names(pair):
    return sorted(path.name for path in state_of(pair).iterdir())


def answers(pair):
    """The bytes of all answers that batches have written so far."""
    found = {}
    for ending in ("output", "errors"):
        for path in state_of(pair).glob("batch_*." + ending):
            found[path.name] = path.read_bytes()
    return found


def check_answers(own, done, expected, failing, said=text_of("hello").decode()):
    out = own.files.content(done.output_file_id).text.splitlines()
    bad = own.files.content(done.error_file_id).text.splitlines() if failing else []
    good, failed = [json.loads(line) for line in out], [json.loads(line) for line in bad]
    equal("answered once", sorted(line["custom_id"] for line in good), sorted(set(expected) - set(failing)))
    equal("failed once", sorted(line["custom_id"] for line in failed), sorted(failing))
    for line in good:
        equal("text", chat_answer(line["response"]["body"])[0].text, said)
    counts = done.request_counts
    equal("counts", (counts.total, counts.completed, counts.failed), (len(expected), len(good), len(failed)))


def tear(pair, rolled):
    """What a crash of the machine may do to the ends of files: half a line more, or less."""
    for path in state_of(pair).glob("batch_*.output"):
        data = path.read_bytes()
        if rolled.random() < 0.5:
            path.write_bytes(data + b'{"id":"batch_req_x","custom_id":"line-199","resp')
        elif data:
            path.write_bytes(data[:len(data) - rolled.randrange(1, 40)])


def test_a_batch_that_is_killed_ten_times_answers_each_line_once(build):
    """Two principals; some lines fail; after some kills the ends of the files are torn."""
    pair = start(build, "--batch-parallel", 2)
    # Each line takes some time, so that most kills come while lines run.
    long = {"max_tokens": 1200}
    said = CHAT.whole(pair.server(), {**CHAT.body("scripted", "say forever."), **long}).text
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rolled = random.Random(seed)
    ids = ["line-%d" % at for at in range(200)]
    failing = [name for at, name in enumerate(ids) if at % 10 == 9]
    data = lines_of([chat_line(name, "forever", **long, **({"temperature": 999} if name in failing else {})) for name in ids])
    other_data = lines_of([chat_line(name, "forever", **long) for name in ids[:50]])
    batch, other = batch_of(client(pair), data), batch_of(client(pair, 1), other_data)
    in_the_middle = 0
    for number, most in enumerate(sorted(rolled.sample(range(1, 180), 10))):
        name = batch.id + ".output"
        until("some lines are there", lambda: name not in names(pair) and client(pair).batches.retrieve(batch.id).status == "completed"
              or answers(pair).get(name, b"").count(b"\n") >= min(most, 180 - most // 9))
        pair.kill("bridge")
        in_the_middle += name in names(pair)
        if number % 3 == 2:
            tear(pair, rolled)
        pair.start_bridge()
    print("killed", in_the_middle, "times in the middle")
    done = finished(client(pair), batch, 100)
    equal("status", done.status, "completed")
    check_answers(client(pair), done, ids, failing, said)
    done_other = finished(client(pair, 1), other, 100)
    check_answers(client(pair, 1), done_other, ids[:50], [], said)
    raised(openai.NotFoundError, client(pair, 1).batches.retrieve, batch.id)
    raised(openai.NotFoundError, client(pair, 1).files.content, done.output_file_id)
    equal("metadata and ids", client(pair).batches.retrieve(batch.id), done)
    restart(pair)
    equal("after one more kill", client(pair).batches.retrieve(batch.id), done)
    left = {name.split(".")[1] for name in names(pair) if name.startswith("batch_")}
    equal("only records of batches are left", left, {"json"})


test_a_batch_that_is_killed_ten_times_answers_each_line_once.limit = 180


def test_files_belong_to_a_name_and_survive_a_restart(build):
    pair = start(build)
    data = lines_of([chat_line("a", "hello")])
    file = upload(client(pair), data, "my file \u00fc.jsonl")
    batch = client(pair).batches.create(input_file_id=file.id, endpoint="/v1/chat/completions",
                                        completion_window="24h", metadata={"who": "an\u00e4"})
    done = finished(client(pair), batch)
    equal("metadata", done.metadata, {"who": "an\u00e4"})
    # The other key comes first now, so each principal has another number.
    keys = pair.folder / "keys"
    keys.write_text("".join("%s %s\n" % pair_ for pair_ in reversed(KEYS.items())))
    restart(pair, "stop")
    for own, other in ((client(pair), client(pair, 1)),):
        equal("file", own.files.retrieve(file.id), file)
        equal("content", own.files.content(file.id).read(), data)
        equal("batch", own.batches.retrieve(batch.id), done)
        equal("listed", [one.id for one in own.batches.list()], [batch.id])
        equal("files", [one.id for one in own.files.list()], [done.output_file_id, file.id])
        raised(openai.NotFoundError, other.files.retrieve, file.id)
        raised(openai.NotFoundError, other.batches.retrieve, batch.id)
    client(pair).files.delete(file.id)
    restart(pair)
    raised(openai.NotFoundError, client(pair).files.retrieve, file.id)


def test_files_of_a_name_without_a_key_are_not_there_and_its_batches_rest(build):
    pair = start(build)
    keys = (pair.folder / "keys").read_text()
    file = upload(client(pair), b"x")
    batch = batch_of(client(pair), lines_of([chat_line("endless-%d" % at, "forever") for at in range(3)]))
    until("it runs", lambda: pair.alive() > 0)
    pair.kill("bridge")
    (pair.folder / "keys").write_text("".join(line for line in keys.splitlines(True) if "anna" not in line))
    pair.start_bridge()
    equal("files of the other", [one.id for one in client(pair, 1).files.list()], [])
    raised(openai.NotFoundError, client(pair, 1).files.retrieve, file.id)
    raised(openai.AuthenticationError, client(pair).files.list)
    pair.until_idle()
    (pair.folder / "keys").write_text(keys)
    restart(pair)
    equal("content", client(pair).files.content(file.id).read(), b"x")
    until("it runs again", lambda: pair.alive() > 0)
    client(pair).batches.cancel(batch.id)
    equal("status", finished(client(pair), batch).status, "cancelled")


def test_a_cancelled_batch_stays_cancelled(build):
    pair = start(build)
    batch = batch_of(client(pair), lines_of([chat_line("hello", "hello")] + [chat_line("endless-%d" % at, "forever") for at in range(3)]))
    until("it has an answer", lambda: client(pair).batches.retrieve(batch.id).request_counts.completed == 1)
    client(pair).batches.cancel(batch.id)
    done = finished(client(pair), batch)
    restart(pair)
    equal("batch", client(pair).batches.retrieve(batch.id), done)
    equal("answers", client(pair).files.content(done.output_file_id).text.count("\n"), 1)


def test_a_batch_outlives_its_input_file(build):
    pair = start(build)
    file = upload(client(pair), lines_of([chat_line("endless", "forever")]))
    batch = client(pair).batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    until("it runs", lambda: pair.alive() > 0)
    client(pair).files.delete(file.id)
    for how in ("kill", "stop"):
        restart(pair, how)
        until("it runs again", lambda: pair.alive() > 0)
    client(pair).batches.cancel(batch.id)
    equal("status", finished(client(pair), batch).status, "cancelled")


def test_limits_and_times_hold_across_restarts(build):
    pair = start(build, "--files-max", 2, "--files-bytes", 1000)
    upload(client(pair), b"x" * 600)
    restart(pair)
    raised(openai.RateLimitError, upload, client(pair), b"x" * 600)
    upload(client(pair), b"x" * 300)
    restart(pair)
    raised(openai.RateLimitError, upload, client(pair), b"x")
    upload(client(pair, 1), b"x")
    # A shorter time holds for files of this process, and each file keeps its own.
    pair.more["bridge"] = ["--state", "state", "--files-keep-ms", 1000]
    restart(pair)
    equal("those before", len(list(client(pair).files.list())), 2)
    short = upload(client(pair, 1), b"y")
    until("it expires", lambda: short.id not in [one.id for one in client(pair, 1).files.list()])
    restart(pair)
    equal("its data is gone", [name for name in names(pair) if name.startswith(short.id)], [])


def test_the_window_of_a_batch_counts_the_time_that_the_bridge_was_away(build):
    pair = start(build)
    batch = batch_of(client(pair), lines_of([chat_line("hello", "hello"), chat_line("endless", "forever")]))
    until("it has an answer", lambda: client(pair).batches.retrieve(batch.id).request_counts.completed == 1)
    pair.kill("bridge")
    path = state_of(pair) / (batch.id + ".json")
    record = json.loads(path.read_text())
    record["times_s"]["validating"] -= 86401
    path.write_text(json.dumps(record))
    pair.start_bridge()
    done = finished(client(pair), batch)
    equal("status", done.status, "expired")
    equal("answers", client(pair).files.content(done.output_file_id).text.count("\n"), 1)


def test_damaged_records_are_kept_aside_and_named_once(build):
    pair = start(build)
    files = [upload(client(pair), b"data %d" % at) for at in range(4)]
    pair.kill("bridge")
    state = state_of(pair)

    def record(at):
        return state / (files[at].id + ".json")
    record(0).write_bytes(record(0).read_bytes()[:50])
    record(1).write_text("[" * 60000)
    (state / (files[2].id + ".data")).write_bytes(b"")
    strange = {"file-%s.json" % ("a" * 24): json.dumps({**json.loads(record(3).read_text()), "bytes": 1 << 60}),
               "file-%s.json" % ("b" * 24): record(3).read_text(), "batch_%s.json" % ("c" * 24): "x" * 70000,
               "batch_%s.json" % ("d" * 24): "{}", "note.txt": "mine", "..json": "", "x" * 250: ""}
    for name, text in strange.items():
        (state / name).write_text(text)
    os.mkfifo(state / ("file-%s.json" % ("e" * 24)))
    os.symlink("/etc/passwd", state / ("file-%s.json" % ("f" * 24)))
    (state / ("file-%s.data" % ("g" * 24))).write_text("no record")
    (state / "file-x.json.new").write_text("cut off")
    aside = [record(at).name for at in range(2)] + [record(2).name, *strange, "file-%s.json" % ("e" * 24), "file-%s.json" % ("f" * 24)]
    pair.start_bridge()
    log = pair.log("bridge")
    for name in aside:
        equal("warnings about " + name, log.count("state_not_read file=%s " % name), 1)
        equal("kept", (name + ".aside" in names(pair)) or len(name) == 250, True)
    assert b"data 0" in (state / (files[0].id + ".data.aside")).read_bytes(), "its data is not kept"
    equal("the rest is gone", [name for name in names(pair) if "g" * 24 in name or name.endswith(".new")], [])
    equal("the whole one", [one.id for one in client(pair).files.list()], [files[3].id])
    restart(pair)
    for name in aside:
        if len(name) < 250:
            equal("warnings about " + name, pair.log("bridge").count("state_not_read file=%s " % name), 1)


def refused_start(pair, words):
    run = subprocess.run([pair.build / "bridge" / "samovar-http", "--config", "none", "--listen", "127.0.0.1:0",
                          "--socket", pair.socket, "--state", "state"],
                         cwd=pair.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)
    equal("status", run.returncode, 1)
    assert words in run.stderr, run.stderr


def test_a_state_folder_that_others_can_use_is_refused(build):
    pair = start(build)
    state = state_of(pair)
    equal("mode", state.stat().st_mode & 0o777, 0o700)
    refused_start(pair, "another samovar-http")
    pair.kill("bridge")
    state.chmod(0o750)
    refused_start(pair, "chmod 0700")
    state.chmod(0o700)
    if os.getuid() == 0:
        os.chown(state, 12345, -1)
        refused_start(pair, "uid 12345")
        os.chown(state, 0, -1)
    shutil.rmtree(state)
    state.write_text("a file")
    refused_start(pair, "state")


def small_disk(path, size):
    """A file system of its own that only this test sees."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) or libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) or \
            libc.mount(b"tmpfs", bytes(path), b"tmpfs", 0, b"mode=0700,size=%d" % size):
        raise OSError(ctypes.get_errno(), "no disk could be mounted; the test needs root")


def fill(path, free):
    """Fills the disk up to some bytes."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"\0" * 4096)
        except OSError:
            pass
        file.truncate(max(0, file.tell() - free))


def on_a_small_disk(build, *bridge):
    pair = start(build, *bridge)
    equal("status", pair.stop("bridge"), 0)
    small_disk(state_of(pair), 4 << 20)
    pair.start_bridge()
    return pair


def test_an_upload_for_which_the_disk_is_full_is_refused_and_later_taken(build):
    pair = on_a_small_disk(build)
    whole, large = upload(client(pair), b"y" * 1000), b"x" * (8 << 20)
    equal("status", raised(openai.InternalServerError, upload, client(pair), large).status_code, 507)
    # Space for the data, but not for the record.
    filler = state_of(pair) / "filler.aside"
    fill(filler, 4096)
    equal("status", raised(openai.InternalServerError, upload, client(pair), b"z" * 3000).status_code, 507)
    equal("listed", [one.id for one in client(pair).files.list()], [whole.id])
    fill(state_of(pair) / "more.aside", 0)
    error = raised(openai.InternalServerError, client(pair).batches.create, input_file_id=whole.id,
                   endpoint="/v1/chat/completions", completion_window="24h")
    equal("status", error.status_code, 507)
    filler.unlink()
    batch = client(pair).batches.create(input_file_id=whole.id, endpoint="/v1/chat/completions", completion_window="24h")
    equal("only this one", [one.id for one in client(pair).batches.list()], [batch.id])
    upload(client(pair), b"z" * 3000)
    restart(pair)
    equal("listed", len(list(client(pair).files.list())), 2)
    equal("content", client(pair).files.content(whole.id).read(), b"y" * 1000)


def test_without_a_state_folder_a_full_spool_refuses_uploads_until_it_has_room(build):
    pair = Pair(build, "scripted", bridge=["--spool", "spool"])
    equal("status", pair.stop("bridge"), 0)
    spool = pair.folder / "spool"
    spool.mkdir(mode=0o700)
    small_disk(spool, 4 << 20)
    pair.start_bridge()
    own, small = client(pair), lines_of([chat_line("a", "hello")])
    whole = upload(own, small)
    for _ in range(3):
        equal("too large", raised(openai.InternalServerError, upload, own, b"x" * (8 << 20)).status_code, 507)
    filler = spool / "filler"
    fill(filler, 0)
    for _ in range(3):
        equal("no room", raised(openai.InternalServerError, upload, own, small).status_code, 507)
        equal("others are served", CHAT.whole(pair.server(), CHAT.body("scripted", "say hello.")).text, text_of("hello").decode())
    equal("listed", [one.id for one in own.files.list()], [whole.id])
    equal("content", own.files.content(whole.id).read(), small)
    filler.unlink()
    equal("refused uploads took no room", own.files.content(upload(own, b"x" * (3 << 20)).id).read(), b"x" * (3 << 20))
    equal("status", finished(own, batch_of(own, small)).status, "completed")


def test_a_batch_for_which_the_disk_is_full_waits(build):
    pair = on_a_small_disk(build)
    ids = ["line-%d" % at for at in range(100)]
    file = upload(client(pair), lines_of([chat_line(name, "hello") for name in ids]))
    filler = state_of(pair) / "filler.aside"
    fill(filler, 3 * 4096)
    batch = client(pair).batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    for _ in range(2):
        until("it waits", lambda: "batch_waits id=%s" % batch.id in pair.log("bridge"))
        assert client(pair).batches.retrieve(batch.id).status in ("in_progress", "finalizing"), batch
        equal("others are served", client(pair).models.list().data[0].id, "scripted")
        restart(pair)
    filler.unlink()
    done = finished(client(pair), batch)
    equal("status", done.status, "completed")
    check_answers(client(pair), done, ids, [])


def test_without_descriptors_a_batch_waits_and_an_upload_is_refused(build):
    pair = start(build)
    own = client(pair)
    kept = upload(own, lines_of([chat_line("line-%d" % at, "hello") for at in range(20)]))
    pid = pair.programs["bridge"].pid
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    batch = own.batches.create(input_file_id=kept.id, endpoint="/v1/chat/completions", completion_window="24h")
    finished(own, batch)
    used = len(os.listdir("/proc/%d/fd" % pid))
    pair.pause("daemon")
    batch = own.batches.create(input_file_id=kept.id, endpoint="/v1/chat/completions", completion_window="24h")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, before[1]))
    pair.go_on("daemon")
    until("it waits", lambda: "batch_waits id=%s" % batch.id in pair.log("bridge"))
    # Behind a refused upload the connection ends, and no other one could begin.
    for what in (lambda: own.files.content(kept.id), lambda: upload(own, b"x")):
        equal("status", raised(openai.InternalServerError, what).status_code, 503)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    done = finished(own, batch)
    check_answers(own, done, ["line-%d" % at for at in range(20)], [])
    until("no descriptor is left over", lambda: len(os.listdir("/proc/%d/fd" % pid)) <= used)


def test_an_end_that_was_cut_off_is_repeated(build):
    """A kill behind each step of the end: no file is there twice, and none is missing."""
    pair = start(build)
    ids = ["line-%d" % at for at in range(20)]
    data = lines_of([chat_line(name, "hello", **({"temperature": 999} if name == "line-7" else {})) for name in ids])
    batch = batch_of(client(pair), data)
    done = finished(client(pair), batch)
    state = state_of(pair)
    pair.kill("bridge")
    # The kill may have come before the last files of the end were removed.
    files = {name: (state / name).read_bytes() for name in names(pair) if name.endswith((".json", ".data"))}
    record = json.loads(files[batch.id + ".json"])
    for status in ("in_progress", "finalizing"):
        for stored in ([], [done.output_file_id], [done.output_file_id, done.error_file_id]):
            shutil.rmtree(state)
            state.mkdir(mode=0o700)
            for name, content in files.items():
                if name.split(".")[0] in [batch.input_file_id, *stored]:
                    (state / name).write_bytes(content)
            before = {**record, "status": status, "ending": "completed" if status == "finalizing" else "validating",
                      "has_output": False, "has_errors": False, "completed": 0, "failed": 0}
            (state / (batch.id + ".json")).write_text(json.dumps(before))
            (state / (batch.id + ".input")).write_bytes(files[batch.input_file_id + ".data"])
            (state / (batch.id + ".output")).write_bytes(files[done.output_file_id + ".data"])
            (state / (batch.id + ".errors")).write_bytes(files[done.error_file_id + ".data"])
            pair.start_bridge()
            again = finished(client(pair), batch)
            equal("files", (again.output_file_id, again.error_file_id), (done.output_file_id, done.error_file_id))
            check_answers(client(pair), again, ids, ["line-7"])
            equal("all files", sorted(one.id for one in client(pair).files.list()),
                  sorted([batch.input_file_id, done.output_file_id, done.error_file_id]))
            pair.kill("bridge")
            equal("files of the folder", sorted(names(pair)), sorted(files))
    pair.start_bridge()
