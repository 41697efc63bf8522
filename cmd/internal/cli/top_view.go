// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"time"

	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/topkeys"
)

// sizeInterval is how often it is looked whether the terminal has another size.
const sizeInterval = 200 * time.Millisecond

// A topView is "mete top" on a terminal.
type topView struct {
	terminal *terminal
	server   string
	rule     string
	interval time.Duration
	ask      func(ctx context.Context, kind string, limit int) (httpapi.TopKeys, error)

	shown  httpapi.TopKeys // the last answer
	kind   string          // that is asked for
	silent time.Time       // since when there is none; zero for not
	err    error           // why

	width, height int // when it was last drawn
}

// A topAnswer is what came of asking once.
type topAnswer struct {
	kind string // that was asked for
	top  httpapi.TopKeys
	err  error
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
			go func(kind string, limit int) {
				top, err := v.ask(ctx, kind, limit)
				answers <- topAnswer{kind, top, err}
			}(v.kind, v.height)
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
			if v.kind != v.shown.Kind {
				ask()
			}
		case <-due.C:
			ask()
			changed = false
		case <-size.C:
			width, height := v.terminal.size()
			changed = width != v.width || height != v.height
		case a := <-answers:
			asking = false
			v.take(&a)
			if a.kind != v.kind { // something else was asked for meanwhile
				ask()
			}
		}
	}
}

// press does what a key is for, and reports whether that is to end.
func (v *topView) press(key byte) (end bool) {
	switch key {
	case 'q', 'Q', ctrlC, ctrlD:
		return true
	case 'd':
		v.kind = topkeys.Denied.String()
	case 's':
		v.kind = topkeys.Shadow.String()
	case 'n':
		v.kind = topkeys.Near.String()
	}
	return false
}

// take takes an answer. What was shown before stays where there is none.
func (v *topView) take(a *topAnswer) {
	if v.err = a.err; a.err == nil {
		v.shown, v.silent = a.top, time.Time{}
	} else if v.silent.IsZero() {
		v.silent = time.Now()
	}
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
	lines, heading := topScreen(&topFrame{server: v.server, rule: v.rule, trouble: v.trouble(), top: &v.shown}, v.width, v.height)
	return v.terminal.draw(lines, heading)
}
