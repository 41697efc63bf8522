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

type typedRequest struct {
	client.Request
	curl  string   // a curl command line, or ""
	notes []string // ignored or normalized parts
}

// read parses operands: a request line or URL, and attributes. Operands override the curl command.
func (r *typedRequest) read(operands []string) error {
	var typed requesttext.Request
	for _, operand := range operands {
		if err := typed.ReadOperand(operand); err != nil {
			return err
		}
	}
	if r.curl != "" {
		command, err := curl.Read(r.curl)
		if err != nil {
			return fmt.Errorf("--curl: %w", trimPackage(err))
		}
		if _, line := typed.Attributes["path"]; line {
			return errors.New("explain one request at a time: omit the path or --curl")
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

// readCurl reads the curl command line from standard input if --curl is "-", because some command lines are hard
// to quote.
func (c *explainCommand) readCurl() error {
	if c.request.curl != "-" {
		return nil
	}
	if c.policy == "-" {
		return errors.New("--policy and --curl cannot both be standard input")
	}
	text, err := io.ReadAll(io.LimitReader(c.std.In, requesttext.MaxBytes+1)) // the parser rejects longer input
	if err != nil {
		return fmt.Errorf("--curl: %w", err)
	}
	c.request.curl = string(text)
	return nil
}
