// SPDX-License-Identifier: Apache-2.0

// Package runbook holds the runbook of this version of mete, so that it can be read where
// the documentation cannot be reached.
package runbook

import (
	_ "embed"
	"regexp"
	"strings"
)

// page is a copy of doc/operations.md, which a test compares.
//
//go:embed operations.txt
var page string

// A Section is what to do about some alerts.
type Section struct {
	Name   string   // "store down"
	Alerts []string // "MeteBreakerOpen"
	Text   string
}

const sectionHead = "### Runbook: "

var alerts = regexp.MustCompile(`(?m)^\*(Mete[A-Za-z, ]+)\.\*`)

// Overview returns the first screen: what is wrong, where to look and what to do.
func Overview() string {
	first, _, _ := strings.Cut(page, "\n## ")
	return terminalText(first)
}

// Sections returns the sections of all alerts, in the order of the page.
func Sections() []Section {
	var all []Section
	for _, text := range strings.Split(page, sectionHead)[1:] {
		if end := strings.Index(text, "\n## "); end >= 0 {
			text = text[:end]
		}
		name, body, _ := strings.Cut(text, "\n")
		s := Section{Name: name, Text: terminalText(name + "\n" + strings.TrimRight(body, "\n"))}
		if m := alerts.FindStringSubmatch(body); m != nil {
			s.Alerts = strings.Split(m[1], ", ")
		}
		all = append(all, s)
	}
	return all
}

// Find returns the section of an alert, or of that name, in any case.
func Find(name string) (Section, bool) {
	for _, s := range Sections() {
		if strings.EqualFold(s.Name, name) {
			return s, true
		}
		for _, alert := range s.Alerts {
			if strings.EqualFold(alert, name) {
				return s, true
			}
		}
	}
	return Section{}, false
}

// Names returns all that [Find] finds.
func Names() []string {
	var names []string
	for _, s := range Sections() {
		names = append(append(names, s.Alerts...), s.Name)
	}
	return names
}
