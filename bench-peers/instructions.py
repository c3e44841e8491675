"""What QEMU wrote down of the blocks of instructions that it ran, by programs of BPF (instructions.sh).

    instructions.py log MONITOR           writes down each block that is run, for three seconds
    instructions.py count SYMBOLS BLOCKS  for each program how often it ran, and how many instructions, for each
                                          switch; in how many cache lines those of one run are
"""

import bisect
import re
import socket
import sys
import time
from collections import Counter

LINE = 64  # bytes of a cache line
FARTHEST = 1 << 17  # bytes; no program is as long


def log(monitor):
    """A log of all that the guest runs would be gigabytes."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(monitor)
        for command, seconds in ((b"log in_asm,exec,nochain\n", 3), (b"log none\n", 0.5)):
            line.send(command)
            time.sleep(seconds)


class Programs:
    """Where programs are, by their symbols."""

    def __init__(self, path):
        found = []
        for line in open(path):
            address, _, symbol = line.split()[:3]
            name = re.fullmatch(r"bpf_prog_[0-9a-f]{16}_(\S+)", symbol)
            if name:
                found.append((int(address, 16), name[1]))
        self.places = sorted(found)
        self.addresses = [address for address, _ in self.places]

    def at(self, address):
        """The program there, and where it begins."""
        n = bisect.bisect(self.addresses, address) - 1
        if n < 0 or address - self.addresses[n] > FARTHEST:
            return None, 0
        return self.places[n][1], self.addresses[n]


def read(path):
    """The instructions of each block, and which blocks were run, one after the other."""
    blocks, run, block = {}, [], None
    for line in open(path, errors="replace"):
        if line.startswith("IN:"):
            block = None
        elif line.startswith("0x"):
            address, _, text = line.partition(":")
            found = re.match(r"\s*((?:[0-9a-f]{2} )+)", text)
            if not found:
                continue  # the rest of a long instruction
            if block is None:
                block = blocks[int(address, 16)] = []
            block.append((int(address, 16), len(found[1].split())))
        elif line.startswith("Trace"):
            run.append(int(re.search(r"\[[0-9a-f]+/([0-9a-f]+)/", line)[1], 16))
    return blocks, run


def count(symbols, blocks_path):
    programs = Programs(symbols)
    blocks, run = read(blocks_path)
    runs, instructions, lines, met = Counter(), Counter(), Counter(), {}
    for address in run:
        name, begin = programs.at(address)
        if name is None:
            continue
        if address == begin:
            runs[name] += 1
            lines[name] += len(met.get(name, ()))
            met[name] = set()
        block = blocks.get(address, [])
        instructions[name] += len(block)
        for at, size in block:
            met.setdefault(name, set()).update((at // LINE, (at + size - 1) // LINE))
    switches = runs["on_switch"]
    if not switches:
        sys.exit("no switch was seen: is the machine much slower than it was?")
    print(f"{switches} switches; for each of them:")
    print("program\truns\tinstructions\tof one run\tin cache lines")
    for name, number in instructions.most_common():
        if runs[name] and number >= switches:
            print(f"{name}\t{runs[name] / switches:.2f}\t{number / switches:.0f}"
                  f"\t{number / runs[name]:.0f}\t{lines[name] / runs[name]:.1f}")
    print(f"all\t\t{sum(instructions.values()) / switches:.0f}\t\t")


if __name__ == "__main__":
    {"log": log, "count": count}[sys.argv[1]](*sys.argv[2:])
