// SPDX-License-Identifier: Apache-2.0

// Package top implements mete top. It lists the keys that a server limits most, once or live on a terminal.
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

const callTimeout = 5 * time.Second

type Options struct {
	Server   string // URL for titles and commands
	Standard bool   // Server is the default, so commands omit it
	Query    client.TopQuery
	Interval time.Duration // between two calls on a terminal

	// Connect returns a client and a function that closes its connections. Run calls it for every list, because a
	// restarted server may have a new token.
	Connect func() (*client.Client, func(), error)

	Live bool // draw on the terminal Out until the user quits
	JSON bool // print one list as JSON
	In   io.Reader
	Out  io.Writer
}

// Run prints one list, or shows lists on a terminal until the user quits or ctx ends. It returns an error if the
// first list fails. On a terminal it retries later lists.
func Run(ctx context.Context, o Options) error {
	width, height := 80, 24
	if !o.Live {
		height = o.Query.Limit
	}
	first := o.ask(ctx, question{kind: o.Query.Kind, rule: o.Query.Rule, limit: height}, o.Live)
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

// A question asks for a list and, unless key is empty, for the bucket of a key.
type question struct {
	kind, rule string
	limit      int
	key        string
}

// An answer is the result of a question. traffic and bucket are nil if the server does not report them.
type answer struct {
	question
	top     api.Top
	traffic *api.Traffic
	bucket  *api.Bucket
	err     error
}

func (o *Options) ask(ctx context.Context, q question, traffic bool) answer {
	a := answer{question: q}
	server, closeIdle, err := o.Connect()
	if err != nil {
		a.err = err
		return a
	}
	defer closeIdle()
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
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
	if q.key != "" {
		if b, err := server.Bucket(ctx, q.key); err == nil {
			a.bucket = &b
		}
	}
	return a
}
