// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete"
	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
	replaying "github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
)

// A replayCommand is one call of mete replay.
type replayCommand struct {
	std                   Streams
	policy, trace         string // file names; "-" is standard input
	format                string
	input                 trace.Format
	store                 storeurl.Store
	showKeys, skipInvalid bool
}

// replay runs a trace through a policy.
func replay(ctx context.Context, std Streams, args []string) int {
	c := replayCommand{std: std}
	code, ok := c.parse(args)
	if !ok {
		return code
	}
	m, err := readPolicy(ctx, std, c.policy)
	switch code := policyExit(err); code {
	case exitNo:
		fmt.Fprintln(std.Err, err)
		return exitNo
	case exitUsage, exitUnreachable:
		return fail(std, code, "replay", err)
	}
	err = c.run(ctx, m)
	_, failed := errors.AsType[*mete.StoreError](err)
	switch {
	case failed, errors.Is(err, mete.ErrUnavailable):
		return fail(std, exitUnreachable, "replay", err)
	case err != nil:
		return fail(std, exitUsage, "replay", err)
	}
	return exitOK
}

// parse reads and checks the arguments. Where ok is false it has said why.
func (c *replayCommand) parse(args []string) (code int, ok bool) {
	fs := newFlags(c.std, "replay")
	fs.StringVar(&c.policy, "policy", "", "the policy `FILE` in JSON or YAML, - for standard input, or postgres://HOST/DATABASE for the rules there")
	store := fs.String("store", "memory:", "the `URL` of the store: memory:?max_keys=N bounds it; redis://HOST and postgres://HOST/DATABASE are used under names of the replay's own")
	fs.StringVar(&c.format, "format", "text", "the `FORMAT` of the output: text for a report, json for a line about each request")
	input := fs.String("input", "auto", "the `FORMAT` of the trace: combined (access logs), jsonl, or auto for the one it looks like")
	fs.BoolVar(&c.showKeys, "show-keys", false, "show who was denied, not just how often")
	fs.BoolVar(&c.skipInvalid, "skip-invalid", false, "count lines that cannot be read instead of stopping at the first")
	operands, code, ok := fs.parse(args)
	if !ok {
		return code, false
	}
	var err error
	c.input, err = trace.ParseFormat(*input)
	var storeErr error
	c.store, storeErr = storeurl.Parse(*store)
	switch {
	case err != nil:
		return fs.usageError("--input: %v", err), false
	case c.policy == "":
		return fs.usageError("no --policy given"), false
	case len(operands) == 0:
		return fs.usageError("no trace given; - is standard input"), false
	case len(operands) > 1:
		return fs.usageError("more than one trace given: %q", operands), false
	case c.policy == "-" && operands[0] == "-":
		return fs.usageError("the policy and the trace cannot both be standard input"), false
	case storeErr != nil:
		return fs.usageError("%v", storeErr), false
	case c.store.File != "":
		return fs.usageError("--store: a replay begins with full buckets and saves none: leave out file=%s", c.store.File), false
	case c.format == "html":
		return fs.usageError("--format: html is not supported yet; use text or json"), false
	case c.format != "text" && c.format != "json":
		return fs.usageError("unknown format %q: it must be text or json", c.format), false
	}
	c.trace = operands[0]
	if c.store.Memory.MaxKeys == 0 {
		c.store.Memory.MaxKeys = replayMaxKeys
	}
	return exitOK, true
}

// run replays the trace and writes the outcome.
func (c *replayCommand) run(ctx context.Context, m *policy.Matcher) error {
	in, size, err := c.open()
	if err != nil {
		return err
	}
	defer in.Close()
	var (
		store    replayStore
		reader   = trace.NewReader(in, c.input)
		stats    = replaying.NewStats(m)
		lines    = replaying.NewJSONLines(c.std.Out)
		progress = c.progress(size)
		start    = time.Now()
	)
	config := replaying.Config{
		Policy: m,
		Trace:  reader,
		Store: func(now func() bucket.Instant) (mete.Store, error) {
			var err error
			store, err = c.newStore(ctx, now)
			return store.Store, err
		},
		Each: func(req *trace.Request, d *mete.Decision) error {
			progress.Step(reader.Bytes())
			if c.format == "json" {
				return lines.Write(req, d)
			}
			return stats.Add(req, d)
		},
	}
	if c.skipInvalid {
		config.Invalid = stats.Invalid
	}
	err = replaying.Run(ctx, config)
	progress.Clear()
	endErr := store.close()
	if flushErr := lines.Flush(); err == nil {
		err = flushErr
	}
	if err := errors.Join(c.explain(err), c.explain(endErr)); err != nil {
		return err
	}
	if n := store.overflowed(); n > 0 {
		fmt.Fprintf(c.std.Err, "mete replay: more than %d buckets were not full at the same time; %s one\n",
			c.store.Memory.MaxKeys, prose.Count(n, "request shared", "requests shared"))
	}
	if c.format == "json" {
		if n := stats.InvalidLines(); n > 0 {
			fmt.Fprintf(c.std.Err, "mete replay: %d of %d lines could not be read\n", n, reader.Line())
		}
		return nil
	}
	report := replaying.Report{Policy: policyName(c.policy), Trace: c.trace, Format: reader.Format().String(), Stats: stats,
		Elapsed: time.Since(start), ShowKeys: c.showKeys}
	_, err = report.WriteTo(c.std.Out)
	return err
}

// explain says where in the trace an error is, and what to do about it.
func (c *replayCommand) explain(err error) error {
	var bad *trace.LineError
	var off offTrace
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mete.ErrUnavailable), errors.As(err, &off):
		return fmt.Errorf("--store: %w", err)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: interrupted", c.trace)
	case errors.As(err, &bad):
		return fmt.Errorf("%s:%d: %w\nmend the line, or pass over such lines with --skip-invalid", c.trace, bad.Line, bad.Err)
	}
	return fmt.Errorf("%s: %w", c.trace, err)
}
