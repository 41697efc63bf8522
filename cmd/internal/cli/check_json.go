// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policy"
)

// A checkedFile is the JSON report about one policy. It is a stable contract.
type checkedFile struct {
	File     string        `json:"file"`
	Valid    bool          `json:"valid"`           // it is a policy; its tests may fail
	Error    string        `json:"error,omitempty"` // set if the policy cannot be read
	Errors   []finding     `json:"errors"`
	Warnings []finding     `json:"warnings"` // and notes
	Tests    *checkedTests `json:"tests,omitempty"`
	Rules    []checkedRule `json:"rules"`

	PriceVersion string `json:"price_version,omitempty"`
	PriceDate    string `json:"price_date,omitempty"`
}

type checkedTests struct {
	Passed   int          `json:"passed"`
	Failed   int          `json:"failed"`
	Requests int          `json:"requests"`
	Notes    []string     `json:"notes"` // what they leave out
	Ran      []checkedRun `json:"ran"`
}

type checkedRun struct {
	Name     string `json:"name"`
	Path     string `json:"path"`
	Requests int    `json:"requests"`
	Passed   bool   `json:"passed"` // why not is in errors
}

type checkedRule struct {
	Name         string         `json:"name"`
	LimitKeys    []string       `json:"limit_keys"`
	Mode         string         `json:"mode"`
	OnStoreError string         `json:"on_store_error"`
	Deadline     api.Seconds    `json:"deadline"`
	Limits       []checkedLimit `json:"limits"`
}

type checkedLimit struct {
	Name        string      `json:"name"`
	Algorithm   string      `json:"algorithm"`
	Capacity    api.Amount  `json:"capacity"` // what can be spent without waiting
	Rate        string      `json:"rate"`
	Queue       api.Amount  `json:"queue,omitempty"` // what can wait, of a leaky bucket
	Shards      int         `json:"shards,omitempty"`
	Leased      bool        `json:"leased,omitempty"`
	FullAfter   api.Seconds `json:"full_after"` // from empty; null for never
	Description string      `json:"description"`
}

func (p *checkedPolicy) writeJSON(w io.Writer) {
	report := checkedFile{File: p.name, Valid: p.err == nil, Errors: p.errors, Warnings: p.warnings, Rules: []checkedRule{}}
	if report.Errors == nil {
		report.Errors = []finding{}
	}
	if report.Warnings == nil {
		report.Warnings = []finding{}
	}
	switch {
	case p.err != nil && len(p.errors) == 0:
		report.Error = p.err.Error()
	case p.testsErr != nil:
		report.Error = p.testsErr.Error()
	}
	if p.matcher != nil {
		if list := p.matcher.Prices(); list != nil {
			report.PriceVersion, report.PriceDate = list.Version(), list.Date()
		}
		for _, r := range p.matcher.Rules() {
			report.Rules = append(report.Rules, checkRule(r))
		}
	}
	if len(p.tests.Outcomes) > 0 {
		report.Tests = p.tests.asJSON()
	}
	_ = writeJSON(w, report) // the caller sets the exit code
}

func (t *policyTests) asJSON() *checkedTests {
	c := &checkedTests{Failed: t.Failed(), Requests: t.Requests, Notes: t.Notes}
	c.Passed = len(t.Outcomes) - c.Failed
	if c.Notes == nil {
		c.Notes = []string{}
	}
	for i := range t.Outcomes {
		o := &t.Outcomes[i]
		c.Ran = append(c.Ran, checkedRun{Name: o.Name, Path: o.Path, Requests: o.Requests, Passed: len(o.Failures) == 0})
	}
	return c
}

func checkRule(r *policy.Rule) checkedRule {
	cr := checkedRule{Name: r.Name, Mode: r.Mode.String(), OnStoreError: storeErrorName(r), Deadline: api.Seconds(r.Deadline), LimitKeys: []string{}}
	for _, a := range r.LimitKeys {
		cr.LimitKeys = append(cr.LimitKeys, a.Spelling())
	}
	for i := range r.Limits {
		cr.Limits = append(cr.Limits, checkLimit(&r.Limits[i]))
	}
	return cr
}

func checkLimit(l *policy.Limit) checkedLimit {
	b := l.Bucket
	cl := checkedLimit{
		Name: l.Name, Algorithm: prose.Algorithm(l), Capacity: api.Amount(b.Capacity()), Rate: prose.Rate(b), Shards: l.Shards, Leased: l.Leased,
		FullAfter: api.Seconds(b.TimeFor(b.Capacity())), Description: prose.Limit(l),
	}
	if b.Queued() {
		cl.Queue = api.Amount(b.MaxReserved())
	}
	return cl
}
