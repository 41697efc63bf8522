// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policyyaml"
)

func (c *checkCommand) writeText(p *checkedPolicy) {
	out := c.std.Out
	switch policyExit(p.err) {
	case exitUsage, exitUnreachable:
		c.reportError(p.err)
		return
	case exitNo:
		text := p.err.Error() + "\n"
		if mistakes, ok := errors.AsType[policyyaml.Errors](p.err); ok && isTerminal(out) {
			text = visible.Lines(mistakes.Annotate(p.data))
		}
		fmt.Fprint(out, c.paint.places(text, p.name))
		return
	}
	t := table.New("LIMIT", "KEY", "MODE", "STORE ERROR", "ALLOWS")
	t.Indent = "  "
	for _, r := range p.matcher.Rules() {
		for i := range r.Limits {
			l := &r.Limits[i]
			t.Add(l.Name, keyNames(r), r.Mode.String(), storeErrorText(r), prose.Limit(l))
		}
	}
	prices := ""
	if list := p.matcher.Prices(); list != nil {
		prices = ", prices " + list.String()
	}
	fmt.Fprintf(out, "%s: %s, %s%s\n", p.name, c.paintVerdict(p), prose.Count(len(p.matcher.Rules()), "rule"), visible.Text(prices))
	t.WriteTo(out)
	for i := range p.warnings {
		fmt.Fprint(out, p.warnings[i].text(p.name, c.paint))
	}
	c.writeTests(p)
}

// reportError prints an error before the remaining policies are checked.
func (c *checkCommand) reportError(err error) {
	printError(c.std.Err, "mete check", &failure{err: err})
}

func (c *checkCommand) paintVerdict(p *checkedPolicy) string {
	switch verdict := p.verdict(); {
	case verdict == "ok":
		return c.paint.green(verdict)
	case p.tests.Failed() > 0:
		return c.paint.red(verdict)
	default:
		return c.paint.yellow(verdict)
	}
}

func (p *checkedPolicy) verdict() string {
	switch failed := p.tests.Failed(); {
	case failed > 0:
		return prose.Count(failed, "test") + " failed"
	case len(p.warnings) > 0:
		warnings, notes := 0, 0
		for i := range p.warnings {
			if p.warnings[i].Severity == severityNote {
				notes++
			} else {
				warnings++
			}
		}
		if warnings > 0 {
			return "ok with " + prose.Count(warnings, "warning")
		}
	}
	return "ok"
}

func (c *checkCommand) writeTests(p *checkedPolicy) {
	out := c.std.Out
	if p.testsErr != nil {
		c.reportError(fmt.Errorf("%s: the tests cannot be run: %w", p.name, p.testsErr))
		return
	}
	if c.list {
		p.tests.list(out, c.paint)
	}
	for i := range p.errors {
		f := &p.errors[i]
		fmt.Fprintf(out, "%s: %s: %s: %s\n", f.position(p.name), c.paint.red("failed"), f.Test, f.Reason)
		for _, line := range f.Why {
			fmt.Fprintf(out, "    %s\n", line)
		}
	}
	for _, note := range p.tests.Notes {
		fmt.Fprintf(out, "%s: note: %s\n", p.name, note)
	}
	if s := p.tests.Summary(); s != "" {
		fmt.Fprintf(out, "  %s\n", s)
	}
}

// text formats a warning: the problem, then the remedy on the next line.
func (f *finding) text(file string, paint painter) string {
	severity := f.Severity
	if severity == severityWarning {
		severity = paint.yellow(severity)
	}
	head := fmt.Sprintf("%s: %s: ", visible.Lines(f.position(file)), severity)
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", f.Reason)
	if f.Hint != "" {
		fmt.Fprintf(&b, "    %s ", f.Hint)
	} else {
		b.WriteString("    ")
	}
	fmt.Fprintf(&b, "[%s]\n", f.Code)
	return head + visible.Lines(b.String())
}

func storeErrorName(r *policy.Rule) string {
	switch r.OnStoreError {
	case policy.OnStoreErrorClosed:
		return "closed"
	case policy.OnStoreErrorLocal:
		return "local"
	}
	return "open"
}

func storeErrorText(r *policy.Rule) string {
	if r.Deadline == policy.DefaultDeadline {
		return storeErrorName(r)
	}
	return storeErrorName(r) + " after " + prose.Duration(r.Deadline)
}

// keyNames lists the limit_keys of a rule. Requests with equal values share a bucket.
func keyNames(r *policy.Rule) string {
	if len(r.LimitKeys) == 0 {
		return "(one for all)"
	}
	names := make([]string, len(r.LimitKeys))
	for i, a := range r.LimitKeys {
		names[i] = a.Spelling()
	}
	return strings.Join(names, " ")
}
