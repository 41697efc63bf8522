// SPDX-License-Identifier: Apache-2.0

// Package top is mete top: it lists the keys that a server limits most, once or live on a
// terminal.
package top

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/metehq/mete/api"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/httpapi"
	"github.com/metehq/mete/monitor"
)

// patience bounds the time of one answer.
const patience = 5 * time.Second

// Options are the options of [Run].
type Options struct {
	Server   string // the URL, for titles and commands
	Standard bool   // Server is the default: commands do not name it
	Query    client.TopQuery
	Interval time.Duration // between two answers on a terminal

	// Connect returns a client, and a function that closes its connections. Run calls it for
	// every answer, because a server that was restarted has another token.
	Connect func() (*client.Client, func(), error)

	Live bool // draw on the terminal Out until the user quits
	JSON bool // print one list as JSON, not as text
	In   io.Reader
	Out  io.Writer
}

// Run shows one list, or lists on a terminal until the user quits or ctx ends. It fails if
// there is no first list. On a terminal it retries from then on.
func Run(ctx context.Context, o Options) error {
	width, height := 80, 24
	if !o.Live {
		height = o.Query.Limit
	}
	first := o.ask(ctx, question{o.Query.Kind, o.Query.Rule, height}, o.Live)
	switch {
	case first.err != nil:
		return first.err
	case o.JSON:
		out := json.NewEncoder(o.Out)
		out.SetEscapeHTML(false)
		return out.Encode(first.top)
	case !o.Live:
		_, err := io.WriteString(o.Out, listText(&first.top, o.Query.Limit))
		return err
	}
	m := &model{options: o, ctx: ctx, question: first.question, width: width, height: height}
	m.question.kind = first.top.Kind
	m.take(first)
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.In), tea.WithOutput(o.Out), tea.WithoutSignalHandler(), tea.WithEnvironment(os.Environ()))
	if _, err := program.Run(); err != nil && ctx.Err() == nil && !errors.Is(err, tea.ErrInterrupted) {
		return fmt.Errorf("terminal: %w", err)
	}
	return nil
}

// A question is a request for a list.
type question struct {
	kind, rule string
	limit      int
}

// An answer is the result of one question. There is no traffic where the server tells none.
type answer struct {
	question
	top     api.Top
	traffic *api.Traffic
	err     error
}

// ask asks the server once.
func (o *Options) ask(ctx context.Context, q question, traffic bool) answer {
	a := answer{question: q}
	server, closeIdle, err := o.Connect()
	if err != nil {
		a.err = err
		return a
	}
	defer closeIdle()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query := o.Query
	query.Kind, query.Rule, query.Limit = q.kind, q.rule, min(q.limit, httpapi.MaxTop)
	if a.top, a.err = server.Top(ctx, query); a.err != nil || !traffic {
		return a
	}
	window := min(max(o.Interval.Round(monitor.Interval), monitor.Interval), monitor.TrafficWindow)
	if t, err := server.Traffic(ctx, window); err == nil {
		a.traffic = &t
	}
	return a
}
