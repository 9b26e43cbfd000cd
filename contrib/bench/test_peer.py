import contextlib
import io
import os
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from unittest import mock

import duel
import peer
import peer_openvino
import peer_server

HELP_FORK_BENCH = """
  -p, --n-prompt <n>                  (default: 512)
  -n, --n-gen <n>                     (default: 128)
  -pg <pp,tg>                         (default: 0,0)
  -gp <pp,tg>                         (default: 0,0)
  -fa, --flash-attn <0|1>             (default: 1)
  -rtr, --run-time-repack <0|1>       (default: 0)
  --defer-experts                     (default: 0)
"""

HELP_FORK_COMMON = """
*           -no-fa, --no-flash-attn        disable Flash Attention (default: enabled)
*           -fa, --flash-attn (auto|on|off|0|1) set Flash Attention (default: on)
            -rtr,   --run-time-repack      repack tensors if interleaved variant is available
"""

HELP_PLAIN_BENCH = """
  -d, --n-depth <n>                         (default: 0)
  -fa, --flash-attn <0|1>                   (default: 0)
"""

HELP_NEW_BENCH = """
  -fa, --flash-attn <on|off|auto>                   (default: auto)
  --repack <0|1>                                    (default: 1)
"""

HELP_NEW_COMMON = """
-fa,   --flash-attn [on|off|auto]       set Flash Attention use ('on', 'off', or 'auto', default: 'auto')
--repack, -nr, --no-repack              whether to enable weight repacking (default: enabled)
"""

HELP_OLD_COMMON = """
  -fa,   --flash-attn             enable Flash Attention (default: disabled)
"""

FORK_BENCH = """load_backend: loaded
[
  {
    "build_commit": "unknown",
    "cpu_info": "AMD EPYC",
    "model_filename": "/tmp/x-{y}.gguf",
    "ser": 0,0,
    "flash_attn": true,
    "n_prompt": 512,
    "n_gen": 0,
    "test_time": "2026-11-23T02:00:00Z",
    "avg_ns": 1216070000,
    "avg_ts": 421.030000,
    "stddev_ts": 0.000000,
    "test": "pp512",
    "samples_ns": [ 1216070000 ],
    "samples_ts": [ 421.03 ]
  },
  {
    "model_filename": "/tmp/x-{y}.gguf",
    "n_prompt": 0,
    "n_gen": 32,
    "avg_ts": 55.510000,
    "test": "tg32",
    "samples_ns": [ 576472000 ],
    "samples_ts": [ 55.51 ]
  },
  {
    "n_prompt": 4096,
    "n_gen": 32,
    "avg_ts": 36.250000,
    "test": "tg32@pp4096",
    "samples_ns": [ 1 ],
    "samples_ts": [ 36.25 ]
  }
]
"""

PLAIN_BENCH = """[
  {
    "build_commit": "b6000",
    "model_type": "llama 1B Q4_0",
    "n_prompt": 0,
    "n_gen": 32,
    "n_depth": 16384,
    "test_time": "2026-11-23T02:00:00Z",
    "avg_ns": 1,
    "avg_ts": 16.1,
    "samples_ts": [ 16.1 ]
  }
]
"""

FORK_BATCHES = """
llama_new_context_with_model: n_ctx = 5120
main: n_kv_max = 5120, n_batch = 2048, n_ubatch = 512, flash_attn = 1, is_pp_shared = 0, n_gpu_layers = -1, n_threads = 2

|    PP |     TG |    B |   N_KV |   T_PP s | S_PP t/s |   T_TG s | S_TG t/s |      T s |    S t/s |
|-------|--------|------|--------|----------|----------|----------|----------|----------|----------|
|   128 |     32 |    4 |    640 |    1.225 |   417.96 |    1.143 |   111.99 |    2.368 |   270.27 |
|   128 |     32 |    8 |   1280 |    2.563 |   399.53 |    1.766 |   144.96 |    4.329 |   295.68 |
n_ctx_req = 10240 is greater than n_kv_max = 5120 for pp = 128, tg = 32, pl = 64

llama_print_timings:        load time =     512.00 ms
"""

OURS = """# Linux 6.18, 2 threads, cpu/avx2, 763 MB of weights a step, 32 tokens, 1 rounds

the machine
                                         | (least-most of rounds)       |                              | target
reading, GB/s                            |    51.20 (51.20-51.20)       |                              | 

tokens/s, and percent of what the machine gives
                                         | (least-most of rounds)       | % (least-most of rounds)     | ceiling
one stream                               |    60.90 (60.90-60.90)       |    92.70 (92.70-92.70)       | reading
2048 shared by eight, the last first token |   414.75 (414.75-414.75)     |                              | 
"""


# What openvino_child.py uses of other packages.  A model's name says how it fails.
STAND_INS = {
    "numpy": "array, int64 = lambda rows, dtype: rows, int",
    "openvino": "Tensor = list",
    "openvino_tokenizers": "",
    "openvino_genai": """
import os

class SchedulerConfig: pass
class GenerationConfig: pass

class Request:
    def __init__(self, wanted, most):
        self.wanted, self.most, self.generated_ids = wanted, most, []
    def read_all(self):
        return [self]

class ContinuousBatchingPipeline:
    def __init__(self, model, scheduler, device, properties):
        print("a remark", flush=True)
        assert not scheduler.enable_prefix_caching and properties["INFERENCE_NUM_THREADS"] == 1
        if model == "refused":
            raise IndexError("Exception from gguf.cpp:1:\\nunordered_map::at\\n")
        self.model, self.requests, self.slow = model, [], model == "slow"
    def add_request(self, number, ids, config):
        assert config.ignore_eos and not config.do_sample
        self.requests.append(Request(config.max_new_tokens, 20 if self.model == "short" else 99))
        return self.requests[-1]
    def has_non_finished_requests(self):
        return bool(self.requests)
    def step(self):
        if self.model == "dies" and len(self.requests) == 8:
            os._exit(3)
        if self.slow and len(self.requests) == 8:
            self.slow = False
            return
        for request in self.requests:
            request.generated_ids.append(1)
        self.requests = [r for r in self.requests if len(r.generated_ids) < min(r.wanted, r.most)]
""",
}


class Slots(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        for n in range(3):
            stop = "true" if n == 2 else "false"
            self.wfile.write(b'data: {"content": "a", "stop": ' + stop.encode() + b"}\n\n")

    def log_message(self, *_):
        pass


class TestPeer(unittest.TestCase):
    def test_a_forks_figures_are_found_though_they_are_no_json(self):
        self.assertEqual(peer.parse_bench(FORK_BENCH),
                         {"prompt of 512": 421.03, "one stream": 55.51, "one stream at 4096": 36.25})

    def test_a_depth_may_be_a_field(self):
        self.assertEqual(peer.parse_bench(PLAIN_BENCH), {"one stream at 16384": 16.1})

    def test_batches_are_found_among_other_lines(self):
        self.assertEqual(peer.parse_batches(FORK_BATCHES), {"batch of 4": 111.99, "batch of 8": 144.96})

    def test_output_without_figures_is_a_failure(self):
        for parse in (peer.parse_bench, peer.parse_batches):
            with self.assertRaises(peer.Failed):
                parse("error: unable to load model\n")

    def test_all_variants_are_those_that_the_help_names(self):
        self.assertEqual(peer.variants(HELP_FORK_BENCH),
                         {"fa": ["-fa", "1", "-rtr", "0"], "fa repack": ["-fa", "1", "-rtr", "1"],
                          "plain": ["-fa", "0", "-rtr", "0"], "repack": ["-fa", "0", "-rtr", "1"]})
        self.assertEqual(peer.variants(HELP_FORK_COMMON),
                         {"fa": ["-fa", "on"], "fa repack": ["-fa", "on", "-rtr"],
                          "plain": ["-fa", "off"], "repack": ["-fa", "off", "-rtr"]})
        self.assertEqual(peer.variants(HELP_PLAIN_BENCH), {"fa": ["-fa", "1"], "plain": ["-fa", "0"]})
        self.assertEqual(peer.variants(HELP_NEW_BENCH, flashes=(True,)),
                         {"fa": ["-fa", "on", "--repack", "0"], "fa repack": ["-fa", "on", "--repack", "1"]})
        self.assertEqual(peer.variants(HELP_NEW_COMMON, flashes=(True,)),
                         {"fa": ["-fa", "on", "--no-repack"], "fa repack": ["-fa", "on"]})
        self.assertEqual(peer.variants(HELP_OLD_COMMON), {"fa": ["-fa"], "plain": []})
        self.assertEqual(peer.variants("nothing of this"), {"plain": []})

    def test_a_depth_is_asked_for_as_the_help_has_it(self):
        self.assertFalse(peer.has_flag(HELP_FORK_BENCH, "-d"))
        self.assertTrue(peer.has_flag(HELP_FORK_BENCH, "-gp"))
        self.assertTrue(peer.has_flag(HELP_PLAIN_BENCH, "-d"))

    def test_our_own_table_is_understood(self):
        self.assertEqual(duel.parse_table(OURS),
                         {"reading, GB/s": (51.2, None), "one stream": (60.9, 92.7),
                          "2048 shared by eight, the last first token": (414.75, None)})

    def test_the_better_variant_is_taken_by_its_median(self):
        result = duel.Duel()
        result.add_theirs([("fa", "one stream", v) for v in (50, 51, 90)] +
                          [("repack", "one stream", v) for v in (60, 61, 62)] +
                          [("fa", "one stream, first token", 300), ("repack", "one stream, first token", 400)])
        self.assertEqual(result.best("one stream"), ("repack", [60, 61, 62], False))
        self.assertEqual(result.best("one stream, first token"), ("fa", [300], True))

    def test_one_lucky_round_is_not_the_best_of_several(self):
        result = duel.Duel()
        result.add_theirs([("fa", "one stream", 50), ("plain", "one stream", 51), ("fa", "one stream", 25)])
        self.assertEqual(result.best("one stream"), ("fa", [50, 25], False))

    def test_each_part_has_its_rounds_and_who_begins_changes(self):
        ran = []
        with contextlib.redirect_stdout(io.StringIO()):
            duel.duel(2, ["a", "b"], lambda part: ran.append(f"our {part}") or {},
                      lambda part: ran.append(f"their {part}") or (), "tokens/s")
        self.assertEqual(ran, ["our a", "their a", "their a", "our a", "our b", "their b", "their b", "our b"])

    def test_several_peers_have_names(self):
        self.assertEqual(peer.named(["/a"]), [("", "/a")])
        self.assertEqual(peer.named(["/a", "ik=/b=c"]), [("", "/a"), ("ik: ", "/b=c")])
        for wrong in (["/a", "/b"], ["x=/a", "x=/b"]):
            with self.assertRaises(peer.Failed):
                peer.named(wrong)

    def test_only_rows_that_are_asked_for_are_measured(self):
        ran, theirs = [], peer.Peer.__new__(peer.Peer)
        theirs.bench, theirs.threads, theirs.tokens = "bench", 2, 32
        run, help_of = peer.run, peer.help_of
        peer.help_of = lambda program: HELP_PLAIN_BENCH
        peer.run = lambda command: ran.append(command[1:]) or (PLAIN_BENCH, FORK_BATCHES)
        try:
            for part, theirs.deep in (("one", False), ("16384", True), ("prompt", True), ("of 8", False)):
                theirs.ask("bench", [], "m", part)
                theirs.ask("batched", [], "m", part)
        finally:
            peer.run, peer.help_of = run, help_of
        self.assertEqual([command[8:] if "json" in command else command[-1:] for command in ran],
                         [["-p", "0", "-n", "32"], ["-p", "0", "-n", "32", "-d", "16384"],
                          ["-p", "512", "-n", "0"], ["8"]])

    def test_who_is_best_nowhere_nor_near_it_is_not_asked_again(self):
        first = {"fa": {"one stream": 40, "batch of 8": 50}, "repack": {"one stream": 36, "batch of 8": 80},
                 "plain": {"one stream": 31, "batch of 8": 63}, "deep": {"one stream at 4096": 1}}
        self.assertEqual(peer.hopeful(first), {"fa", "repack", "deep"})

        asked = []
        theirs = peer.Peer.__new__(peer.Peer)
        theirs.prefix, theirs.bench, theirs.batched = "a fork: ", "/bin/true", None
        theirs.asked_again = {}
        help_of, peer.help_of = peer.help_of, lambda program: HELP_PLAIN_BENCH
        theirs.ask = lambda program, flags, model, part: asked.append((model, flags[1])) or {part: 4 + 2 * int(flags[1])}
        try:
            told = [list(theirs.measure(model, "one stream")) for model in "aaba"]
            told += [list(theirs.measure("a", "prompt"))]
        finally:
            peer.help_of = help_of
        self.assertEqual(asked, [("a", "1"), ("a", "0"), ("a", "1"), ("b", "1"), ("b", "0"), ("a", "1"),
                                 ("a", "1"), ("a", "0")])
        self.assertEqual(told[0], [("a fork: fa", "one stream", 6), ("a fork: plain", "one stream", 4)])
        self.assertEqual(told[3], [("a fork: fa", "one stream", 6)])
        self.assertEqual(told[4][1], ("a fork: plain", "prompt", 4))

    def test_a_server_is_asked_for_every_row(self):
        with ThreadingHTTPServer(("127.0.0.1", 0), Slots) as http:
            threading.Thread(target=http.serve_forever, daemon=True).start()
            server = peer_server.Server.__new__(peer_server.Server)
            server.port, server.random = http.server_port, peer_server.random.Random(1)
            rows = server.measure()
            http.shutdown()
        self.assertEqual(len(rows), 10)
        self.assertTrue(all(value > 0 for value in rows.values()))

    @contextlib.contextmanager
    def openvino_of_stand_ins(self, **options):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in STAND_INS.items():
                (Path(folder) / f"{name}.py").write_text(text)
            with mock.patch.dict(os.environ, {"PYTHONPATH": folder}):
                theirs = peer_openvino.PeerOpenVino(sys.executable, 1, 32, **options)
                yield theirs
                theirs.close()

    def openvino(self, model, *parts, **options):
        """What the peer says of these parts of a model, with stand-ins for its packages."""
        with self.openvino_of_stand_ins(**options) as theirs:
            return [list(theirs.measure(model, part)) for part in parts]

    def test_openvino_measures_the_rows_of_bench_cpu(self):
        told = self.openvino("m", "one stream", "batch", "prompt", "sampler")
        rows = [["one stream"], [f"batch of {n}" for n in (4, 8, 16, 32)], ["prompt of 512"]]
        for part, found in zip(rows, told):
            self.assertEqual([row for variant, row, _ in found if variant == "openvino f32"], part)
            self.assertTrue(all(value > 0 for _, _, value in found))
        self.assertEqual(told[3], [])

    def test_openvino_says_once_why_a_model_is_refused(self):
        self.assertEqual(self.openvino("refused", "one stream", "one stream"), [[(
            "openvino f32", None,
            "unordered_map::at (its reader misses a tensor, or a key such as general.file_type)")], []])

    def test_openvino_has_no_figure_where_it_did_not_do_what_was_asked(self):
        for model, why in (("dies", "openvino_child.py ended with 3: a remark"),
                           ("short", "asked for 33 tokens of each stream, got 20 to 20"),
                           ("slow", "8 prompts of 128 and 2 tokens each took 4 steps")):
            with self.subTest(model):
                self.assertEqual(self.openvino(model, "batch of 8")[0], [("openvino f32", None, why)])

    def test_openvino_reads_another_file_and_one_precision_when_told(self):
        told = self.openvino("refused", "one stream", reads="m", precision="bf16")
        self.assertEqual([(variant, row) for variant, row, _ in told[0]], [("openvino bf16", "one stream")])

    def test_openvino_ends_a_child_for_the_next_one_where_memory_is_short(self):
        with tempfile.NamedTemporaryFile() as model:
            model.write(b"1234")
            model.flush()
            for available, kept in ((20, 2), (19, 1), (None, 2)):
                with self.subTest(available), self.openvino_of_stand_ins() as theirs, \
                        mock.patch.object(peer_openvino, "memory_available", return_value=available):
                    told = list(theirs.measure(model.name, "one stream"))
                    self.assertEqual([variant for variant, _, _ in told], list(peer_openvino.VARIANTS))
                    self.assertEqual(len(theirs.children), kept)

    def test_openvino_wants_a_python_with_its_packages(self):
        for wrong in ("/nonexistent/python", "/bin/false"):
            with self.assertRaises(peer.Failed):
                peer_openvino.PeerOpenVino(wrong, 1, 32)


if __name__ == "__main__":
    unittest.main()
