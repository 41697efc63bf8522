// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	replaying "github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/stores"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

// ballastBytes is memory that is reserved and never touched, so it takes none. It
// makes the garbage collector wait for as much garbage: every request leaves some,
// and collecting it each time there are a few megabytes would take an eighth of the
// replay.
const ballastBytes = 64 << 20

// A play is what one replay works with, whether of one policy or of two.
type play struct {
	command  *replayCommand
	ctx      context.Context
	trace    requests
	progress *replaying.Progress
	lines    *replaying.Lines
	stores   []stores.Store
	start    time.Time
	ballast  []byte
}

// requests are those of the traces, in one order or another.
type requests interface {
	replaying.Source
	Name() string
	Lines() int
	Consumed() int64
	Format() trace.Format
	Close() error
}

// requests reads the traces.
func (c *replayCommand) requests(ctx context.Context) requests {
	sequence := trace.NewSequence(ctx, c.traces, c.input, c.open)
	if c.sort {
		return trace.NewSorted(sequence, trace.MaxSortBytes)
	}
	return sequence
}

// newPlay opens the traces. A call of one or two ends it.
func (c *replayCommand) newPlay(ctx context.Context) (*play, error) {
	size, err := c.size()
	if err != nil {
		return nil, err
	}
	return &play{command: c, ctx: ctx, trace: c.requests(ctx), progress: c.progress(size), lines: replaying.NewLines(c.std.Out),
		start: time.Now(), ballast: make([]byte, ballastBytes)}, nil
}

// one replays the trace through one policy, and ends the play.
func (p *play) one(m *policy.Matcher) (*replaying.Stats, error) {
	stats := replaying.NewStats(m)
	err := replaying.Run(p.ctx, replaying.Config{Policy: m, Trace: p.trace, Store: p.newStore, Invalid: p.invalid(stats),
		Each: func(req *trace.Request, d *mete.Decision) error {
			p.step()
			if p.command.format == "json" {
				stats.Count(req)
				return p.lines.Write(req, d)
			}
			return stats.Add(req, d)
		}})
	return stats, p.end(err)
}

// two replays the trace through two policies, and ends the play.
func (p *play) two(old, m *policy.Matcher) (*replaying.Comparison, error) {
	comparison := replaying.NewComparison(old, m)
	err := replaying.Compare(p.ctx, replaying.CompareConfig{Old: old, New: m, Trace: p.trace, Store: p.newStore, Invalid: p.invalid(comparison),
		Each: func(req *trace.Request, was, is *mete.Decision) error {
			p.step()
			comparison.Add(req, was, is, p.place)
			if p.command.format == "json" {
				return p.lines.WriteChange(req, was, is, p.place)
			}
			return nil
		}})
	return comparison, p.end(err)
}

// invalid returns the function for lines that cannot be read, or nil if they end the replay.
func (p *play) invalid(counts replaying.Counts) func(*trace.LineError) {
	if !p.command.skipInvalid {
		return nil
	}
	return counts.Invalid
}

// newStore makes the store of a policy.
func (p *play) newStore(now func() bucket.Instant) (mete.Store, error) {
	store, err := p.command.newStore(p.ctx, now)
	if err != nil {
		return nil, err
	}
	p.stores = append(p.stores, store)
	return patient{store}, nil
}

// step counts a request.
func (p *play) step() { p.progress.Step(p.trace.Consumed()) }

// place is where the request stands that was read last: access.log:12.
func (p *play) place() string { return fmt.Sprintf("%s:%d", p.trace.Name(), p.trace.Line()) }

func (p *play) elapsed() time.Duration { return time.Since(p.start) }

// end ends what err ended, or nothing did: it leaves nothing behind, and says all
// that went wrong.
func (p *play) end(err error) error {
	p.progress.Clear()
	err = p.explain(errors.Join(err, p.trace.Close()))
	for _, s := range p.stores {
		err = errors.Join(err, p.explain(closeReplay(s)))
	}
	if flushErr := p.lines.Flush(); err == nil {
		err = flushErr
	}
	runtime.KeepAlive(p.ballast)
	if err != nil {
		return err
	}
	for _, s := range p.stores {
		if n := overflowed(s); n > 0 {
			fmt.Fprintf(p.command.std.Err, "mete replay: more than %d buckets were not full at the same time; %s one\n",
				p.command.store.Memory.MaxKeys, prose.Count(n, "request shared", "requests shared"))
		}
	}
	return nil
}

// explain says where in the trace an error is, and what to do about it.
func (p *play) explain(err error) error {
	var bad *trace.LineError
	var off offTrace
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrUnavailable), errors.As(err, &off):
		return fmt.Errorf("--store: %w", err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted", p.trace.Name())
	case errors.As(err, &bad):
		return fmt.Errorf("%s:%d: %w\nmend the line, or pass over such lines with --skip-invalid", p.trace.Name(), bad.Line, bad.Err)
	}
	return fmt.Errorf("%s: %w", p.trace.Name(), err)
}
