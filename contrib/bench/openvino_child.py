"""Runs one model in OpenVINO GenAI, for peer_openvino.py: a process that loads the model once.

    PYTHON openvino_child.py '{"model": "FILE.gguf", "threads": 2, "blocks": 224, "properties": {}}'

PYTHON has the packages openvino-genai and openvino-tokenizers.  The first line on stdout is an object
with `threads`, the number of threads that worked on a prompt, or with `error`.  Then each line
{"streams": 4, "prompt": 128, "tokens": 32} on stdin gets a line with the seconds of the prompts and
those of the tokens after the first: `prompt_s` and `decode_s`, or `error`.
"""
import json
import os
import random
import sys
import time
from pathlib import Path

import numpy
import openvino
import openvino_genai

IDS = range(256, 956)  # every vocabulary has them
WARM_PROMPT, WARM_TOKENS = 512, 2
BUSY = 0.05  # a thread has worked if it took this share of the processor time of the busiest one


class Wrong(Exception):
    """The pipeline did something else than what was to be measured."""


def processor_times():
    """Nanoseconds by thread of this process."""
    times = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            times[task.name] = int((task / "schedstat").read_text().split()[0])
        except OSError:  # it has ended, or the kernel does not count
            pass
    return times


class Model:
    def __init__(self, model, threads, blocks, properties):
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = False
        scheduler.num_kv_blocks = blocks  # else the cache grows while it is measured
        scheduler.max_num_batched_tokens = 1 << 20  # else long prompts take several steps
        # Without hyper-threading it may take fewer threads than it is given.
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads, "sampler_num_threads": threads,
                                      "ENABLE_HYPER_THREADING": True, **properties})
        self.random, self.warm = random.Random(1), set()

    def begin(self, number, prompt, tokens):
        """Adds a request with a prompt that shares nothing with others, and returns its handle."""
        config = openvino_genai.GenerationConfig()
        config.do_sample, config.ignore_eos, config.max_new_tokens = False, True, tokens
        ids = numpy.array([self.random.choices(IDS, k=prompt)], dtype=numpy.int64)
        return self.pipeline.add_request(number, openvino.Tensor(ids), config)

    def run(self, streams, prompt, tokens):
        """Seconds until all have their first token, and seconds from then on.  The first step computes all
        prompts, and each later one gives each stream one token."""
        handles = [self.begin(number, prompt, tokens + 1) for number in range(streams)]
        times = [time.perf_counter()]
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
            times.append(time.perf_counter())
        made = [sum(len(output.generated_ids) for output in handle.read_all()) for handle in handles]
        if made != [tokens + 1] * streams:
            raise Wrong(f"asked for {tokens + 1} tokens of each stream, got {min(made)} to {max(made)}")
        if len(times) != tokens + 2:
            raise Wrong(f"{streams} prompts of {prompt} and {tokens} tokens each took {len(times) - 1} steps")
        return times[1] - times[0], times[-1] - times[1]

    def busy_threads(self):
        """How many threads work on a prompt; None: the kernel does not tell.  The first run is left out,
        because it also repacks weights."""
        self.run(1, WARM_PROMPT, WARM_TOKENS)
        before = processor_times()
        self.run(1, WARM_PROMPT, 0)
        used = [after - before.get(task, 0) for task, after in processor_times().items()]
        return sum(time > BUSY * max(used, default=0) for time in used) or None

    def measure(self, streams, prompt, tokens):
        """The first run with new shapes takes longer, so it is not measured."""
        if (streams, prompt) not in self.warm:
            self.run(streams, prompt, min(tokens, WARM_TOKENS))
            self.warm.add((streams, prompt))
        prompt_s, decode_s = self.run(streams, prompt, tokens)
        return {"prompt_s": prompt_s, "decode_s": decode_s}


def main():
    # The library prints remarks on stdout.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(told):
        print(json.dumps(told), file=answers, flush=True)

    try:
        model = Model(**json.loads(sys.argv[1]))
        answer({"threads": model.busy_threads()})
    except (Wrong, RuntimeError, LookupError, ValueError, TypeError) as problem:
        answer({"error": str(problem) or type(problem).__name__})
        return
    for line in sys.stdin:
        try:
            answer(model.measure(**json.loads(line)))
        except (Wrong, RuntimeError, LookupError, ValueError, TypeError) as problem:
            answer({"error": str(problem) or type(problem).__name__})


if __name__ == "__main__":
    main()
