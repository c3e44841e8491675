"""Sleeps in functions, and says each time which ones run, as the interpreter has them: one line of
JSON with the kind of call and [name, file, line] of each, innermost first."""

import asyncio
import functools
import json
import os
import sys
import threading
import time

TIMES = 12
SLEEP = 0.004
LOCK = threading.Lock()


def say(kind, frame):
    calls = []
    while frame is not None:
        code = frame.f_code
        calls.append([code.co_qualname, code.co_filename, frame.f_lineno])
        frame = frame.f_back
    with LOCK:
        print(json.dumps([kind, calls]))


def a(kind):
    b(kind)


def b(kind):
    if kind:
        c(
            kind,
        )


def c(kind):
    say(kind, sys._getframe()); time.sleep(SLEEP)


class Server:
    def handle(self):
        def within(number):
            say("method", sys._getframe()); time.sleep(SLEEP)
            return number

        return (lambda number: within(number))(1)


def größe_π():
    say("unicode", sys._getframe()); time.sleep(SLEEP)


def numbers():
    for number in range(2):
        say("generator", sys._getframe()); time.sleep(SLEEP)
        yield number


def sleepy_key(number):
    say("callback", sys._getframe()); time.sleep(SLEEP)
    return -number


def calls_back():
    return sorted([1], key=functools.partial(sleepy_key))


async def inner():
    say("async", sys._getframe()); time.sleep(SLEEP)


async def outer():
    await inner()


def deep(depth):
    if depth:
        deep(depth - 1)
    else:
        say("deep", sys._getframe()); time.sleep(SLEEP)


def spin_here(until):
    number = 0
    while time.monotonic() < until:
        for n in range(1000):
            number += n
    return number


def in_thread(kind):
    for _ in range(TIMES):
        a(kind)


def in_child():
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    for _ in range(TIMES):
        a("child")
    sys.stdout.flush()
    os._exit(0)


def main():
    # The interpreter is found while this sleeps.
    time.sleep(0.4)
    for _ in range(TIMES):
        a("chain")
        Server().handle()
        größe_π()
        for _ in numbers():
            pass
        calls_back()
        asyncio.run(outer())
        deep(300)
    threads = [threading.Thread(target=in_thread, args=[f"thread {n}"]) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.flush()
    in_child()
    spin_here(time.monotonic() + 0.5)
    code = spin_here.__code__
    lines = [line for _, _, line in code.co_lines() if line]
    print(json.dumps(["spin", [[code.co_qualname, code.co_filename, max(lines)]]]))


main()
