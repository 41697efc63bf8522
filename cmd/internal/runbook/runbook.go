// SPDX-License-Identifier: Apache-2.0

// Package runbook contains the runbook of this version of mete for use without the documentation website.
package runbook

import (
	_ "embed"
	"regexp"
	"strings"
)

// page is a copy of doc/operations.md. A test compares them.
//
//go:embed operations.txt
var page string

// A Section describes the response to some alerts.
type Section struct {
	Name   string   // such as "store down"
	Alerts []string // such as "MeteBreakerOpen"
	Text   string
}

const sectionHead = "### Runbook: "

var alerts = regexp.MustCompile(`(?m)^\*(Mete[A-Za-z, ]+)\.\*`)

// Overview returns the introduction: the symptoms, where to look and what to do.
func Overview() string {
	first, _, _ := strings.Cut(page, "\n## ")
	return terminalText(first)
}

// Sections returns all sections in the order of the page.
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

// Find returns the section with an alert or a name, ignoring case.
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

// Names returns all names that [Find] accepts.
func Names() []string {
	var names []string
	for _, s := range Sections() {
		names = append(append(names, s.Alerts...), s.Name)
	}
	return names
}
