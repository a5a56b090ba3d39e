"""Shells as a person types into them: a word begun, the tabulator key, and what stands there then."""

import os
import pty
import re
import select
import shlex
import subprocess
import time

import rig

PROMPT = "what next? "
# In its place stands a function that says its words.
STAND_IN = "ringmaster() { printf '<%s>' words \"$@\" spoken; }"
ZSH = ["autoload -Uz compinit; compinit -u", "setopt noautoremoveslash"]  # a folder's slash stays, as in the other two
START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


def environment(home):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RINGMASTER_", "XDG_", "BASH_", "FISH_", "ZDOTDIR"))}
    return {**kept, "TERM": "dumb", "HOME": str(home), "LC_ALL": "C.UTF-8", "HISTFILE": "/dev/null"}


class Terminal:
    """One shell on a terminal of its own, in `folder`; `setup`: lines that it gets before anything else."""

    def __init__(self, shell, folder, home, setup):
        self.seen = ""
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(START[shell][0], START[shell], environment(home))
        half = len(PROMPT) // 2  # what is typed is echoed, and is no prompt
        self.write("\n".join([*setup, STAND_IN, f"PS1='{PROMPT[:half]}''{PROMPT[half:]}'", ""]))
        self.read_to(PROMPT)

    def write(self, text):
        os.write(self.end, text.encode())

    def read_to(self, text):
        """What is read up to there and with it; what follows stays for the next call."""
        deadline = time.monotonic() + rig.DEADLINE_S
        while text not in self.seen:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.end], [], [], left)[0], f"no {text!r} in {self.seen!r}"
            self.seen += os.read(self.end, 65536).decode(errors="replace")
        upto = self.seen.index(text) + len(text)
        read, self.seen = self.seen[:upto], self.seen[upto:]
        return read

    def completed(self, typed):
        """The words of that command once the last of them is completed."""
        self.write(f"ringmaster {typed}\t\n")
        said = re.search(r"<words>(.*)<spoken>$", self.read_to("<spoken>"), re.DOTALL)
        self.read_to(PROMPT)
        return re.findall(r"<([^<>]*)>", said[1])

    def close(self):
        os.close(self.end)
        os.waitpid(self.pid, 0)


def on_terminal(shell, folder, home, setup, lines):
    terminal = Terminal(shell, folder, home, setup)
    try:
        return [terminal.completed(typed) for typed in lines]
    finally:
        terminal.close()


def in_fish(folder, home, setup, lines, prefix=None):
    """fish says what would complete a line; `prefix`: where all is installed. It asks nobody about a program that there is not."""
    asks = [f"echo '<line>'; complete -C {shlex.quote('ringmaster ' + typed)}" for typed in lines]
    more = {"XDG_DATA_DIRS": f"{prefix}/share:/usr/share", "PATH": f"{prefix}/bin:{os.environ['PATH']}"} if prefix else {}
    done = subprocess.run(["fish", "--private", "-c", "\n".join([*setup, *asks])], capture_output=True, text=True, check=True,
                          cwd=folder, env={**environment(home), **more}, timeout=rig.DEADLINE_S, stdin=subprocess.DEVNULL)
    assert not done.stderr, done.stderr
    found = [[one.split("\t")[0] for one in part.splitlines() if one] for part in done.stdout.split("<line>")[1:]]
    return [[*typed.split()[:-1], *words] for typed, words in zip(lines, found, strict=True)]
