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

// ballastBytes is memory that is reserved and never touched, so it uses no RAM. It makes the garbage collector run
// less often; otherwise collections would take an eighth of the replay time.
const ballastBytes = 64 << 20

type replayRun struct {
	command  *replayCommand
	ctx      context.Context
	trace    requests
	progress *replaying.Progress
	lines    *replaying.Lines
	stores   []stores.Store
	start    time.Time
	ballast  []byte
}

// requests yields the requests of the traces, in file order or sorted by time.
type requests interface {
	replaying.Source
	Name() string
	Lines() int
	Consumed() int64
	Format() trace.Format
	Close() error
}

func (c *replayCommand) requests(ctx context.Context) requests {
	sequence := trace.NewSequence(ctx, c.traces, c.input, c.open)
	if c.sort {
		return trace.NewSorted(sequence, trace.MaxSortBytes)
	}
	return sequence
}

// newRun opens the traces. The caller must call runOne or runBoth, which close them.
func (c *replayCommand) newRun(ctx context.Context) (*replayRun, error) {
	size, err := c.size()
	if err != nil {
		return nil, err
	}
	return &replayRun{command: c, ctx: ctx, trace: c.requests(ctx), progress: c.progress(size), lines: replaying.NewLines(c.std.Out),
		start: time.Now(), ballast: make([]byte, ballastBytes)}, nil
}

// runOne replays the trace through one policy and closes the run.
func (p *replayRun) runOne(m *policy.Matcher) (*replaying.Stats, error) {
	stats := replaying.NewStats(m)
	err := replaying.Run(p.ctx, replaying.Config{Policy: m, Trace: p.trace, Store: p.newStore, Invalid: p.invalid(stats), Settled: stats.Settle,
		Each: func(req *trace.Request, d *mete.Decision) error {
			p.step()
			if p.command.format == "json" {
				stats.Count(req)
				return p.lines.Write(req, d)
			}
			return stats.Add(req, d)
		}})
	return stats, p.close(err)
}

// runBoth replays the trace through two policies and closes the run.
func (p *replayRun) runBoth(old, m *policy.Matcher) (*replaying.Comparison, error) {
	comparison := replaying.NewComparison(old, m)
	err := replaying.Compare(p.ctx, replaying.CompareConfig{Old: old, New: m, Trace: p.trace, Store: p.newStore, Invalid: p.invalid(comparison),
		Each: func(req *trace.Request, was, is *mete.Decision) error {
			p.step()
			comparison.Add(req, was, is, p.position)
			if p.command.format == "json" {
				return p.lines.WriteChange(req, was, is, p.position)
			}
			return nil
		}})
	return comparison, p.close(err)
}

// invalid returns the callback for invalid lines, or nil if an invalid line ends the replay.
func (p *replayRun) invalid(counts replaying.Counts) func(*trace.LineError) {
	if !p.command.skipInvalid {
		return nil
	}
	return counts.Invalid
}

func (p *replayRun) newStore(now func() bucket.Instant) (mete.Store, error) {
	store, err := p.command.newStore(p.ctx, now)
	if err != nil {
		return nil, err
	}
	p.stores = append(p.stores, store)
	return untimedStore{store}, nil
}

func (p *replayRun) step() { p.progress.Step(p.trace.Consumed()) }

// position returns the file and line of the last request, such as access.log:12.
func (p *replayRun) position() string { return fmt.Sprintf("%s:%d", p.trace.Name(), p.trace.Line()) }

func (p *replayRun) elapsed() time.Duration { return time.Since(p.start) }

// close removes the buckets of the replay and closes its stores and traces. It joins err and all errors on the
// way.
func (p *replayRun) close(err error) error {
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
		if n := overflowCount(s); n > 0 {
			fmt.Fprintf(p.command.std.Err, "mete replay: more than %d buckets were not full at the same time; %s\n",
				p.command.store.Memory.MaxKeys, prose.Count(n, "request followed on_full", "requests followed on_full"))
		}
	}
	return nil
}

func (p *replayRun) explain(err error) error {
	var bad *trace.LineError
	var off storeError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrUnavailable), errors.As(err, &off):
		return fmt.Errorf("--store: %w", err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted", p.trace.Name())
	case errors.As(err, &bad):
		return fmt.Errorf("%s:%d: %w\nfix the line, or skip such lines with --skip-invalid", p.trace.Name(), bad.Line, bad.Err)
	}
	return fmt.Errorf("%s: %w", p.trace.Name(), err)
}
