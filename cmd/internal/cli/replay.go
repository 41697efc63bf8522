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

// A replayCommand is one call of mete replay.
type replayCommand struct {
	std                   Streams
	policy, compare       string   // file names; "-" is standard input
	traces                []string // as well
	format                string
	input                 trace.Format
	store                 *storeurl.URL
	bound                 *bound // nil for none
	sort                  bool   // by time
	showKeys, skipInvalid bool
}

// replay runs a trace through a policy, or through two.
func replay(ctx context.Context, std Streams, args []string) int {
	c := replayCommand{std: std}
	code, ok := c.parse(args)
	if !ok {
		return code
	}
	var err error
	if c.compare == "" {
		err = c.runOne(ctx)
	} else {
		err = c.runTwo(ctx)
	}
	_, failed := errors.AsType[*mete.StoreError](err)
	_, broken := errors.AsType[brokenFile](err)
	_, exceeded := errors.AsType[exceedsBound](err)
	switch {
	case err == nil:
		return exitOK
	case broken:
		fmt.Fprintln(std.Err, err)
		return exitNo
	case exceeded:
		return fail(std, exitNo, "replay", err)
	case failed, errors.Is(err, store.ErrUnavailable):
		return fail(std, exitUnreachable, "replay", err)
	}
	return fail(std, exitUsage, "replay", err)
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
	stats, lines := replaying.NewStats(m), replaying.NewJSONLines(c.std.Out)
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
	report := replaying.Report{Policy: policyName(c.policy), Trace: c.traceName(), Format: p.trace.Format().String(), Stats: stats,
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
