// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"

	"github.com/metehq/mete"
	"github.com/metehq/mete/client"
	"github.com/metehq/mete/cmd/internal/curl"
	"github.com/metehq/mete/internal/requesttext"
)

// A typedRequest is a request as somebody types it.
type typedRequest struct {
	client.Request
	curl  string   // a command line, "" for none
	notes []string // what is left out, or matched in another spelling
}

// read reads operands: a request line or a URL, and attributes. Those of a curl command
// are added; what an operand says goes before what the command does.
func (r *typedRequest) read(operands []string) error {
	var typed requesttext.Request
	for _, operand := range operands {
		if err := typed.Operand(operand); err != nil {
			return err
		}
	}
	if r.curl != "" {
		command, err := curl.Read(r.curl)
		if err != nil {
			return fmt.Errorf("--curl: %w", plain(err))
		}
		if _, line := typed.Attributes["path"]; line {
			return errors.New("one request is explained at a time: leave out the path or --curl")
		}
		sent := requesttext.Request{Notes: command.Notes}
		if err := sent.AddHTTP(command.Request, command.Assumed...); err != nil {
			return fmt.Errorf("--curl: %w", err)
		}
		for name, value := range typed.Attributes {
			sent.Attributes[name] = value
		}
		sent.Cost, sent.Notes = typed.Cost, append(typed.Notes, sent.Notes...)
		if len(sent.Claims) > 0 {
			sent.Notes = append(sent.Notes, requesttext.ClaimsNote)
		}
		typed = sent
	}
	if r.Attributes, r.Cost, r.notes = typed.Attributes, float64(mete.TokensOf(typed.Cost)), typed.Notes; r.Attributes == nil {
		r.Attributes = map[string]string{}
	}
	return nil
}

// readCurl reads the command line from standard input where --curl says so: it may
// have quotes that are hard to quote.
func (c *explainCommand) readCurl() error {
	if c.request.curl != "-" {
		return nil
	}
	if c.policy == "-" {
		return errors.New("--policy and --curl cannot both be standard input")
	}
	text, err := io.ReadAll(io.LimitReader(c.std.In, requesttext.MaxBytes+1)) // which is refused if it is longer
	if err != nil {
		return fmt.Errorf("--curl: %w", err)
	}
	c.request.curl = string(text)
	return nil
}
