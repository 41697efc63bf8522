// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/metehq/mete"
	"github.com/metehq/mete/cmd/internal/policyfile"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
)

// check reads policy files and reports on each: all mistakes, or what the file
// comes to.
func check(ctx context.Context, std Streams, args []string) int {
	fs := newFlags(std, "check")
	format := fs.String("format", "text", "the `FORMAT` of the output: text, or json with one object for each file")
	files, code, ok := fs.parse(args)
	switch {
	case !ok:
		return code
	case len(files) == 0:
		return fs.usageError("no policy given: a file, - for standard input, or a database such as postgres://HOST/DATABASE")
	case *format != "text" && *format != "json":
		return fs.usageError("unknown format %q: it must be text or json", *format)
	}
	worst := exitOK
	for i, file := range files {
		m, err := readPolicy(ctx, std, file)
		worst = max(worst, policyExit(err))
		if *format == "json" {
			writeCheckJSON(std.Out, file, m, err)
			continue
		}
		if i > 0 {
			fmt.Fprintln(std.Out)
		}
		writeCheckText(std, file, m, err)
	}
	return worst
}

// stdinName stands for a file name in messages.
const stdinName = "stdin"

// readPolicy compiles the named policy file, standard input for "-", or the rules in
// a database.
func readPolicy(ctx context.Context, std Streams, name string) (*policy.Matcher, error) {
	if storeurl.IsPostgres(name) {
		return readRules(ctx, name)
	}
	if name != "-" {
		return policyfile.Load(name, policy.Options{})
	}
	data, err := policyfile.ReadFrom(std.In, "standard input")
	if err != nil {
		return nil, err
	}
	return policyfile.Parse(stdinName, data, policy.Options{})
}

// policyExit is the exit code of what readPolicy returns.
func policyExit(err error) int {
	switch {
	case err == nil:
		return exitOK
	case brokenPolicy(err):
		return exitNo
	case errors.Is(err, mete.ErrUnavailable):
		return exitUnreachable
	}
	return exitUsage
}

// brokenPolicy reports whether an error is the list of mistakes in a policy.
func brokenPolicy(err error) bool {
	_, file := errors.AsType[policyfile.Errors](err)
	_, rows := errors.AsType[rules.Errors](err)
	return file || rows
}

func writeCheckText(std Streams, file string, m *policy.Matcher, err error) {
	if file == "-" {
		file = stdinName
	}
	file = policyName(file)
	switch code := policyExit(err); code {
	case exitUsage, exitUnreachable:
		fail(std, code, "check", err)
		return
	case exitNo:
		fmt.Fprintln(std.Out, err)
		return
	}
	t := table.New("LIMIT", "KEY", "MODE", "STORE ERROR", "ALLOWS")
	t.Indent = "  "
	for _, r := range m.Rules() {
		for i := range r.Limits {
			l := &r.Limits[i]
			t.Add(l.Name, keyNames(r), prose.Mode(r), storeError(r), describeLimit(l))
		}
	}
	fmt.Fprintf(std.Out, "%s: ok, %s\n", file, prose.Count(len(m.Rules()), "rule"))
	t.WriteTo(std.Out)
	for _, warning := range m.Warnings() {
		fmt.Fprintf(std.Out, "  warning: %s\n", warning)
	}
}

// A checkedFile is the JSON form of a report, a stable contract.
type checkedFile struct {
	File     string         `json:"file"`
	Valid    bool           `json:"valid"`
	Error    string         `json:"error,omitempty"` // why it cannot be read
	Errors   []checkedError `json:"errors"`
	Warnings []string       `json:"warnings"`
	Rules    []checkedRule  `json:"rules"`
}

type checkedError struct {
	RuleID int64           `json:"rule_id,omitempty"` // of a row in a database, and its name
	Rule   string          `json:"rule,omitempty"`
	Line   int             `json:"line"`
	Column int             `json:"column"`
	Path   string          `json:"path"`
	Value  json.RawMessage `json:"value,omitempty"`
	Reason string          `json:"reason"`
	Hint   string          `json:"hint,omitempty"`
}

type checkedRule struct {
	Name         string          `json:"name"`
	LimitKeys    []string        `json:"limit_keys"`
	Mode         string          `json:"mode"`
	OnStoreError string          `json:"on_store_error"`
	Deadline     httpapi.Seconds `json:"deadline"`
	Limits       []checkedLimit  `json:"limits"`
}

type checkedLimit struct {
	Name        string          `json:"name"`
	Algorithm   string          `json:"algorithm"`
	Capacity    json.Number     `json:"capacity"` // what can be spent without waiting
	Rate        string          `json:"rate"`
	Queue       json.Number     `json:"queue,omitempty"` // what can wait, of a leaky bucket
	Shards      int             `json:"shards,omitempty"`
	Leased      bool            `json:"leased,omitempty"`
	FullAfter   httpapi.Seconds `json:"full_after"` // from empty; null for never
	Description string          `json:"description"`
}

func writeCheckJSON(w io.Writer, file string, m *policy.Matcher, err error) {
	report := checkedFile{File: policyName(file), Valid: err == nil, Errors: []checkedError{}, Warnings: []string{}, Rules: []checkedRule{}}
	var mistakes policyfile.Errors
	if errors.As(err, &mistakes) {
		for _, e := range mistakes {
			ce := checkedError{Line: e.Line, Column: e.Column, Path: e.Path, Reason: e.Reason, Hint: e.Hint}
			switch {
			case json.Valid([]byte(e.Value)):
				ce.Value = json.RawMessage(e.Value)
			case e.Value != "": // cut to a readable length
				ce.Value, _ = json.Marshal(e.Value)
			}
			report.Errors = append(report.Errors, ce)
		}
	} else if rows, ok := errors.AsType[rules.Errors](err); ok {
		for _, e := range rows {
			report.Errors = append(report.Errors, checkedError{RuleID: e.RuleID, Rule: e.Name, Path: e.Column + e.Path, Reason: e.Reason, Hint: e.Hint})
		}
	} else if err != nil {
		report.Error = err.Error()
	}
	if m != nil {
		for _, w := range m.Warnings() {
			report.Warnings = append(report.Warnings, w.String())
		}
		for _, r := range m.Rules() {
			report.Rules = append(report.Rules, checkRule(r))
		}
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.Encode(report)
}

func checkRule(r *policy.Rule) checkedRule {
	cr := checkedRule{Name: r.Name, Mode: prose.Mode(r), OnStoreError: storeErrorName(r), Deadline: httpapi.Seconds(r.Deadline), LimitKeys: []string{}}
	for _, a := range r.LimitKeys {
		cr.LimitKeys = append(cr.LimitKeys, a.Spelled())
	}
	for i := range r.Limits {
		cr.Limits = append(cr.Limits, checkLimit(&r.Limits[i]))
	}
	return cr
}

func checkLimit(l *policy.Limit) checkedLimit {
	b := l.Bucket
	cl := checkedLimit{
		Name: l.Name, Algorithm: algorithmName(l), Capacity: json.Number(b.Capacity().String()), Rate: formatRate(b), Shards: l.Shards, Leased: l.Leased,
		FullAfter: httpapi.Seconds(b.TimeFor(b.Capacity())), Description: describeLimit(l),
	}
	if b.Queued() {
		cl.Queue = json.Number(b.MaxReserved().String())
	}
	return cl
}
