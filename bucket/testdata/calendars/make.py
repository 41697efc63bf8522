#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes boundaries.txt, and calendars.json of the vectors, from Python's zoneinfo.

The Go test compares package bucket with both files. Run the script after an update of the system's time zone
database has changed future rules: python3 bucket/testdata/calendars/make.py
"""

import datetime as dt
import json
import pathlib
import zoneinfo

HERE = pathlib.Path(__file__).parent
EPOCH = dt.datetime(1970, 1, 1)
UTC = dt.timezone.utc
FIRST, LAST = 1968, 2200

ZONES = """UTC Europe/Berlin America/New_York Asia/Kathmandu Pacific/Apia Africa/Casablanca America/Sao_Paulo
Australia/Lord_Howe Antarctica/Troll Europe/Dublin Africa/Monrovia America/St_Johns Pacific/Kwajalein
America/Scoresbysund Asia/Gaza Pacific/Kiritimati""".split()

# Calendars: window, month, day, time of day.
CALENDARS = [
    ("day", 0, 1, "0000"),
    ("day", 0, 1, "0230"),
    ("week", 0, 1, "0000"),
    ("week", 0, 7, "0200"),
    ("month", 0, 1, "0000"),
    ("month", 0, 28, "2345"),
    ("year", 1, 1, "0000"),
    ("year", 10, 31, "0230"),
]


def seconds(naive):
    return (naive - EPOCH) // dt.timedelta(seconds=1)


def local(zone, t):
    """The clocks of zone at t seconds, as a naive date and time."""
    return dt.datetime.fromtimestamp(t, UTC).astimezone(zone).replace(tzinfo=None)


def start(zone, naive):
    """The first second at which the clocks of zone show naive or later."""
    first = seconds(naive - naive.replace(tzinfo=zone, fold=0).utcoffset())
    if local(zone, first) == naive:
        return first
    # The clocks skip naive. With fold 0 its second is after the gap, with fold 1 before it.
    low = seconds(naive - naive.replace(tzinfo=zone, fold=1).utcoffset())
    high = first
    assert local(zone, low) < naive < local(zone, high)
    while high - low > 1:
        middle = (low + high) // 2
        if local(zone, middle) < naive:
            low = middle
        else:
            high = middle
    return high


def dates(window, month, day, first, last):
    """The first dates of all windows from the year first up to the year last."""
    if window == "year":
        return [dt.datetime(y, month, day) for y in range(first, last + 1)]
    if window == "month":
        return [dt.datetime(y, m, day) for y in range(first, last + 1) for m in range(1, 13)]
    step = dt.timedelta(days=7 if window == "week" else 1)
    date, all_dates = dt.datetime(first, 1, 1), []
    while window == "week" and date.isoweekday() != day:
        date += dt.timedelta(days=1)
    while date.year <= last:
        all_dates.append(date)
        date += step
    return all_dates


def starts(zone_name, window, month, day, time, first=FIRST, last=LAST):
    """Pairs of a window's start and the same date and time in UTC, in seconds."""
    zone = zoneinfo.ZoneInfo(zone_name)
    at = dt.timedelta(hours=int(time[:2]), minutes=int(time[2:]))
    return [(start(zone, d + at), seconds(d + at)) for d in dates(window, month, day, first, last)]


def write_boundaries():
    lines = [
        "# Written by make.py. Each line is a calendar: window.month.day.time.zone, then the starts of its windows from",
        "# 1968 to 2200 as the difference from the same date and time in UTC, in seconds. 3600x7 means seven times 3600.",
    ]
    for zone in ZONES:
        for window, month, day, time in CALENDARS:
            runs = []
            for t, utc in starts(zone, window, month, day, time):
                if runs and runs[-1][0] == t - utc:
                    runs[-1][1] += 1
                else:
                    runs.append([t - utc, 1])
            text = " ".join(f"{d}x{n}" for d, n in runs)
            lines.append(f"{window}.{month}.{day}.{time}.{zone} {text}")
    (HERE / "boundaries.txt").write_text("\n".join(lines) + "\n")


MEAN = {"day": 86400, "week": 7 * 86400, "month": 2629746, "year": 31556952}
LONGEST = 2**53 - 1


class Bucket:
    """A naive calendar bucket: it walks through all window starts, one by one. Amounts are thousandths, times µs."""

    def __init__(self, zone, window, month, day, time, n, capacity=None, max_reserved=None, years=(1970, 2100)):
        self.n, self.capacity = n * 1000, (capacity or n) * 1000
        self.debt = 1000 * self.n - self.capacity if max_reserved is None else max_reserved * 1000
        self.starts = sorted({t * 1_000_000 for t, _ in starts(zone, window, month, day, time, *years)})
        self.level, self.at = self.capacity, 0
        self.used = set()
        hh_mm = time[:2] + ":" + time[2:]
        calendar = {"window": window, "zone": zone, "month": month, "day": day, "start": hh_mm}
        self.limit = {"algorithm": "stepped", "anchor": "calendar", "capacity": str(capacity or n),
                      "rate": f"{n}/{MEAN[window]}s", "calendar": calendar}
        if max_reserved is not None:
            self.limit["max_reserved"] = str(max_reserved)
        self.limit |= {"n": self.n, "p": MEAN[window] * 1_000_000, "starts": None}
        self.steps = []

    def level_at(self, t):
        level = self.level
        for s in self.starts:
            if self.at < s <= t:
                level = min(level + self.n, self.capacity)
        return level

    def arrival(self, t, want):
        """The first instant from t on at which the level is want."""
        level = self.level_at(t)
        if level >= want:
            return t
        for s in self.starts:
            if s > max(t, self.at):
                level = min(level + self.n, self.capacity)
                if level >= want:
                    return s
        raise ValueError("more years are necessary")

    def refill(self, t):
        self.level = self.level_at(t)
        self.at = max([self.at] + [s for s in self.starts if s <= t])

    def answer(self, t, allowed, retry, owes):
        level = self.level_at(t)
        return {"allowed": allowed, "remaining": max(level, 0), "retry_after": retry,
                "full_after": self.arrival(t, self.capacity) - t,
                "wait": self.arrival(t, 0) - t if owes else 0}

    def ask(self, op, t, cost, max_wait=0):
        level, wait, retry = self.level_at(t), max_wait, 0
        force = op == "charge"
        if force:
            allowed = level - cost >= -self.debt
            if not allowed:
                room = self.capacity - cost + self.debt
                retry = None if room < 0 else self.arrival(t, self.capacity - room) - t
        else:
            start = max(t, self.at)
            possible = cost <= self.capacity
            allowed = possible and (level >= cost or wait > 0 and level - cost >= -self.debt
                                    and self.arrival(t, cost) <= start + wait)
            if not possible:
                retry = None
            elif not allowed:
                retry = self.arrival(t, cost) - t - wait
                if wait > 0 and level - cost < -self.debt:
                    retry = max(retry, self.arrival(t, cost - self.debt) - t)
        if allowed and op != "peek":
            self.refill(t)
            self.level -= cost
        step = {"at": t, "op": op, "cost": cost}
        if max_wait:
            step["max_wait"] = max_wait
        self.steps.append(step | self.answer(t, allowed, retry, allowed))

    def take(self, t, cost, **more):
        self.ask("take", t, cost, **more)

    def refund(self, t, cost):
        if self.level_at(t) < self.capacity or self.level < self.capacity:
            self.refill(t)
            self.level = min(self.level + cost, self.capacity)
        self.steps.append({"at": t, "op": "refund", "cost": cost})

    def case(self, name, comment):
        last = max(s["at"] + s.get("full_after", 0) for s in self.steps)
        before = [s for s in self.starts if s <= min(s["at"] for s in self.steps)][-1:]
        self.limit["starts"] = before + [s for s in self.starts if s > before[0]][: self.count(before[0], last) + 1]
        return {"name": name, "comment": comment, "limit": self.limit, "steps": self.steps}

    def count(self, low, high):
        return sum(low < s <= high for s in self.starts)


def us(zone, text, micros=0):
    """The instant at which the clocks of zone show text."""
    naive = dt.datetime.fromisoformat(text)
    return start(zoneinfo.ZoneInfo(zone), naive) * 1_000_000 + micros


def cases():
    def windows(name, comment, zone, window, month, day, time, texts, cost=1000, n=3, **more):
        """Takes everything just before and at each boundary."""
        first = int(texts[0][:4])
        b = Bucket(zone, window, month, day, time, n, years=(first - 1, first + 8), **more)
        for text in texts:
            t = us(zone, text)
            b.take(t - 1, 1000)
            b.take(t - 1, n * 1000)
            b.take(t, n * 1000)
            b.take(t + 1, 1000)
        return b.case(name, comment)

    berlin, york = "Europe/Berlin", "America/New_York"
    yield windows("day across spring in Berlin", "the day of 2026-03-29 has 23 hours", berlin, "day", 0, 1, "0000",
                  ["2026-03-29T00:00", "2026-03-30T00:00", "2026-03-31T00:00"])
    yield windows("day across autumn in Berlin", "the day of 2026-10-25 has 25 hours", berlin, "day", 0, 1, "0000",
                  ["2026-10-25T00:00", "2026-10-26T00:00", "2026-10-27T00:00"])
    yield windows("02:30 in the gap", "clocks skip 02:30 on 2026-03-29: the window starts at 03:00", berlin, "day", 0, 1, "0230",
                  ["2026-03-28T02:30", "2026-03-29T02:30", "2026-03-30T02:30"])
    yield windows("02:30 in the overlap", "clocks show 02:30 twice on 2026-10-25: the first counts", berlin, "day", 0, 1, "0230",
                  ["2026-10-24T02:30", "2026-10-25T02:30", "2026-10-26T02:30"])
    yield windows("midnight in the gap", "Sao Paulo skipped 00:00 on 2018-11-04", "America/Sao_Paulo", "day", 0, 1, "0000",
                  ["2018-11-03T00:00", "2018-11-04T00:00", "2018-11-05T00:00"])
    yield windows("skipped date", "Apia skipped 2011-12-30: there is no window for it", "Pacific/Apia", "day", 0, 1, "0000",
                  ["2011-12-29T00:00", "2011-12-31T00:00", "2012-01-01T00:00"])
    yield windows("half an hour", "Lord Howe moves its clocks by 30 minutes", "Australia/Lord_Howe", "day", 0, 1, "0200",
                  ["2026-04-05T02:00", "2026-10-04T02:00", "2026-10-05T02:00"])
    yield windows("two hours", "Troll moves its clocks by two hours", "Antarctica/Troll", "day", 0, 1, "0230",
                  ["2026-03-29T02:30", "2026-03-30T02:30", "2026-10-25T02:30"])
    yield windows("Ramadan", "Casablanca moves its clocks for Ramadan", "Africa/Casablanca", "day", 0, 1, "0230",
                  ["2026-02-15T02:30", "2026-03-22T02:30", "2026-03-23T02:30"])
    yield windows("leap day", "2028-02-29 is a day like any other", "Asia/Kathmandu", "day", 0, 1, "0000",
                  ["2028-02-28T00:00", "2028-02-29T00:00", "2028-03-01T00:00"])
    yield windows("week from Sunday", "weeks start on Sundays at 18:00", york, "week", 0, 7, "1800",
                  ["2026-03-01T18:00", "2026-03-08T18:00", "2026-03-15T18:00"])
    yield windows("month", "months of 31, 28 and 31 days", berlin, "month", 0, 1, "0000",
                  ["2026-01-01T00:00", "2026-02-01T00:00", "2026-03-01T00:00", "2026-04-01T00:00"])
    yield windows("billing day", "months from day 28 at 09:15, also in leap years", york, "month", 0, 28, "0915",
                  ["2028-01-28T09:15", "2028-02-28T09:15", "2028-03-28T09:15"])
    yield windows("fiscal year", "years from April 6", "Europe/London", "year", 4, 6, "0000",
                  ["2027-04-06T00:00", "2028-04-06T00:00", "2029-04-06T00:00"])

    b = Bucket(berlin, "month", 0, 1, "0000", 10, capacity=25, years=(2026, 2031))
    t = us(berlin, "2026-01-15T12:00")
    b.take(t, 25_000)
    b.take(t, 1)
    b.take(us(berlin, "2026-02-01T00:00") - 1, 1)
    b.take(us(berlin, "2026-02-01T00:00"), 11_000)
    b.take(us(berlin, "2026-02-28T23:59"), 4_000)
    b.take(us(berlin, "2026-03-31T23:59:59"), 17_000)
    b.take(us(berlin, "2026-04-01T00:00"), 17_000)
    b.take(us(berlin, "2026-07-01T00:00") - 1, 20_000)
    b.take(us(berlin, "2026-12-24T18:00"), 26_000)
    b.take(us(berlin, "2026-12-24T18:00"), 25_000)
    yield b.case("rollover of months", "up to 25 tokens roll over; a month adds 10")

    b = Bucket("Pacific/Apia", "day", 0, 1, "0000", 1, capacity=10, years=(2011, 2013))
    b.take(us("Pacific/Apia", "2011-12-25T12:00"), 10_000)
    b.take(us("Pacific/Apia", "2012-01-02T12:00"), 8_000)
    b.take(us("Pacific/Apia", "2012-01-02T12:00"), 7_000)
    b.take(us("Pacific/Apia", "2012-01-02T12:00"), 1_000)
    yield b.case("rollover across a skipped date", "from 2011-12-25 to 2012-01-02 there are seven days, not eight")

    b = Bucket(york, "day", 0, 1, "0000", 5, years=(2026, 2029))
    t = us(york, "2026-03-07T12:00")
    b.take(t, 4_000)
    b.ask("charge", t, 20_000)
    b.take(t, 1_000)
    b.take(us(york, "2026-03-09T12:00"), 1_000)
    b.take(us(york, "2026-03-11T00:00") - 1, 1_000)
    b.take(us(york, "2026-03-11T00:00"), 2_000)
    b.ask("charge", us(york, "2026-03-11T00:00"), 4_990_000 + 5_000)
    b.ask("charge", us(york, "2026-03-12T00:00"), 5_000_000)
    yield b.case("debt of days", "a charge creates debt of up to 1000 windows, less the capacity")

    b = Bucket(berlin, "day", 0, 1, "0000", 4, max_reserved=6, years=(2026, 2027))
    t, hour = us(berlin, "2026-03-28T20:00"), 3_600_000_000
    b.take(t, 3_000, max_wait=hour)
    b.take(t, 2_000, max_wait=hour)
    b.take(t, 2_000, max_wait=4 * hour)
    b.take(t, 4_000, max_wait=27 * hour - 1)
    b.take(t, 4_000, max_wait=27 * hour)
    b.take(t, 3_000, max_wait=51 * hour)
    b.take(t, 1_000, max_wait=51 * hour)
    b.take(t, 5_000, max_wait=100 * hour)
    yield b.case("reservations", "a reservation starts when its tokens arrive; the second day has 23 hours")

    b = Bucket(berlin, "week", 0, 1, "0000", 5, capacity=8, years=(2026, 2027))
    t = us(berlin, "2026-03-25T12:00")
    b.take(t, 8_000)
    b.refund(t + 1, 3_000)
    b.take(t + 1, 4_000)
    b.take(t + 1, 3_000)
    monday = us(berlin, "2026-03-30T00:00")
    b.refund(monday, 2_000)
    b.take(monday, 8_000)
    b.take(monday, 7_000)
    b.refund(monday, 20_000)
    b.take(monday, 8_000)
    yield b.case("refunds", "a refund adds the refill of passed windows first")

    b = Bucket(berlin, "day", 0, 1, "0000", 3, capacity=6, years=(2026, 2027))
    t = us(berlin, "2026-06-02T00:00")
    b.take(t + 5, 5_000)
    b.take(t - 10, 2_000)
    b.take(t - 10, 1_000)
    b.take(t - 100_000_000_000, 1_000)
    b.take(t, 1_000)
    b.take(us(berlin, "2026-06-03T00:00") - 1, 1_000)
    b.take(us(berlin, "2026-06-03T00:00"), 3_000)
    yield b.case("clock that steps back", "an earlier window adds nothing again")

    for name, zone, window, month, day in [
        ("day 31", berlin, "month", 0, 31), ("day 29", berlin, "month", 0, 29), ("February 29", berlin, "year", 2, 29),
        ("unknown zone", "Europe/Atlantis", "day", 0, 1), ("no window", berlin, "fortnight", 0, 1),
        ("a month of weeks", berlin, "week", 3, 1), ("weekday 8", berlin, "week", 0, 8), ("leap seconds", "right/UTC", "day", 0, 1),
        ("a path", "../etc/passwd", "day", 0, 1),
    ]:
        limit = {"algorithm": "stepped", "anchor": "calendar", "capacity": "1", "rate": f"1/{MEAN.get(window, 86400)}s",
                 "calendar": {"window": window, "zone": zone, "month": month, "day": day, "start": "00:00"}}
        yield {"name": "refused: " + name, "comment": "not every window has this day, or the calendar is unknown",
               "refused": True, "limit": limit, "steps": []}
    yield {"name": "refused: 1001 windows", "comment": "stores know at most 1000 windows", "refused": True, "steps": [],
           "limit": {"algorithm": "stepped", "anchor": "calendar", "capacity": "1001", "rate": "1/86400s",
                     "calendar": {"window": "day", "zone": "UTC", "month": 0, "day": 1, "start": "00:00"}}}


def write_vectors():
    text = "[\n"
    for i, c in enumerate(cases()):
        text += (",\n" if i else "") + " {\n"
        text += f'  "name": {json.dumps(c["name"])},\n  "comment": {json.dumps(c["comment"])},\n'
        if c.get("refused"):
            text += '  "refused": true,\n'
        text += f'  "limit": {json.dumps(c["limit"])},\n'
        steps = ",\n   ".join(json.dumps(s) for s in c["steps"])
        text += f'  "steps": [\n   {steps}\n  ]\n }}' if steps else '  "steps": []\n }'
    (HERE.parent / "vectors" / "calendars.json").write_text(text + "\n]\n")


if __name__ == "__main__":
    write_boundaries()
    write_vectors()
