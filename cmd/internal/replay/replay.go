// SPDX-License-Identifier: Apache-2.0

// Package replay runs recorded traffic through a policy, or through two to
// compare them. The store's clock is the trace's: it stands at each request's own
// time while that is decided, so the decisions are those that the traffic would
// have met, exactly, however fast it is replayed.
package replay

import (
	"context"
	"errors"
	"io"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
)

// A Source is what requests come from: a [trace.Reader] or [trace.Sequence].
type Source interface {
	// Next returns the next request, which is valid until the following call. The
	// error is io.EOF at the end, and a [*trace.LineError] for a line that cannot
	// be read, after which it can be called again.
	Next() (*trace.Request, error)

	// Line is the number of the line read last.
	Line() int
}

// Config is what [Run] replays. All fields but Invalid are required.
type Config struct {
	Policy *policy.Matcher
	Trace  Source
	Store  NewStore

	// Each is called with every request and its decision, in the order of the
	// trace. It must keep neither. Its error ends the replay.
	Each func(*trace.Request, *mete.Decision) error

	// Invalid is called with every line that cannot be read; the replay goes on
	// with the next. If nil, the first one ends it with that error.
	Invalid func(*trace.LineError)
}

// Run takes every request of a trace, one after the other. It holds one request
// in memory at a time, beside what the store keeps. A line that cannot be read
// is a [*trace.LineError].
func Run(ctx context.Context, c Config) error {
	var now clock
	side := side{policy: c.Policy, store: c.Store, clock: &now}
	return play(c.Trace, c.Invalid, func(req *trace.Request) error {
		now.set(req.At)
		d, err := side.take(ctx, c.Trace, req)
		if err != nil {
			return err
		}
		return c.Each(req, &d)
	})
}

// CompareConfig is what [Compare] replays. All fields but Invalid are required.
type CompareConfig struct {
	Old, New *policy.Matcher
	Trace    Source
	Store    NewStore // called twice: each policy has a store of its own

	// Each is called with every request and what the two policies decide, in the
	// order of the trace. It must keep none of them. Its error ends the replay.
	Each func(req *trace.Request, old, new *mete.Decision) error

	Invalid func(*trace.LineError) // as in [Config]
}

// Compare takes every request of a trace under two policies, neither of which
// notices the other. It does for each of them what [Run] does.
func Compare(ctx context.Context, c CompareConfig) error {
	var now clock
	before, after := side{policy: c.Old, store: c.Store, clock: &now}, side{policy: c.New, store: c.Store, clock: &now}
	return play(c.Trace, c.Invalid, func(req *trace.Request) error {
		now.set(req.At)
		was, err := before.take(ctx, c.Trace, req)
		if err != nil {
			return err
		}
		is, err := after.take(ctx, c.Trace, req)
		if err != nil {
			return err
		}
		return c.Each(req, &was, &is)
	})
}

// play calls take with each request that can be read.
func play(from Source, invalid func(*trace.LineError), take func(*trace.Request) error) error {
	for {
		req, err := from.Next()
		switch {
		case err == nil:
			err = take(req)
		case errors.Is(err, io.EOF):
			return nil
		case invalid != nil:
			if bad, ok := errors.AsType[*trace.LineError](err); ok {
				invalid(bad)
				continue
			}
		}
		if err != nil {
			return err
		}
	}
}
