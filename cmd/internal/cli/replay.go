// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

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
compressed by gzip. List several files from the oldest to the newest, as does
$(ls -tr access.log*). If a timestamp goes back, the time of a bucket does not,
and a warning reports the number of such requests. --sort replays all requests
in the order of their timestamps.

With --old and --new the traffic runs through two policies, each with its own
buckets. The report shows, by rule, the requests that are newly limited and
newly admitted:

  mete replay --old policy.yaml --new next.yaml access.log

METE_HASH_KEY, the hash_key of the servers, is the key for hashes of secrets.
Without it the command uses a fixed key. If a rule depends on that, the command
prints a note on standard error.

Exit codes:
  0  done, however many requests are denied
  1  a policy is invalid, or --max-newly-limited is exceeded
  2  wrong usage, or the input cannot be read
  3  the store does not answer

With --store redis://HOST or postgres://HOST/DATABASE the buckets are in that
store, under unique names, and the command removes them at the end.

A JSON line is one request. Only "at" is required, in seconds. "cost" replaces
the cost in the policy. A request holds its slots for "duration" seconds, and
its response then settles its charge. "ai" has the attributes of a request to a
language model, and "usage" the tokens that it used:

  {"at":12.5,"method":"GET","path":"/","host":"","ip":"192.0.2.1",
   "headers":{},"query":{},"jwt":{},"cost":null,"duration":0.25,
   "status":200,"bytes":612,"response_headers":{},
   "ai":{"model":"gpt-4o","prompt_tokens":812,"max_tokens":400},
   "usage":{"input":812,"cached":0,"cache_write":0,"output":208,"reasoning":0}}
`

type replayCommand struct {
	std                   Streams
	policy, old           string   // file names, or "-" for standard input; with old, policy is the new one
	traces                []string // file names, or "-" for standard input
	format                string
	input                 trace.Format
	store                 *storeurl.URL
	bound                 *bound // of --max-newly-limited; nil for none
	sort                  bool   // by time
	showKeys, skipInvalid bool
}

func (c *replayCommand) run(ctx context.Context) error {
	err := c.replay(ctx)
	_, failed := errors.AsType[*mete.StoreError](err)
	_, broken := errors.AsType[policyError](err)
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

type policyError struct{ error }

func (e policyError) Unwrap() error { return e.error }

func (c *replayCommand) replay(ctx context.Context) error {
	var policies []*policy.Matcher
	for _, name := range []string{c.old, c.policy} {
		if name == "" {
			continue
		}
		m, err := readPolicy(ctx, c.std, name)
		if err != nil {
			return markBroken(err)
		}
		policies = append(policies, m)
	}
	c.noteSettings(policies)
	p, err := c.newRun(ctx)
	if err != nil {
		return err
	}
	if len(policies) == 1 {
		stats, err := p.runOne(policies[0])
		if err != nil {
			return err
		}
		return c.report(p, stats)
	}
	comparison, err := p.runBoth(policies[0], policies[1])
	if err == nil {
		err = c.report(p, comparison)
	}
	if err != nil {
		return err
	}
	return c.bound.check(comparison.Count(replaying.ChangeNewlyLimited), comparison.Requests())
}

// report prints the report or, after JSON lines, its remaining parts.
func (c *replayCommand) report(p *replayRun, counts replaying.Counts) error {
	if c.format == "json" {
		if text := counts.Disorder(); text != "" {
			fmt.Fprintf(c.std.Err, "mete replay: warning: %s\n", text)
		}
		if comparison, ok := counts.(*replaying.Comparison); ok {
			return errors.Join(p.lines.WriteSummary(comparison, c.showKeys), p.lines.Flush())
		}
		if n := counts.InvalidLines(); n > 0 {
			fmt.Fprintf(c.std.Err, "mete replay: %d of %d lines could not be read\n", n, p.trace.Lines())
		}
		return nil
	}
	report := replaying.Report{Old: policyName(c.old), Policy: policyName(c.policy), Trace: c.traceName(), Format: p.trace.Format().String(),
		Counts: counts, Elapsed: p.elapsed(), ShowKeys: c.showKeys, Screen: newScreen(c.std.Out)}
	if c.format == "html" {
		return report.WriteHTML(c.std.Out)
	}
	_, err := report.WriteTo(c.std.Out)
	return err
}

func markBroken(err error) error {
	if policyExit(err) == exitNo {
		return policyError{err}
	}
	return err
}

// noteSettings prints at most one note about rules that depend on settings of the servers.
func (c *replayCommand) noteSettings(policies []*policy.Matcher) {
	for _, m := range policies {
		for _, note := range []string{hashKeyNote(m), factsNote(m)} {
			if note != "" {
				fmt.Fprintf(c.std.Err, "mete replay: note: %s\n", note)
				return
			}
		}
	}
}

func (c *replayCommand) traceName() string {
	const most = 3
	if len(c.traces) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(c.traces[:most], ", "), len(c.traces)-most)
	}
	return strings.Join(c.traces, ", ")
}
