// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
)

// ErrEnded means that the input ended before the last answer.
var ErrEnded = errors.New("the input ended before the last question: no file was written; --yes takes the defaults")

const maxAnswerBytes = 4096

// A dialog asks questions as plain lines, which work in pipes, in all terminals and with screen readers.
type dialog struct {
	ctx   context.Context
	out   io.Writer
	lines <-chan line
	asked int
}

type line struct {
	text string
	err  error
}

// ask asks for the missing answers. It asks again after an invalid answer.
func ask(ctx context.Context, in io.Reader, out io.Writer, a *Answers) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &dialog{ctx: ctx, out: out, lines: readLines(ctx, in)}
	if a.Front == "" {
		d.title("Where do requests come from?",
			"api      programs ask mete before they work: POST /v1/take",
			"URL      mete stands in front of a service, such as http://127.0.0.1:3000",
			"nginx    a gateway asks mete: "+strings.Join(gateways, ", "))
		if err := d.answer("answer", defaultFront, &a.Front, func(s string) error { _, _, err := parseFront(s); return err }); err != nil {
			return err
		}
	}
	if a.By == "" {
		d.title("What identifies a client?",
			"address  the IP address",
			"key      an API key, in the header X-Api-Key",
			"user     the user in a bearer token, the claim sub",
			"or an attribute, such as header:x-tenant")
		if err := d.answer("answer", defaultBy, &a.By, func(s string) error { _, err := parseBy(s); return err }); err != nil {
			return err
		}
	}
	if p, _ := a.plan(); p.by.Source == policy.SourceJWT && p.verifies() && a.Keys == "" {
		fmt.Fprintf(d.out, "   mete verifies bearer tokens with a JSON Web Key Set of your identity provider.\n")
		if err := d.answer("its URL or file", "", &a.Keys, required("write the URL or the file of the key set")); err != nil {
			return err
		}
	}
	if err := d.limit(a); err != nil {
		return err
	}
	if a.Store == "" {
		d.title("Where should the counters be stored?",
			"memory:                        in mete: for one server, until it restarts",
			"redis://HOST:6379              in Redis, for several servers",
			"postgres://USER@HOST/DATABASE  in PostgreSQL, for several servers")
		if err := d.answer("answer", defaultStore, &a.Store, func(s string) error { _, err := parseStore(s); return err }); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(d.out)
	return err
}

// limit asks for the rate and the burst.
func (d *dialog) limit(a *Answers) error {
	if a.Rate == "" || a.Burst == "" {
		d.title("How many requests may one client make?")
	}
	if a.Rate == "" {
		if err := d.answer("rate, such as 10/1s or 100 per minute", defaultRate, &a.Rate, func(s string) error { _, err := parseRate(s); return err }); err != nil {
			return err
		}
	}
	if a.Burst != "" {
		return nil
	}
	r, err := parseRate(a.Rate)
	if err != nil {
		return err
	}
	return d.answer("at once, after a pause", r.defaultBurst(), &a.Burst, func(s string) error { _, err := parseBurst(s, r); return err })
}

func (d *dialog) title(text string, choices ...string) {
	d.asked++
	fmt.Fprintf(d.out, "\n%d. %s\n", d.asked, text)
	for _, c := range choices {
		fmt.Fprintf(d.out, "     %s\n", c)
	}
}

// answer reads answers until check accepts one. An empty answer selects the fallback.
func (d *dialog) answer(prompt, fallback string, to *string, check func(string) error) error {
	for {
		if fallback == "" {
			fmt.Fprintf(d.out, "   %s: ", prompt)
		} else {
			fmt.Fprintf(d.out, "   %s [%s]: ", prompt, fallback)
		}
		text, err := d.read()
		if err != nil {
			fmt.Fprintln(d.out)
			return err
		}
		text = valueOr(text, fallback)
		if err := check(text); err != nil {
			fmt.Fprintf(d.out, "   %s\n", visible.Lines(err.Error()))
			continue
		}
		*to = text
		return nil
	}
}

// required returns a check that rejects an empty answer.
func required(remedy string) func(string) error {
	return func(s string) error {
		if s == "" {
			return errors.New(remedy)
		}
		return nil
	}
}

func (d *dialog) read() (string, error) {
	select {
	case <-d.ctx.Done():
		return "", fmt.Errorf("interrupted: no file was written")
	case l, ok := <-d.lines:
		if !ok {
			return "", ErrEnded
		}
		return l.text, l.err
	}
}

// readLines reads lines in a goroutine, because a read from a terminal does not end with ctx.
func readLines(ctx context.Context, in io.Reader) <-chan line {
	lines := make(chan line)
	go func() {
		defer close(lines)
		s := bufio.NewScanner(in)
		s.Buffer(nil, maxAnswerBytes)
		for s.Scan() {
			select {
			case lines <- line{text: s.Text()}:
			case <-ctx.Done():
				return
			}
		}
		if err := s.Err(); err != nil {
			select {
			case lines <- line{err: fmt.Errorf("read an answer: %w", err)}:
			case <-ctx.Done():
			}
		}
	}()
	return lines
}
