// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"io"
	"net/url"
	"os"
	"path/filepath"

	"github.com/metehq/mete/cmd/internal/buildinfo"
	"github.com/metehq/mete/policy/lint"
)

// The subset of SARIF 2.1.0 that mete writes. Code hosts show these findings next to the lines.

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool        sarifTool         `json:"tool"`
	ColumnKind  string            `json:"columnKind"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name    string      `json:"name"`
	Version string      `json:"version,omitempty"`
	Rules   []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID      string       `json:"id"`
	Short   sarifText    `json:"shortDescription"`
	Full    sarifText    `json:"fullDescription"`
	Default sarifDefault `json:"defaultConfiguration"`
}

type sarifDefault struct {
	Level string `json:"level"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifInvocation struct {
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct {
	Level   string    `json:"level"`
	Message sarifText `json:"message"`
}

type sarifResult struct {
	RuleID    string          `json:"ruleId"`
	RuleIndex int             `json:"ruleIndex"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations,omitempty"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact sarifArtifact `json:"artifactLocation"`
	Region   *sarifRegion  `json:"region,omitempty"`
}

type sarifArtifact struct {
	URI string `json:"uri"`
}

type sarifRegion struct {
	Line   int `json:"startLine"`
	Column int `json:"startColumn"`
}

func writeSARIF(w io.Writer, all []checkedPolicy) {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "mete", Rules: sarifRules()}}, ColumnKind: "unicodeCodePoints", Results: []sarifResult{}}
	run.Tool.Driver.Version = buildinfo.Read().Version
	index := map[string]int{}
	for i, r := range run.Tool.Driver.Rules {
		index[r.ID] = i
	}
	invocation := sarifInvocation{Successful: true}
	for i := range all {
		p := &all[i]
		if err := p.checkError(); err != nil {
			invocation.Successful = false
			invocation.Notifications = append(invocation.Notifications, sarifNotification{"error", sarifText{err.Error()}})
		}
		for _, list := range [][]finding{p.errors, p.warnings} {
			for j := range list {
				r := list[j].toSARIF(p)
				r.RuleIndex = index[r.RuleID]
				run.Results = append(run.Results, r)
			}
		}
	}
	run.Invocations = []sarifInvocation{invocation}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	enc.Encode(sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}})
}

func (p *checkedPolicy) checkError() error {
	if p.err != nil && len(p.errors) == 0 {
		return p.err
	}
	return p.testsErr
}

func sarifRules() []sarifRule {
	list := []sarifRule{
		{codeInvalid, sarifText{"the policy has an error"}, sarifText{"mete rejects a policy with an error and keeps the active one."}, sarifDefault{severityError}},
		{codeFailed, sarifText{"a test in the policy failed"}, sarifText{"A decision of the policy differs from the expectation of a test."}, sarifDefault{severityError}},
	}
	for _, k := range lint.Kinds() {
		level := severityWarning
		if k.Note {
			level = severityNote
		}
		list = append(list, sarifRule{k.Code, sarifText{k.Summary}, sarifText{k.Why}, sarifDefault{level}})
	}
	return list
}

func (f *finding) toSARIF(p *checkedPolicy) sarifResult {
	text := f.Reason
	switch {
	case f.Test != "":
		text = f.Test + ": " + text
	case f.Rule != "":
		text = f.Rule + ": " + text
	}
	for _, line := range f.Why {
		text += "\n" + line
	}
	if f.Hint != "" {
		text += "\n" + f.Hint
	}
	r := sarifResult{RuleID: f.Code, Level: f.Severity, Message: sarifText{text}}
	if p.file == "" { // a database or standard input
		return r
	}
	at := sarifPhysical{Artifact: sarifArtifact{fileURI(p.file)}}
	if f.Line > 0 {
		at.Region = &sarifRegion{f.Line, max(f.Column, 1)}
	}
	r.Locations = []sarifLocation{{at}}
	return r
}

// fileURI returns a relative URI for a file below the working directory, and an absolute one for other files.
func fileURI(name string) string {
	dir, err := os.Getwd()
	if full, aerr := filepath.Abs(name); err == nil && aerr == nil {
		if rel, err := filepath.Rel(dir, full); err == nil && filepath.IsLocal(rel) {
			return (&url.URL{Path: filepath.ToSlash(rel)}).EscapedPath()
		}
		return (&url.URL{Scheme: "file", Path: filepath.ToSlash(full)}).String()
	}
	return (&url.URL{Path: filepath.ToSlash(name)}).EscapedPath()
}
