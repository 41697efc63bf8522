// SPDX-License-Identifier: Apache-2.0

package faulttest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	crand "crypto/rand"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/internal/proctest"
	"github.com/metehq/mete/internal/testseed"
	"github.com/metehq/mete/store"
)

const (
	slotKey    = "slots"
	slotsMost  = 10
	slotsLease = 500 * time.Millisecond

	// holders is the number of processes that compete for the slots.
	holders = 20

	// maxRenewals bounds the announcements after which a holder is killed, and killDelay the time after the last one.
	maxRenewals = 3
	killDelay   = 5 * time.Millisecond
)

// The lines of a holder. Instants are by the clock of the store.
const (
	heldLine = "HOLDS %d %d\n" // the slot is certainly held from the first instant until the second, unless a line follows
	freeLine = "ENDS %d\n"     // the release begins after this instant
)

// KillHolders kills processes that hold slots of one key, until the given number has died with an unexpired slot. By the clock
// of the store, there are never more held slots than the limit allows. All slots can be taken one lease after the last
// call of a holder.
//
// Holders are the calling top-level test in new processes. prepare returns the address of a server, and runs in the first
// process only. open opens a store of that server.
func KillHolders(t *testing.T, kills int, prepare func() string, open func(address string) mete.Store) {
	t.Helper()
	if address, ok := proctest.AgainArgument(); ok {
		t.Fatal(holdSlots(t.Context(), open(address)))
	}
	address := prepare()
	h := &hunt{t: t, address: address, store: open(address), rand: rand.New(testseed.PCG(1, 31))}
	for round := 0; h.killed < kills && !t.Failed(); round++ {
		h.killRound()
		h.checkBound()
		h.checkAllFree(round)
	}
	t.Logf("%d processes were killed, %d of them while they held a slot", h.started, h.killed)
}

func slotsLimit(most int, lease time.Duration) bucket.Limit {
	l, _, err := bucket.Spec{Algorithm: bucket.AlgorithmConcurrency, Rate: bucket.Rate{Tokens: bucket.Tokens(most) * bucket.Token, Per: lease}}.Compile()
	if err != nil {
		panic(err)
	}
	return l
}

func newSlot(lease time.Duration) []store.Charge {
	c := store.Charge{Key: slotKey, Limit: slotsLimit(slotsMost, lease), Cost: bucket.Token}
	crand.Read(c.Slot[:]) // never fails
	return []store.Charge{c}
}

// takeSlot returns the instant of the decision by the store's clock.
func takeSlot(s mete.Store, charges []store.Charge, mode mete.Mode) (snap bucket.Snapshot, at bucket.Instant, err error) {
	snaps, _, err := s.Take(context.Background(), nil, charges, mode)
	if err != nil {
		return snap, 0, err
	}
	_, at = snaps[0].Verdict()
	return snaps[0], at, nil
}

// readClock returns an instant of the store's clock between the call and the return.
func readClock(s mete.Store) (bucket.Instant, error) {
	_, at, err := takeSlot(s, newSlot(slotsLease), mete.Mode{DryRun: true, Fresh: true})
	return at, err
}

// holdSlots takes, renews and releases slots, until the process is killed or the store fails.
func holdSlots(ctx context.Context, s mete.Store) error {
	for {
		charges := newSlot(slotsLease)
		snap, at, err := takeSlot(s, charges, mete.Mode{})
		for err == nil && snap.Allowed {
			if err = announce(s, func(now bucket.Instant) { fmt.Printf(heldLine, now, at.Add(slotsLease)) }); err != nil {
				break
			}
			if rand.IntN(maxRenewals) == 0 {
				err = releaseSlot(s, charges)
				break
			}
			snap, at, err = takeSlot(s, charges, mete.Mode{Renew: true})
		}
		if err != nil {
			return err
		}
		if wait := snap.RetryAfter; wait > 0 && wait <= slotsLease {
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}
}

func releaseSlot(s mete.Store, charges []store.Charge) error {
	if err := announce(s, func(now bucket.Instant) { fmt.Printf(freeLine, now) }); err != nil {
		return err
	}
	return s.Refund(context.Background(), []store.Refund{{Charge: charges[0]}}, "")
}

// announce calls write with the store's time after the last answer and before the next call.
func announce(s mete.Store, write func(now bucket.Instant)) error {
	now, err := readClock(s)
	if err == nil {
		write(now)
	}
	return err
}

// A period is a time in which a slot was certainly held, by the store's clock.
type period struct{ from, until bucket.Instant }

// A hunt kills holders.
type hunt struct {
	t       *testing.T
	address string
	store   mete.Store
	rand    *rand.Rand
	started int

	mu      sync.Mutex // guards the fields below
	periods []period
	killed  int // processes that held a slot when they were killed
}

// killRound starts holders, and kills each after a random announcement.
func (h *hunt) killRound() {
	var all sync.WaitGroup
	for range holders {
		h.started++
		lines, delay := 1+h.rand.IntN(maxRenewals), time.Duration(h.rand.Int64N(int64(killDelay)))
		all.Go(func() {
			if err := h.kill(lines, delay); err != nil {
				h.t.Errorf("a holder: %v", err)
			}
		})
	}
	all.Wait()
}

// kill starts a holder, and kills it some time after the given number of lines that announce a held slot.
func (h *hunt) kill(lines int, delay time.Duration) error {
	cmd := proctest.AgainCommand(h.t, h.address)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	out := holderOutput{lines: bufio.NewScanner(stdout)}
	out.read(lines)
	select {
	case <-h.t.Context().Done():
	case <-time.After(delay):
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	died, err := readClock(h.store)
	if err != nil {
		return err
	}
	out.read(math.MaxInt)
	if out.held < lines {
		return fmt.Errorf("ended by itself: %s", &out.other)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.periods = append(h.periods, out.periods...)
	if out.holds && died < out.periods[len(out.periods)-1].until {
		h.killed++
	}
	return nil
}

// A holderOutput holds the announcements of a holder.
type holderOutput struct {
	lines   *bufio.Scanner
	periods []period
	held    int  // lines that announce a held slot
	holds   bool // the last line did
	other   bytes.Buffer
}

// read reads until the given number of lines that announce a held slot, or to the end.
func (o *holderOutput) read(held int) {
	for o.held < held && o.lines.Scan() {
		var p period
		switch line := o.lines.Text() + "\n"; {
		case scanLine(line, heldLine, &p.from, &p.until):
			if n := len(o.periods); o.holds && p.from < o.periods[n-1].until {
				o.periods[n-1].until = p.until // a renewal
			} else {
				o.periods = append(o.periods, p)
			}
			o.held, o.holds = o.held+1, true
		case scanLine(line, freeLine, &p.until) && o.holds:
			last := &o.periods[len(o.periods)-1]
			last.until, o.holds = min(last.until, p.until), false
		default:
			o.other.WriteString(line)
		}
	}
}

func scanLine(line, format string, values ...any) bool {
	n, err := fmt.Sscanf(line, format, values...)
	return err == nil && n == len(values)
}

// checkBound counts the slots that were held at the same instant.
func (h *hunt) checkBound() {
	type change struct {
		at   bucket.Instant
		more int
	}
	var changes []change
	for _, p := range h.periods {
		if p.from < p.until {
			changes = append(changes, change{p.from, 1}, change{p.until, -1})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Or(cmp.Compare(a.at, b.at), a.more-b.more) })
	held, most := 0, 0
	for _, c := range changes {
		held += c.more
		most = max(most, held)
	}
	if most > slotsMost {
		h.t.Errorf("%d slots of %d were held at the same instant", most, slotsMost)
	}
	h.periods = h.periods[:0] // all leases of a round end before the next round
}

// checkAllFree waits until all slots can be taken at once. A server may execute the last call of a holder after the kill.
// checkAllFree therefore checks the end of each slot that it meets: it is at most one lease away.
func (h *hunt) checkAllFree(round int) {
	Eventually(h.t, fmt.Sprintf("all slots are free after round %d", round), func() error {
		var taken []store.Refund
		defer func() {
			for i := range taken {
				if err := h.store.Refund(h.t.Context(), taken[i:i+1], ""); err != nil {
					h.t.Errorf("release: %v", err)
				}
			}
		}()
		for i := range slotsMost + 1 { // with leases that do not end during the check
			charges := newSlot(time.Hour)
			snap, at, err := takeSlot(h.store, charges, mete.Mode{})
			if err != nil {
				return err
			}
			if snap.Allowed {
				taken = append(taken, store.Refund{Charge: charges[0]})
				continue
			}
			if i == slotsMost {
				break
			}
			now, err := readClock(h.store)
			if end := at.Add(snap.RetryAfter); err == nil && end > now.Add(slotsLease) {
				h.t.Errorf("round %d: a slot ends %v after %d, want at most %v", round, time.Duration(end-now)*time.Microsecond, now, slotsLease)
			}
			return cmp.Or(err, fmt.Errorf("%d slots of %d are free", i, slotsMost))
		}
		if len(taken) > slotsMost {
			h.t.Errorf("round %d: %d slots of %d were taken", round, len(taken), slotsMost)
		}
		return nil
	})
}
