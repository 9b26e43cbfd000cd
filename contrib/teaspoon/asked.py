"""A model file, served by samovard and asked through the samovar command: what users get."""
import json
import os
import subprocess
import tempfile
import time


class Daemon:
    """`build` is a folder that samovar was built in."""

    def __init__(self, build, path):
        self.command = os.path.join(build, "cli", "samovar")
        self.place = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.place.name, "sock")
        self.daemon = subprocess.Popen([os.path.join(build, "daemon", "samovard"), "--model", path,
                                        "--socket", self.socket,
                                        "--uid-connects-burst", "1000"], stderr=subprocess.DEVNULL)
        for _ in range(200):
            if self.samovar("status").returncode == 0:
                return
            time.sleep(0.05)
        raise SystemExit("samovard does not serve %s" % path)

    def samovar(self, word, *flags, text=""):
        return subprocess.run([self.command, word, "--socket", self.socket, *flags], input=text,
                              capture_output=True, encoding="utf-8", errors="replace")

    def reply(self, prompt, most):
        said = json.dumps({key: prompt[key] for key in ("messages", "tools") if key in prompt})
        done = self.samovar("ask", "--messages", "/dev/stdin", "--temp", "0", "--max-tokens", str(most),
                            text=said)
        if done.returncode:
            raise SystemExit("%s: %s" % (prompt["id"], done.stderr))
        return done.stdout.strip()

    def replies(self, prompts, most):
        return [self.reply(prompt, most) for prompt in prompts]

    def close(self):
        self.daemon.terminate()
        self.daemon.wait()
        self.place.cleanup()
