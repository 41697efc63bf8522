// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/topkeys"
)

// sizeInterval is how often it is looked whether the terminal has another size.
const sizeInterval = 200 * time.Millisecond

// A topView is "mete top" on a terminal.
type topView struct {
	terminal *terminal
	server   string
	interval time.Duration
	ask      func(context.Context, topQuestion) topAnswer

	question topQuestion // that is asked next
	rules    []string    // that have been seen, by name
	paused   bool

	shown   api.Top // the last answer
	of      string  // the rule that it is about; empty for all
	traffic traffic
	silent  time.Time // since when there is none; zero for not
	err     error     // why

	selected *api.TopKey // as it was last seen; nil for none
	open     bool        // its details are shown

	width, height int // when it was last drawn
}

// A topQuestion is what a server is asked.
type topQuestion struct {
	kind, rule string
	limit      int
}

// A topAnswer is what came of asking once. There is no traffic where the server tells none.
type topAnswer struct {
	topQuestion
	top     api.Top
	traffic *api.Traffic
	err     error
}

// run shows lists until somebody ends it. It asks in the background, so that a server
// that does not answer keeps nobody from leaving.
func (v *topView) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan topAnswer, 1) // of which at most one is awaited
	asking := false
	ask := func() {
		if !asking {
			asking = true
			v.question.limit = v.height
			go func(q topQuestion) { answers <- v.ask(ctx, q) }(v.question)
		}
	}
	typed := v.terminal.typed()
	due, size := time.NewTicker(v.interval), time.NewTicker(sizeInterval)
	defer due.Stop()
	defer size.Stop()
	for changed := true; ; {
		if changed && v.draw() != nil {
			return // the terminal is gone
		}
		changed = true
		select {
		case <-ctx.Done():
			return
		case key, ok := <-typed:
			if !ok || v.press(key) {
				return
			}
			if v.outdated() {
				ask()
			}
		case <-due.C:
			if !v.paused {
				ask()
			}
			changed = false
		case <-size.C:
			width, height := v.terminal.size()
			changed = width != v.width || height != v.height
		case a := <-answers:
			asking = false
			v.take(&a)
			if v.outdated() && (a.kind != v.question.kind || a.rule != v.question.rule) { // something else was asked for meanwhile
				ask()
			}
		}
	}
}

// outdated reports whether something else is shown than was asked for.
func (v *topView) outdated() bool { return v.question.kind != v.shown.Kind || v.question.rule != v.of }

// press does what a key is for, and reports whether that is to end.
func (v *topView) press(key string) (end bool) {
	switch key {
	case "q", "Q", keyCtrlC, keyCtrlD:
		return true
	case "d":
		v.question.kind = topkeys.Denied.String()
	case "s":
		v.question.kind = topkeys.Shadow.String()
	case "n":
		v.question.kind = topkeys.Near.String()
	case "r", "/":
		v.nextRule()
	case "p", " ":
		v.paused = !v.paused
	case keyUp, "k":
		v.choose(-1)
	case keyDown, "j":
		v.choose(1)
	case keyEnter:
		if v.selected == nil {
			v.choose(1)
		}
		v.open = v.selected != nil && !v.open
	case keyEscape:
		if !v.open {
			v.selected = nil
		}
		v.open = false
	}
	return false
}

// nextRule goes on to the next of the rules that have been seen, and from the last one to
// all of them.
func (v *topView) nextRule() {
	at := slices.Index(v.rules, v.question.rule) // -1 for all of them
	v.question.rule, v.selected, v.open = "", nil, false
	if at+1 < len(v.rules) {
		v.question.rule = v.rules[at+1]
	}
	v.traffic = traffic{} // of other rules
}

// choose goes on to another key, as many places further down.
func (v *topView) choose(by int) {
	if len(v.shown.Keys) == 0 {
		return
	}
	at := v.place() + by
	if v.place() < 0 && by < 0 {
		at = len(v.shown.Keys) - 1
	}
	v.selected = new(v.shown.Keys[min(max(at, 0), len(v.shown.Keys)-1)])
}

// place is where the chosen key is in the list, -1 where it is not.
func (v *topView) place() int {
	if v.selected == nil {
		return -1
	}
	return slices.IndexFunc(v.shown.Keys, func(k api.TopKey) bool {
		return k.Key == v.selected.Key && k.Limit == v.selected.Limit
	})
}

// take takes an answer. What was shown before stays where there is none.
func (v *topView) take(a *topAnswer) {
	if v.err = a.err; a.err != nil {
		if v.silent.IsZero() {
			v.silent = time.Now()
		}
		if e, ok := errors.AsType[*client.Error](a.err); ok && e.Problem != nil && a.rule != "" {
			// The rule is not in the policy any more.
			v.rules = slices.DeleteFunc(v.rules, func(name string) bool { return name == a.rule })
		}
		return
	}
	v.shown, v.of, v.silent = a.top, a.rule, time.Time{}
	if a.traffic != nil && a.rule == v.question.rule {
		v.traffic.add(a.traffic, a.rule)
	}
	v.learn(a)
	if at := v.place(); at >= 0 {
		v.selected = new(v.shown.Keys[at])
	} else if !v.open {
		v.selected = nil
	}
}

// learn remembers the names of rules.
func (v *topView) learn(a *topAnswer) {
	seen := map[string]bool{}
	for _, name := range v.rules {
		seen[name] = true
	}
	for _, r := range a.top.Rules {
		seen[r.Rule] = true
	}
	if a.traffic != nil {
		for name := range a.traffic.Rules {
			seen[name] = true
		}
	}
	v.rules = slices.Sorted(maps.Keys(seen))
}

// trouble says why what is shown is old, nothing where it is not.
func (v *topView) trouble() string {
	if v.err == nil {
		return ""
	}
	text := v.err.Error()
	if e, ok := errors.AsType[*client.Error](v.err); ok {
		switch {
		case e.Kind == client.Unreachable:
			text = "unreachable"
		case e.Problem != nil && e.Problem.Detail != "":
			text = e.Problem.Detail
		}
	}
	return "since " + v.silent.UTC().Format(time.TimeOnly) + " UTC: " + text + ", retrying"
}

// draw draws what there is, as much of it as fits.
func (v *topView) draw() error {
	v.width, v.height = v.terminal.size()
	f := topFrame{
		server: v.server, rule: v.of, kind: v.question.kind, trouble: v.trouble(), paused: v.paused,
		top: &v.shown, traffic: &v.traffic, selected: v.place(),
	}
	if v.open {
		f.open = v.selected
	}
	return v.terminal.draw(f.lines(v.width, v.height))
}
