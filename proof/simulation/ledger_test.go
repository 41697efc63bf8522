// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/shards"
	"github.com/metehq/mete/store"
)

// A ledger records what the store executed. It computes with integers of its own, and is the judge of the run.
type ledger struct {
	now      func() bucket.Instant // of the store
	exact    bool                  // nothing refills
	oneLimit bool                  // each bucket has one limit
	buckets  map[place]*account
	ids      map[string]bucket.Instant // of takes and refunds: when they were executed
	holds    map[string]*holdRecord
	slots    map[string]map[bucket.SlotID]bucket.Instant // by key: the ends
	slotTime bucket.Instant                              // of all slots, which never runs back
	paid     map[payment]bucket.Tokens                   // at takes, whatever came back later
	late     map[payment]bucket.Tokens                   // the part of paid after a denial of the client
	denied   map[int]bool                                // clients that the store has denied
	granted  map[payment]bucket.Tokens                   // costs that clients know as admitted; of client 0: all of the bucket
	faults   []string
	log      []string // what the store executed, if verbose
	verbose  bool

	recovered bucket.Tokens // charged after outages
	counts    counts        // of the simulation
}

// A payment identifies what a client pays to a bucket.
type payment struct {
	client int
	key    string
}

// A place is a bucket under one version of its limit.
type place struct {
	key   string
	limit bucket.Limit
}

// An account is one bucket under one version of its limit. The admitted costs of a version keep its own bound.
type account struct {
	key     string
	limit   bucket.Limit
	missing bucket.Tokens // spent and not returned; without refill
	kept    bucket.Tokens // at most so much more is missing: cancellations in debt may have returned less
	entries []*entry
	time    bucket.Instant // of the bucket, which never runs back
}

// An entry is a cost at an instant.
type entry struct {
	at     bucket.Instant // when the work may start
	number int            // in the order of the store
	client int
	cost   bucket.Tokens
	kind   entryKind
}

type entryKind uint8

const (
	spent    entryKind = iota
	owed               // a debt, which the bound does not cover
	refunded           // by an administrator
	cleared            // by an administrator
)

type holdRecord struct {
	client  int
	parts   []holdPart
	expires bucket.Instant
	refund  bool
	over    bool
}

type holdPart struct {
	account *account
	entry   *entry
	terms   store.Terms
}

func newLedger(now func() bucket.Instant, exact bool) *ledger {
	return &ledger{now: now, exact: exact, buckets: map[place]*account{}, ids: map[string]bucket.Instant{},
		holds: map[string]*holdRecord{}, paid: map[payment]bucket.Tokens{}, late: map[payment]bucket.Tokens{}, denied: map[int]bool{}, granted: map[payment]bucket.Tokens{}, slots: map[string]map[bucket.SlotID]bucket.Instant{}}
}

func (l *ledger) fault(format string, args ...any) {
	l.faults = append(l.faults, fmt.Sprintf(format, args...))
}

// note writes a line to the log.
func (l *ledger) note(format string, args ...any) {
	if l.verbose {
		l.log = append(l.log, fmt.Sprintf("%d: ", l.now())+fmt.Sprintf(format, args...))
	}
}

// describe lists charges, and the missing tokens after them.
func describe(charges []store.Charge, snaps []bucket.Snapshot) string {
	var b strings.Builder
	for i := range charges {
		fmt.Fprintf(&b, " %s %v", charges[i].Key, charges[i].Cost)
		if snaps != nil {
			fmt.Fprintf(&b, " (allowed %v, cost %v, missing %v)", snaps[i].Allowed, snaps[i].Cost, snaps[i].Missing())
		}
	}
	return b.String()
}

func (l *ledger) account(c *store.Charge) *account {
	at := place{c.Key, c.Limit}
	a := l.buckets[at]
	if a == nil {
		a = &account{key: c.Key, limit: c.Limit}
		for other := range l.buckets {
			if l.oneLimit && other.key == c.Key {
				l.fault("G1: bucket %s has two limits: %v and %v", c.Key, other.limit, c.Limit)
			}
		}
		l.buckets[at] = a
	}
	return a
}

// seen reports whether the store still remembers an ID, and remembers it from now on otherwise.
func (l *ledger) seen(id string, now bucket.Instant) bool {
	if id == "" {
		return false
	}
	if at, ok := l.ids[id]; ok && now < at.Add(store.RetryHorizon) {
		return true
	}
	l.ids[id] = now
	return false
}

func nameOf(mode string, charges []store.Charge) string {
	var b strings.Builder
	b.WriteString(mode)
	for i := range charges {
		b.WriteString(" " + charges[i].Key)
	}
	return b.String()
}

func isSlot(c *store.Charge) bool { return c.Limit.Algorithm() == bucket.AlgorithmConcurrency }

// take records an executed take. It reports whether the take was executed before, so that the answer is the earlier one.
func (l *ledger) take(client int, charges []store.Charge, snaps []bucket.Snapshot, allowed bool, mode mete.Mode) (repeated bool) {
	l.expireHolds()
	l.note("take by client %d, allowed %v, mode %+v:%s", client, allowed, mode, describe(charges, snaps))
	for i := range charges {
		if isMarker(&charges[i]) && !snaps[i].Allowed {
			l.counts["found markers"]++
		}
	}
	if mode.DryRun || !allowed {
		l.denied[client] = l.denied[client] || !mode.DryRun
		l.compare(charges, snaps)
		return false
	}
	_, now := snaps[0].Verdict()
	if mode.ID != "" && l.seen(nameOf("take "+mode.ID, charges), now) {
		l.counts["repeated"]++
		return true
	}
	for i := range charges {
		c := &charges[i]
		if isSlot(c) {
			l.takeSlot(c, now)
			continue
		}
		if isMarker(c) {
			l.counts["markers"]++
			continue
		}
		if mode.MaxWait == bucket.Forced && mode.ID != "" {
			l.counts["forced"]++
			l.recovered += c.Cost
		}
		l.spend(client, c, &snaps[i], mode)
	}
	l.compare(charges, snaps)
	return false
}

// spend records an admitted cost. It trusts the store about the cost of an UpTo, and about the
// start of work with a MaxWait. For other takes it uses the request.
func (l *ledger) spend(client int, c *store.Charge, snap *bucket.Snapshot, mode mete.Mode) *entry {
	e := &entry{client: client, cost: c.Cost}
	switch {
	case mode.UpTo:
		e.cost = min(snap.Cost, c.Cost)
	case mode.MaxWait == bucket.Forced:
		e.kind = owed
	case mode.MaxWait > 0:
		_, now := snap.Verdict() // by the clock, which may be behind the bucket
		e.at = now.Add(snap.Wait())
	}
	whole, _, _ := strings.Cut(c.Key, shards.Mark) // a bucket can be divided among shards
	l.paid[payment{client, whole}] += e.cost
	if l.denied[client] {
		l.late[payment{client, whole}] += e.cost
	}
	if e.at > snap.Taken().At {
		l.counts["reserved"]++
	}
	a := l.account(c)
	a.add(e, snap.Taken().At)
	a.missing += e.cost
	return e
}

// add adds an entry at an instant of the store's clock.
func (a *account) add(e *entry, now bucket.Instant) {
	a.time = max(a.time, now)
	e.at = max(e.at, a.time)
	e.number = len(a.entries) + 1
	a.entries = append(a.entries, e)
}

// compare checks, without refill, that the store agrees with the ledger about missing tokens.
func (l *ledger) compare(charges []store.Charge, snaps []bucket.Snapshot) {
	for i := range charges {
		a := l.buckets[place{charges[i].Key, charges[i].Limit}]
		if !l.exact || a == nil || isSlot(&charges[i]) {
			continue
		}
		l.compareMissing(a, snaps[i].Missing())
	}
}

// slack is a difference without a meaning: costs are whole tokens, and a part of a thousandth refills.
const slack = bucket.Token / 2

func (l *ledger) compareMissing(a *account, missing bucket.Tokens) {
	most := a.missing + a.kept
	if missing < a.missing-slack || missing > most+slack {
		l.fault("conservation: bucket %s misses %v, want %v to %v", a.key, missing, a.missing, most)
	}
	a.missing, a.kept = min(max(missing, a.missing), most), 0
}

// giveBack records a cancellation. In debt, the store may return less: the next snapshot shows how much. An empty bucket can
// be in debt by a part of a thousandth, because a cancellation does not return the refill of its take.
func (a *account) giveBack(amount bucket.Tokens) {
	if a.missing+a.kept+slack > a.limit.Capacity() {
		a.kept += amount
	}
	a.missing -= amount
}

func (l *ledger) takeSlot(c *store.Charge, now bucket.Instant) {
	_, lease := c.Limit.Refill()
	held := l.slots[c.Key]
	if held == nil {
		held = map[bucket.SlotID]bucket.Instant{}
		l.slots[c.Key] = held
	}
	if c.Cost == 0 {
		return
	}
	l.slotTime = max(l.slotTime, now)
	l.counts["slots"]++
	held[c.Slot] = now + bucket.Instant(lease)
	n := 0
	for _, end := range held {
		if end > l.slotTime {
			n++
		}
	}
	if most := int(c.Limit.Capacity() / bucket.Token); n > most {
		l.fault("G13: %s has %d unexpired slots, want at most %d", c.Key, n, most)
	}
}

// refund records an executed refund. It reports whether the refund was executed before.
func (l *ledger) refund(client int, refunds []mete.Refund, id string) (repeated bool) {
	l.expireHolds()
	now := l.now()
	charges := make([]store.Charge, len(refunds))
	for i := range refunds {
		charges[i] = refunds[i].Charge
	}
	l.note("refund by client %d, id %q, taken %v:%s", client, id, refunds[0].Taken, describe(charges, nil))
	if id != "" && l.seen(nameOf("refund "+id, charges), now) {
		return true
	}
	for i := range refunds {
		r := &refunds[i]
		a := l.account(&r.Charge)
		switch {
		case isSlot(&r.Charge):
			delete(l.slots[r.Key], r.Slot)
		case r.Taken == (bucket.Taken{}):
			l.counts["refunded"]++
			a.missing = max(a.missing-r.Cost, 0)
			a.add(&entry{cost: r.Cost, kind: refunded}, now)
		default:
			l.counts["canceled"]++
			a.giveBack(r.Cost)
			l.cancel(a, client, r.Cost)
		}
	}
	return false
}

// unchanged runs an operation with an ID, and checks that a repetition changes no bucket. The operation reports whether it is
// one.
func (s *simulation) unchanged(id string, charges []store.Charge, operation func() (repeated bool, err error)) error {
	if id == "" {
		_, err := operation()
		return err
	}
	before := s.missing(charges)
	repeated, err := operation()
	if !repeated {
		return err
	}
	for i, after := range s.missing(charges) {
		if after != before[i] {
			s.ledger.fault("G2: a repeated call with ID %q changes bucket %s: it misses %v instead of %v", id, charges[i].Key, after, before[i])
		}
	}
	return err
}

// missing returns what the buckets of charges miss in the store, or -1 for slots.
func (s *simulation) missing(charges []store.Charge) []bucket.Tokens {
	missing := make([]bucket.Tokens, len(charges))
	for i := range charges {
		if missing[i] = -1; !isSlot(&charges[i]) {
			missing[i] = s.peek(charges[i].Key, charges[i].Limit)
		}
	}
	return missing
}

// peek returns what a bucket misses in the store.
func (s *simulation) peek(key string, limit bucket.Limit) bucket.Tokens {
	snaps, _, err := s.store.Take(context.Background(), nil, []store.Charge{{Key: key, Limit: limit}}, mete.Mode{DryRun: true})
	if err != nil {
		panic(err)
	}
	return snaps[0].Missing()
}

// cancel lowers the latest entries of a client by cost.
func (l *ledger) cancel(a *account, client int, cost bucket.Tokens) {
	for _, e := range slices.Backward(a.entries) {
		if e.client == client && e.kind <= owed {
			part := min(cost, e.cost)
			e.cost -= part
			if cost -= part; cost == 0 {
				return
			}
		}
	}
	l.fault("client %d got %v more from %s than it paid", client, cost, a.key)
}

// reset records an executed reset.
func (l *ledger) reset(keys []string) {
	l.expireHolds()
	l.note("reset %v", keys)
	for _, a := range l.buckets {
		if slices.Contains(keys, a.key) {
			l.checkBound(a)
			*a = account{key: a.key, limit: a.limit} // also the time of the bucket
		}
	}
}

// hold records an executed and admitted hold.
func (l *ledger) hold(client int, id string, charges []store.Charge, snaps []bucket.Snapshot, mode mete.Mode, h store.Hold) {
	l.expireHolds()
	l.note("hold by client %d: %s, expires after %v, refund %v:%s", client, id, h.TTL, h.Refund, describe(charges, snaps))
	if l.holds[id] != nil {
		return
	}
	_, now := snaps[0].Verdict()
	record := &holdRecord{client: client, expires: now.Add(h.TTL), refund: h.Refund}
	for i := range charges {
		if isSlot(&charges[i]) {
			l.takeSlot(&charges[i], now)
			continue
		}
		record.parts = append(record.parts, holdPart{l.account(&charges[i]), l.spend(client, &charges[i], &snaps[i], mode), h.Terms[i]})
	}
	l.holds[id] = record
	l.compare(charges, snaps)
}

// settle records an executed settlement.
func (l *ledger) settle(id string, actual bucket.Tokens, status store.HoldStatus) {
	l.expireHolds()
	h, now := l.holds[id], l.now()
	l.note("settle %s with %v: %+v", id, actual, status)
	if h == nil {
		if status.State != store.HoldUnknown {
			l.fault("hold: the settlement of an unknown hold says %v", status.State)
		}
		return
	}
	open := !h.over && now < h.expires
	switch {
	case status.Settled && !open:
		l.fault("hold: %s was settled after its end", id)
	case open && (status.State == store.HoldExpired || status.State == store.HoldUnknown || status.State == store.HoldSettled && !status.Settled):
		l.fault("hold: an open hold is %v before its end", status.State)
	case status.Settled:
		l.counts["settled"]++
		h.over = true
		for _, p := range h.parts {
			target := p.entry.cost
			if !p.terms.Kept {
				target = p.terms.Fixed + actual
			}
			a := p.account
			if more := target - p.entry.cost; more > 0 {
				a.missing += more
				a.add(&entry{client: h.client, cost: more, kind: owed}, now)
			} else {
				a.giveBack(-more)
				p.entry.cost = target
			}
		}
	}
}

// renew records an executed renewal.
func (l *ledger) renew(id string, ttl time.Duration, status store.HoldStatus) {
	l.expireHolds()
	h, now := l.holds[id], l.now()
	l.note("renew %s for %v: %+v", id, ttl, status)
	if h == nil {
		return
	}
	open := !h.over && now < h.expires
	if open != (status.State == store.HoldOpen) {
		l.fault("hold: a renewal says %v, want open: %v", status.State, open)
	}
	if open {
		h.expires = now.Add(ttl)
	}
}

// expireHolds returns the costs of expired holds with a refund, in the order of their ends.
func (l *ledger) expireHolds() {
	now := l.now()
	var ended []*holdRecord
	for _, h := range l.holds {
		if !h.over && h.expires <= now {
			ended = append(ended, h)
		}
	}
	slices.SortFunc(ended, func(a, b *holdRecord) int { return cmp.Compare(a.expires, b.expires) })
	for _, h := range ended {
		l.counts["expired"]++
		h.over = true
		for _, p := range h.parts {
			if target := p.terms.Fixed; h.refund && !p.terms.Kept && p.entry.cost > target {
				p.account.giveBack(p.entry.cost - target)
				p.entry.cost = target
			}
		}
	}
}

// checkBound replays the entries of a bucket in the order of their instants: see G1.
func (l *ledger) checkBound(a *account) {
	switch a.limit.Algorithm() {
	case bucket.AlgorithmContinuous:
	case bucket.AlgorithmSlidingWindow:
		l.checkWindows(a)
		return
	default:
		return
	}
	tokens, micros := a.limit.Refill()
	n, per := int64(tokens), int64(micros)
	slices.SortStableFunc(a.entries, func(x, y *entry) int { return cmp.Compare(x.at, y.at) })
	used, most, last, debt := int64(0), int64(a.limit.Capacity())*per, bucket.Instant(0), 0
	for _, e := range a.entries {
		if last != 0 {
			used = max(used-min(int64(e.at-last), used/n+1)*n, 0)
		}
		last = e.at
		switch e.kind {
		case refunded:
			used = max(used-int64(e.cost)*per, 0)
			continue
		case owed:
			debt = max(debt, e.number)
		}
		used += int64(e.cost) * per
		// A debt that is charged while work waits for its start comes after the work.
		if used > most && e.kind == spent && e.cost > 0 && e.number > debt {
			l.fault("G1: bucket %s admits %v more than capacity + rate·t at %d%s", a.key, bucket.Tokens((used-most+per-1)/per), e.at, a.history())
		}
	}
}

// checkWindows checks that a sliding window of two counters admits less than twice its tokens in any window.
func (l *ledger) checkWindows(a *account) {
	_, micros := a.limit.Refill()
	sum, first := bucket.Tokens(0), 0
	for _, e := range a.entries {
		for sum += e.cost; a.entries[first].at <= e.at-bucket.Instant(micros); first++ {
			sum -= a.entries[first].cost
		}
		if sum >= 2*a.limit.Capacity() {
			l.fault("G1: bucket %s admits %v in a window of %d µs at %d%s", a.key, sum, micros, e.at, a.history())
		}
	}
}

// history lists the entries of a bucket.
func (a *account) history() string {
	var b strings.Builder
	for _, e := range a.entries {
		fmt.Fprintf(&b, "\n\t\t%d: number %d, client %d, %v, %s", e.at, e.number, e.client, e.cost, [...]string{"spent", "owed", "refunded"}[e.kind])
	}
	return b.String()
}
