// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/metehq/mete"
	replaying "github.com/metehq/mete/cmd/internal/replay"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/cmd/internal/trace"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

// runTwo replays the trace through two policies, and says how they differ.
func (c *replayCommand) runTwo(ctx context.Context) error {
	old, before, err := c.load(ctx, c.old)
	if err != nil {
		return markBroken(err)
	}
	m, after, err := c.load(ctx, c.policy)
	if err != nil {
		return markBroken(err)
	}
	c.noteHashKey(old, m)
	var edits map[string]string
	if before != nil && after != nil {
		edits = replaying.Edits(before, after)
	}
	comparison, lines := replaying.NewComparison(old, m, edits), replaying.NewComparisonLines(c.std.Out)
	p, err := c.newPlay(ctx)
	if err != nil {
		return err
	}
	config := replaying.CompareConfig{Old: old, New: m, Trace: p.trace, Store: p.newStore,
		Each: func(req *trace.Request, was, is *mete.Decision) error {
			p.step()
			comparison.Add(req, was, is, p.place)
			if c.format == "json" {
				return lines.Write(req, was, is, p.place)
			}
			return nil
		}}
	if c.skipInvalid {
		config.Invalid = comparison.Invalid
	}
	err = replaying.Compare(ctx, config)
	if err := p.end(err, lines.Flush); err != nil {
		return err
	}
	if err := c.writeComparison(p, comparison, lines); err != nil {
		return err
	}
	return c.bound.check(comparison.Count(replaying.NewlyLimited), comparison.Requests())
}

func (c *replayCommand) writeComparison(p *play, comparison *replaying.Comparison, lines *replaying.ComparisonLines) error {
	if c.format == "json" {
		c.warnOrder(comparison.Disorder())
		if err := lines.WriteSummary(comparison, c.showKeys); err != nil {
			return err
		}
		return lines.Flush()
	}
	report := replaying.ComparisonReport{Old: policyName(c.old), New: policyName(c.policy), Trace: c.traceName(),
		Format: p.trace.Format().String(), Comparison: comparison, Elapsed: p.elapsed(), ShowKeys: c.showKeys, Screen: screenOf(c.std.Out)}
	if c.format == "html" {
		return report.WriteHTML(c.std.Out)
	}
	_, err := report.WriteTo(c.std.Out)
	return err
}

// load reads a policy, and returns it in JSON as well. Rules in a database have
// none.
func (c *replayCommand) load(ctx context.Context, name string) (m *policy.Matcher, text []byte, err error) {
	if storeurl.IsPostgres(name) {
		m, err = readPolicy(ctx, c.std, name)
		return m, nil, err
	}
	var data []byte
	if name == "-" {
		name = stdinName
		data, err = policyyaml.ReadFrom(c.std.In, name)
	} else {
		data, err = policyyaml.Read(name)
	}
	if err != nil {
		return nil, nil, err
	}
	if m, err = policyyaml.Parse(name, data, policyOptions()); err != nil {
		return nil, nil, err
	}
	text, err = policyyaml.ToJSON(name, data, policyOptions())
	return m, text, err
}

// traceName is how the traces are called in a report.
func (c *replayCommand) traceName() string {
	const most = 3
	if len(c.traces) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(c.traces[:most], ", "), len(c.traces)-most)
	}
	return strings.Join(c.traces, ", ")
}
