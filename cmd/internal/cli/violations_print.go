// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strconv"

	"github.com/metehq/mete/cmd/internal/table"
	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/pgstore/violations"
)

func (c *violationsCommand) printList(list []violations.Violation) error {
	if c.format == "json" {
		for i := range list {
			if err := writeJSON(c.std.Out, list[i].Row()); err != nil {
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

// cell is a text as a cell of a table. Whatever others have put into the database,
// it does not speak to the terminal.
func cell(s string) string {
	if s == "" {
		return "-"
	}
	return visible.Text(s)
}
