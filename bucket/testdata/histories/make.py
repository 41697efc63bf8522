#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes histories.json of the vectors: cancellations of takes that await them.

The arithmetic follows "Buckets with holds" in doc/algorithm.md, and shares no code with package bucket. Each case has
one token bucket or stepped bucket without debt. Run it as: python3 bucket/testdata/histories/make.py
"""

import json
import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent
START = 1_700_000_000_000_000
EPOCHS = 8


class Bucket:
    """A bucket of capacity c thousandths that gets n thousandths per p microseconds: at once, or at multiples of p."""

    def __init__(self, c, n, p, stepped):
        shared = 1 if stepped else math.gcd(n, p)
        self.c, self.n, self.p, self.stepped = c, n // shared, p // shared, stepped
        self.unit = 1 if stepped else self.p  # the missing amount counts thousandths divided by unit
        self.missing, self.at = 0, START
        self.epochs, self.until, self.longest = [], 0, 0

    def refill(self, a, b):
        return (b // self.p - a // self.p if self.stepped else b - a) * self.n

    def advance(self, t):
        self.missing = max(self.missing - self.refill(self.at, t), 0)
        self.at = t
        if t >= self.until:
            self.epochs = []

    def retry(self, cost):
        room = self.missing - (self.c - cost) * self.unit
        if room <= 0:
            return 0
        times = -(-room // self.n)
        return (self.at // self.p + times) * self.p - self.at if self.stepped else times

    def answer(self, cost, allowed):
        return {
            "allowed": allowed,
            "remaining": (self.c * self.unit - self.missing) // self.unit,
            "retry_after": None if cost > self.c else 0 if allowed else self.retry(cost),
            "full_after": self.retry(self.c),
            "wait": 0,
        }

    def take(self, t, cost, await_us):
        self.advance(t)
        allowed = cost <= self.c and self.retry(cost) == 0
        if allowed:
            if self.epochs:
                self.epochs[-1]["least"] = min(self.epochs[-1]["least"], self.missing)
            self.missing += cost * self.unit
            # The first take from a full bucket needs no history, and neither does a stepped bucket.
            if await_us and not self.stepped and (self.epochs or self.missing > cost * self.unit):
                self.expect(t, await_us)
        return self.answer(cost, allowed)

    def expect(self, t, await_us):
        if not self.epochs:
            self.epochs, self.until = [{"start": t, "least": self.missing}], 0
        self.until, self.longest = max(self.until, t + await_us), await_us
        last = self.epochs[-1]
        if last["start"] == t or t - last["start"] < -(-self.longest // (EPOCHS - 1)):
            last["least"] = min(last["least"], self.missing)
        else:
            self.epochs.append({"start": t, "least": self.missing})
        while len(self.epochs) > 1 and t - self.epochs[1]["start"] >= self.longest:
            del self.epochs[0]
        while len(self.epochs) > EPOCHS:
            old = self.epochs.pop(0)
            self.epochs[0] = {"start": old["start"], "least": min(old["least"], self.epochs[0]["least"])}

    def cancel(self, t, amount, cost, taken_at):
        self.advance(t)
        left, whole = amount * self.unit, cost * self.unit
        if not self.epochs:
            back = max(whole - self.refill(taken_at, t), 0)
            self.missing -= min(left, back, self.missing)
            return
        walk = [dict(e) for e in self.epochs]
        first = max([i for i, e in enumerate(walk) if e["start"] <= taken_at], default=0)
        known = max(whole - self.refill(taken_at, t), 0) if walk[0]["start"] > taken_at else None
        for i in range(first, len(walk)):
            end, least = t, walk[i]["least"]
            if i + 1 < len(walk):
                end = walk[i + 1]["start"]
            else:
                least = min(least, self.missing)
            walk[i]["least"] = max(walk[i]["least"] - left, 0)
            if i == first and walk[i]["start"] <= taken_at:  # the minimum may be older than the take
                least = max(least, whole - self.refill(taken_at, end))
            left = min(left, least)
        if known is not None:
            left = min(left, known)
        back = min(left, self.missing)
        if back > 0:
            self.missing -= back
            self.epochs = walk
            self.epochs[-1]["least"] = min(self.epochs[-1]["least"], self.missing)


def play(name, comment, limit, script):
    """Runs a script of ("take", at, cost, await), ("peek", at) and ("cancel", at, step, amount)."""
    c, n, p, stepped = limit
    b, steps = Bucket(c, n, p, stepped), []
    for op, at, *rest in script:
        at += START
        if op == "take":
            cost, await_us = rest
            step = {"at": at, "op": "take", "cost": cost}
            if await_us:
                step["await"] = await_us
            steps.append(step | b.take(at, cost, await_us))
        elif op == "cancel":
            of, amount = rest
            b.cancel(at, amount, steps[of]["cost"], steps[of]["at"])
            steps.append({"at": at, "op": "cancel", "of": of, "cost": amount})
        else:
            b.advance(at)
            steps.append({"at": at, "op": "peek", "cost": 0} | b.answer(0, True))
    head = {"capacity": f"{c / 1000:g}", "rate": f"{n / 1000:g}/{p}us", "max_reserved": "0", "n": b.n, "p": b.p}
    if stepped:
        head["algorithm"] = "stepped"
    return {"name": name, "comment": comment, "limit": head, "steps": steps}


def random_case(seed):
    r = random.Random(seed)
    limit = (r.randrange(1, 60), r.randrange(1, 10), r.randrange(1, 90), r.random() < 0.5)
    script, open_takes, b, now = [], [], Bucket(*limit), 0
    for _ in range(30):
        now += r.randrange(0, 1 + r.randrange(1, 120))
        if open_takes and r.random() < 0.35:
            of, cost = open_takes.pop(r.randrange(len(open_takes)))
            amount = cost if r.random() < 0.5 else r.randrange(1, cost + 1)
            script.append(("cancel", now, of, amount))
            b.cancel(START + now, amount, cost, START + script[of][1])
        else:
            cost = r.randrange(1, limit[0] + 1)
            await_us = r.randrange(1, 5000) if r.random() < 0.75 else 0
            if b.take(START + now, cost, await_us)["allowed"]:
                open_takes.append((len(script), cost))
            script.append(("take", now, cost, await_us))
        script.append(("peek", now))
    return play(f"random {seed}", "takes and cancellations at random, each followed by a look", limit, script)


FAST = (10_000, 1, 1, False)  # 10 tokens, a thousandth per microsecond
CASES = [
    play("a busy bucket", "the cost has refilled, but the bucket missed it all the time: it comes back whole", FAST, [
        ("take", 0, 1000, 0), ("take", 0, 8000, 7000), ("take", 1000, 1000, 0), ("take", 2000, 1000, 0), ("take", 3000, 1000, 0),
        ("cancel", 3000, 1, 8000), ("peek", 3000)]),
    play("without await", "the same bucket: only what has not refilled comes back", FAST, [
        ("take", 0, 1000, 0), ("take", 0, 8000, 0), ("take", 1000, 1000, 0), ("take", 2000, 1000, 0), ("take", 3000, 1000, 0),
        ("cancel", 3000, 1, 8000), ("peek", 3000)]),
    play("the first take", "it finds a full bucket and begins no history: only what has not refilled comes back", FAST, [
        ("take", 0, 8000, 7000), ("take", 1000, 2000, 0), ("cancel", 3000, 0, 8000), ("peek", 3000)]),
    play("a bucket that was full", "without the take, the bucket would have been full and lost the refill", FAST, [
        ("take", 0, 100, 0), ("take", 0, 1000, 7000), ("take", 2000, 5000, 0), ("cancel", 2000, 1, 1000), ("peek", 2000)]),
    play("two cancellations", "the second one sees the first", FAST, [
        ("take", 0, 1000, 0), ("take", 0, 4000, 7000), ("take", 0, 5000, 7000), ("take", 4000, 4000, 0),
        ("cancel", 4000, 1, 4000), ("cancel", 4000, 2, 5000), ("peek", 4000)]),
    play("too late", "the expected time is over and nothing else awaits: the history has ended", FAST, [
        ("take", 0, 1000, 0), ("take", 0, 8000, 2000), ("take", 1000, 1000, 0), ("take", 2000, 1000, 0), ("cancel", 2000, 1, 8000), ("peek", 2000)]),
    play("a shorter time", "the epochs follow the last expected time, so the oldest one leaves", FAST, [
        ("take", 0, 1000, 0), ("take", 0, 5000, 7_000_000), ("take", 1000, 1000, 700), ("take", 1200, 1000, 700), ("take", 1900, 1000, 700),
        ("cancel", 1950, 1, 5000), ("peek", 1950), ("cancel", 1960, 4, 1000), ("peek", 1960)]),
    play("a stepped bucket", "it keeps no history: only what has not refilled comes back", (10_000, 1000, 1000, True), [
        ("take", 0, 1000, 0), ("take", 0, 8000, 7000), ("take", 1000, 1000, 0), ("take", 2000, 1000, 0), ("cancel", 2500, 1, 8000), ("peek", 2500)]),
]


def write():
    cases = CASES + [random_case(seed) for seed in range(12)]
    with open(HERE.parent / "vectors" / "histories.json", "w", encoding="utf-8") as f:
        f.write("[\n")
        for i, case in enumerate(cases):
            steps = case.pop("steps")
            head = json.dumps(case, ensure_ascii=False)[1:-1]
            lines = ",\n".join("   " + json.dumps(s, ensure_ascii=False) for s in steps)
            f.write(f" {{{head},\n  \"steps\": [\n{lines}\n  ]}}" + (",\n" if i + 1 < len(cases) else "\n"))
        f.write("]\n")


write()
