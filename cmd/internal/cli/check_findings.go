// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/metehq/mete/cmd/internal/storeurl"
	"github.com/metehq/mete/pgstore/rules"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/lint"
	"github.com/metehq/mete/policytest"
	"github.com/metehq/mete/policyyaml"
)

// The severities of findings.
const (
	severityError   = "error"   // the policy cannot be used, or a test failed
	severityWarning = "warning" // probably unintended
	severityNote    = "note"    // information
)

// The codes of errors. [lint.Kinds] has the codes of warnings and notes.
const (
	codeInvalid = "invalid-policy"
	codeFailed  = "failed-test"
)

// A finding is one error, warning or note about a policy. Its JSON form is a stable contract.
type finding struct {
	Severity string          `json:"severity"`
	Code     string          `json:"code"`
	RuleID   int64           `json:"rule_id,omitempty"` // of a row in a database, and its name
	Rule     string          `json:"rule,omitempty"`
	Test     string          `json:"test,omitempty"` // that failed
	Line     int             `json:"line"`           // 0 where there is none
	Column   int             `json:"column"`
	Path     string          `json:"path"`
	Value    json.RawMessage `json:"value,omitempty"`
	Reason   string          `json:"reason"`
	Hint     string          `json:"hint,omitempty"`
	Why      []string        `json:"why,omitempty"` // how a test came to fail
}

type checkedPolicy struct {
	name     string // as shown in the output
	file     string // "" if the policy is not a file
	data     []byte // the contents of the file
	matcher  *policy.Matcher
	err      error
	tests    policyTests
	testsErr error     // set if the tests could not run
	errors   []finding // includes failed tests
	warnings []finding // includes notes
}

func (c *checkCommand) read(ctx context.Context, name string) checkedPolicy {
	var m *policy.Matcher
	var data []byte
	opts, err := policyOptions()
	if err == nil {
		m, data, err = readContents(ctx, c.std, name, c.keys, opts)
	}
	p := checkedPolicy{name: policyName(name), matcher: m, err: err, data: data}
	switch {
	case name == "-":
		p.name = stdinName
	case !storeurl.IsPostgres(name):
		p.file = name
	}
	p.addErrors()
	if m == nil {
		return p
	}
	for _, w := range lint.Check(m, time.Now()) {
		p.warnings = append(p.warnings, newWarning(w))
	}
	if _, warnings, err := policytest.Read(m); err == nil {
		for _, w := range warnings {
			p.warnings = append(p.warnings, newWarning(w))
		}
	}
	if p.tests, p.testsErr = runPolicyTests(ctx, m, c.tests); p.testsErr == nil {
		p.addTestFailures()
	}
	p.locate(data)
	return p
}

func (p *checkedPolicy) addErrors() {
	var mistakes policyyaml.Errors
	if errors.As(p.err, &mistakes) {
		for _, e := range mistakes {
			f := finding{Severity: severityError, Code: codeInvalid, Line: e.Line, Column: e.Column, Path: e.Path, Reason: e.Reason, Hint: e.Hint}
			switch {
			case json.Valid([]byte(e.Value)):
				f.Value = json.RawMessage(e.Value)
			case e.Value != "": // cut to a readable length
				f.Value, _ = json.Marshal(e.Value)
			}
			if e.File != p.name { // the prices
				f.Reason = e.String()
				f.Path, f.Value, f.Hint = "/prices/file", nil, ""
				at := policyyaml.Places(p.name, p.data, []string{f.Path})[f.Path]
				f.Line, f.Column = at.Line, at.Column
			}
			p.errors = append(p.errors, f)
		}
	}
	if rows, ok := errors.AsType[rules.Errors](p.err); ok {
		for _, e := range rows {
			p.errors = append(p.errors, finding{Severity: severityError, Code: codeInvalid, RuleID: e.RuleID, Rule: e.Name,
				Path: e.Path, Reason: e.Reason, Hint: e.Hint})
		}
	}
}

// addTestFailures adds the failed tests and the notes about tests.
func (p *checkedPolicy) addTestFailures() {
	for i := range p.tests.Outcomes {
		o := &p.tests.Outcomes[i]
		for _, failed := range o.Failures {
			f := newWarning(failed.Warning)
			f.Severity, f.Code, f.Test, f.Why = severityError, codeFailed, o.Name, failed.Why
			p.errors = append(p.errors, f)
		}
	}
}

func newWarning(w policy.Warning) finding {
	severity := severityWarning
	if lint.KindOf(w).Note {
		severity = severityNote
	}
	return finding{Severity: severity, Code: w.Code, Path: w.Path, Reason: w.Reason, Hint: w.Hint}
}

func (p *checkedPolicy) locate(data []byte) {
	var all []*finding
	for _, list := range [][]finding{p.errors, p.warnings} {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	paths := make([]string, len(all))
	for i, f := range all {
		paths[i] = f.Path
	}
	places := policyyaml.Places(p.name, data, paths)
	for _, f := range all {
		if f.Line == 0 {
			f.Line, f.Column = places[f.Path].Line, places[f.Path].Column
		}
	}
}

func (p *checkedPolicy) exitCode(strict bool) int {
	switch {
	case p.err != nil:
		return policyExit(p.err)
	case p.testsErr != nil:
		return exitUsage
	case len(p.errors) > 0:
		return exitNo
	}
	for i := range p.warnings {
		if strict && p.warnings[i].Severity == severityWarning {
			return exitNo
		}
	}
	return exitOK
}

func (f *finding) position(file string) string {
	if f.Line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d:%d", file, f.Line, f.Column)
}
