// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/metehq/mete/bucket"
	"github.com/metehq/mete/cmd/internal/prose"
	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/pgstore/violations"
)

// A violationLine is a row as JSON: times in seconds are exact to the microsecond,
// and what is not known is null.
type violationLine struct {
	ID         int64     `json:"id"`
	At         time.Time `json:"at"`
	LastAt     time.Time `json:"last_at"`
	Denials    int64     `json:"denials"`
	Rule       string    `json:"rule"`
	Limit      string    `json:"limit"`
	Reason     string    `json:"reason"`
	Shadow     bool      `json:"shadow"`
	Key        *string   `json:"key"`
	User       *string   `json:"user"`
	IP         *string   `json:"ip"`
	Endpoint   *string   `json:"endpoint"`
	Tokens     *float64  `json:"tokens"`
	Cost       float64   `json:"cost"`
	RetryAfter *float64  `json:"retry_after"`
	Node       string    `json:"node"`
}

func (c *violationsCommand) printList(list []violations.Violation) error {
	if c.format == "json" {
		out := c.encoder()
		for i := range list {
			if err := out.Encode(lineOf(&list[i])); err != nil {
				return err
			}
		}
		return nil
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(c.std.Out, "no violations")
		return err
	}
	t := table.New("at", ">denials", "rule", "reason", "key", "user", "address", "endpoint", ">retry after")
	for i := range list {
		v := &list[i]
		retry := prose.Duration(v.RetryAfter)
		rule := v.Rule
		if v.Limit != v.Rule && v.Limit != "" {
			rule = v.Limit
		}
		if v.Shadow {
			rule += " (shadow)"
		}
		t.Add(v.At.UTC().Format("2006-01-02 15:04:05.000"), strconv.FormatInt(v.Denials, 10), cell(rule), cell(v.Reason),
			cell(v.Key), cell(v.User), cell(v.Address()), cell(v.Endpoint), retry)
	}
	_, err := t.WriteTo(c.std.Out)
	return err
}

func lineOf(v *violations.Violation) violationLine {
	line := violationLine{
		ID: v.ID, At: v.At.UTC(), LastAt: v.Last.UTC(), Denials: v.Denials, Rule: v.Rule, Limit: v.Limit, Reason: v.Reason,
		Shadow: v.Shadow, Key: known(v.Key), User: known(v.User), IP: known(v.Address()), Endpoint: known(v.Endpoint),
		Cost: v.Cost, Node: v.Node,
	}
	if v.Tokens >= 0 {
		line.Tokens = &v.Tokens
	}
	if v.RetryAfter != bucket.Never {
		seconds := v.RetryAfter.Seconds()
		line.RetryAfter = &seconds
	}
	return line
}

// known is a text that is not empty.
func known(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// cell is a text as a cell of a table. Whatever others have put into the database,
// it does not speak to the terminal.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return visible.Text(s)
}

func (c *violationsCommand) encoder() *json.Encoder {
	out := json.NewEncoder(c.std.Out)
	out.SetEscapeHTML(false)
	return out
}
