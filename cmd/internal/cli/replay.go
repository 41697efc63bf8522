// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/metehq/mete"
	replaying "github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/store"
)

const replayAbout = `
Runs recorded traffic through a policy in virtual time, and reports the requests
that it limits, with the time and the reason. A TRACE is a file of access log
lines (common or combined) or of JSON lines; "-" is standard input. Files may be
compressed by gzip. Name several files in the order of time, for example
$(ls -tr access.log*). If a time steps back, the time inside a bucket stands
still, and a warning tells the number of such requests. --sort replays all
requests in the order of their times.

With --old and --new the traffic runs through two policies, each with buckets of
its own. The report shows, by rule, the requests that are newly limited and
newly admitted:

  mete replay --old policy.yaml --new next.yaml access.log

METE_HASH_KEY, the hash_key of the servers, is the key for hashes of secrets.
Without it the command uses a fixed key. If a rule depends on that, the command
prints a note on standard error.

Exit codes:
  0  done, however many requests are denied
  1  a policy is broken, or --max-newly-limited is exceeded
  2  wrong usage, or the input cannot be read
  3  the store does not answer

With --store redis://HOST or postgres://HOST/DATABASE the buckets are there,
under unique names, and the command removes them at its end.

A JSON line is one request. Only "at" is required, in seconds. "cost" replaces
the cost in the policy:

  {"at":12.5,"method":"GET","path":"/","host":"","ip":"192.0.2.1",
   "headers":{},"query":{},"jwt":{},"cost":null}
`

// A replayCommand is one call of mete replay.
type replayCommand struct {
	std                   Streams
	policy, old           string   // file names; "-" is standard input. With old, policy is the new one
	traces                []string // as well
	format                string
	input                 trace.Format
	store                 *storeurl.URL
	bound                 *bound // nil for none
	sort                  bool   // by time
	showKeys, skipInvalid bool
}

// run replays a trace through a policy, or through two.
func (c *replayCommand) run(ctx context.Context) error {
	var err error
	if c.old == "" {
		err = c.runOne(ctx)
	} else {
		err = c.runTwo(ctx)
	}
	_, failed := errors.AsType[*mete.StoreError](err)
	_, broken := errors.AsType[brokenFile](err)
	_, exceeded := errors.AsType[exceedsBound](err)
	switch {
	case err == nil:
		return nil
	case broken:
		return failBare(exitNo, err)
	case exceeded:
		return fail(exitNo, err)
	case failed, errors.Is(err, store.ErrUnavailable):
		return fail(exitUnreachable, err)
	}
	return fail(exitUsage, err)
}

// A brokenFile is the list of mistakes in a policy.
type brokenFile struct{ error }

func (e brokenFile) Unwrap() error { return e.error }

// runOne replays the trace through one policy.
func (c *replayCommand) runOne(ctx context.Context) error {
	m, err := readPolicy(ctx, c.std, c.policy)
	if err != nil {
		return markBroken(err)
	}
	c.noteHashKey(m)
	stats, lines := replaying.NewStats(m), replaying.NewLines(c.std.Out)
	p, err := c.newPlay(ctx)
	if err != nil {
		return err
	}
	config := replaying.Config{Policy: m, Trace: p.trace, Store: p.newStore, Each: func(req *trace.Request, d *mete.Decision) error {
		p.step()
		if c.format == "json" {
			stats.Count(req)
			return lines.Write(req, d)
		}
		return stats.Add(req, d)
	}}
	if c.skipInvalid {
		config.Invalid = stats.Invalid
	}
	err = replaying.Run(ctx, config)
	if err := p.end(err, lines.Flush); err != nil {
		return err
	}
	if c.format == "json" {
		c.warnOrder(stats.Disorder())
		if n := stats.InvalidLines(); n > 0 {
			fmt.Fprintf(c.std.Err, "mete replay: %d of %d lines could not be read\n", n, p.trace.Lines())
		}
		return nil
	}
	report := replaying.Report{Policy: policyName(c.policy), Trace: c.traceName(), Format: p.trace.Format().String(), Counts: stats,
		Elapsed: p.elapsed(), ShowKeys: c.showKeys, Screen: screenOf(c.std.Out)}
	if c.format == "html" {
		return report.WriteHTML(c.std.Out)
	}
	_, err = report.WriteTo(c.std.Out)
	return err
}

func markBroken(err error) error {
	if policyExit(err) == exitNo {
		return brokenFile{err}
	}
	return err
}

// noteHashKey says, once, that the servers treat other keys otherwise.
func (c *replayCommand) noteHashKey(policies ...*policy.Matcher) {
	for _, m := range policies {
		if note := hashKeyNote(m); note != "" {
			fmt.Fprintf(c.std.Err, "mete replay: note: %s\n", note)
			return
		}
	}
}

// warnOrder says beside JSON what reports say at their top.
func (c *replayCommand) warnOrder(text string) {
	if text != "" {
		fmt.Fprintf(c.std.Err, "mete replay: warning: %s\n", text)
	}
}
