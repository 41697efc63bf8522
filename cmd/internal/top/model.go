// SPDX-License-Identifier: Apache-2.0

package top

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/topkeys"
)

type model struct {
	options       Options
	ctx           context.Context
	width, height int

	question question // next question
	asking   bool     // a call is in progress
	rules    []string // names of all known rules
	order    int      // index in orders
	paused   bool

	top    api.Top // last answer
	rule   string  // rule of top; empty for all
	key    string  // key of bucket; empty without details
	bucket *api.Bucket
	rates  history
	silent time.Time // start of an outage; zero if the server answers
	err    error     // error of the last call

	selected *api.TopKey // last known state; nil for none
	open     bool        // details of selected are visible
}

type tick struct{}

// orders are the orders of the list. The server sorts by count.
var orders = []struct {
	name    string
	compare func(a, b api.TopKey) int
}{
	{"count", func(a, b api.TopKey) int { return cmp.Compare(b.Count, a.Count) }},
	{"last", func(a, b api.TopKey) int { return b.Last.Compare(a.Last) }},
	{"first", func(a, b api.TopKey) int { return a.First.Compare(b.First) }},
	{"key", func(a, b api.TopKey) int { return cmp.Compare(a.Key, b.Key) }},
}

func (m *model) Init() tea.Cmd { return m.nextTick() }

func (m *model) nextTick() tea.Cmd {
	return tea.Tick(m.options.Interval, func(time.Time) tea.Msg { return tick{} })
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
	case tick:
		if m.paused {
			return m, m.nextTick()
		}
		return m, tea.Batch(m.ask(), m.nextTick())
	case answer:
		m.asking = false
		m.take(msg)
		if m.isOutdated() && (msg.kind != m.question.kind || msg.rule != m.question.rule || msg.key != m.question.key) { // the user changed the question meanwhile
			return m, m.ask()
		}
	case tea.KeyPressMsg:
		if m.press(msg.String()) {
			return m, tea.Quit
		}
		if m.question.key = ""; m.open {
			m.question.key = m.selected.Key
		}
		if m.isOutdated() {
			return m, m.ask()
		}
	}
	return m, nil
}

func (m *model) ask() tea.Cmd {
	if m.asking {
		return nil
	}
	m.asking, m.question.limit = true, m.height
	q := m.question
	return func() tea.Msg { return m.options.ask(m.ctx, q, true) }
}

// isOutdated reports whether the list or the details answer an old question.
func (m *model) isOutdated() bool {
	return m.question.kind != m.top.Kind || m.question.rule != m.rule || m.question.key != "" && m.question.key != m.key
}

func (m *model) press(key string) (quit bool) {
	switch key {
	case "q", "Q", "ctrl+c", "ctrl+d":
		return true
	case "d":
		m.question.kind = topkeys.KindDenied.String()
	case "s":
		m.question.kind = topkeys.KindShadow.String()
	case "n":
		m.question.kind = topkeys.KindNear.String()
	case "r", "/":
		at := slices.Index(m.rules, m.question.rule) // -1 for all rules
		m.question.rule, m.selected, m.open = "", nil, false
		if at+1 < len(m.rules) {
			m.question.rule = m.rules[at+1]
		}
		m.rates = history{} // of other rules
	case "o":
		m.order = (m.order + 1) % len(orders)
		slices.SortStableFunc(m.top.Keys, orders[m.order].compare)
	case "p", "space":
		m.paused = !m.paused
	case "up", "k":
		m.choose(-1)
	case "down", "j":
		m.choose(1)
	case "enter":
		if m.selected == nil {
			m.choose(1)
		}
		m.open = m.selected != nil && !m.open
	case "esc":
		if !m.open {
			m.selected = nil
		}
		m.open = false
	}
	return false
}

func (m *model) choose(by int) {
	if len(m.top.Keys) == 0 {
		return
	}
	at := m.selectedIndex() + by
	if at < -1 { // up without a selection: the last key
		at = len(m.top.Keys) - 1
	}
	m.selected = new(m.top.Keys[min(max(at, 0), len(m.top.Keys)-1)])
}

func (m *model) selectedIndex() int {
	return slices.IndexFunc(m.top.Keys, func(k api.TopKey) bool {
		return m.selected != nil && k.Key == m.selected.Key && k.Limit == m.selected.Limit
	})
}

// take applies an answer. An error keeps the list.
func (m *model) take(a answer) {
	if m.err = a.err; a.err != nil {
		if m.silent.IsZero() {
			m.silent = time.Now()
		}
		if e, ok := errors.AsType[*client.Error](a.err); ok && e.Problem != nil && a.rule != "" {
			// The policy no longer has the rule.
			m.rules = slices.DeleteFunc(m.rules, func(name string) bool { return name == a.rule })
		}
		return
	}
	m.top, m.rule, m.silent = a.top, a.rule, time.Time{}
	m.key, m.bucket = a.key, a.bucket
	slices.SortStableFunc(m.top.Keys, orders[m.order].compare)
	seen := map[string]bool{}
	for _, name := range m.rules {
		seen[name] = true
	}
	for _, r := range a.top.Rules {
		seen[r.Rule] = true
	}
	if a.traffic != nil {
		for name := range a.traffic.Rules {
			seen[name] = true
		}
		if a.rule == m.question.rule {
			m.rates.add(a.traffic, a.rule)
		}
	}
	m.rules = slices.Sorted(maps.Keys(seen))
	if at := m.selectedIndex(); at >= 0 {
		m.selected = new(m.top.Keys[at])
	} else if !m.open {
		m.selected = nil
	}
}

// trouble explains why the list is old. It is empty if the list is current.
func (m *model) trouble() string {
	if m.err == nil {
		return ""
	}
	text := m.err.Error()
	if e, ok := errors.AsType[*client.Error](m.err); ok {
		switch {
		case e.Kind == client.KindUnreachable:
			text = "unreachable"
		case e.Problem != nil && e.Problem.Detail != "":
			text = e.Problem.Detail
		}
	}
	return "! since " + m.silent.UTC().Format(time.TimeOnly) + " UTC: " + text + ", retrying"
}
