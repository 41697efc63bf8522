// SPDX-License-Identifier: Apache-2.0

// Package policydiff implements mete diff. It explains the difference between two policies in words and with
// example requests.
package policydiff

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/internal/visible"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policy/diff"
)

// ErrDifferent is the error of [Run] after it has printed differences.
var ErrDifferent = errors.New("the policies differ")

// Options configure [Run].
type Options struct {
	Old, New         *policy.Matcher
	OldName, NewName string
	Now              time.Time // for overrides that have expired
	JSON             bool
}

// A report is the JSON output.
type report struct {
	Old         string       `json:"old"`
	New         string       `json:"new"`
	Equal       bool         `json:"equal"`
	Differences []difference `json:"differences"`
}

// A difference is a changed rule or override.
type difference struct {
	Kind     string   `json:"kind"`
	Rule     string   `json:"rule,omitempty"`
	Was      string   `json:"was,omitempty"`
	Override string   `json:"override,omitempty"`
	Text     string   `json:"text"`
	Changes  []change `json:"changes,omitempty"`
	Before   []string `json:"no_longer_behind,omitempty"`
	After    []string `json:"now_behind,omitempty"`
	Example  *example `json:"example,omitempty"`
}

type change struct {
	Limit   string `json:"limit,omitempty"`
	Field   string `json:"field"`
	Old     string `json:"old"`
	New     string `json:"new"`
	Meaning string `json:"meaning,omitempty"`
}

// Run writes the differences to w. It returns [ErrDifferent] if there are any.
func Run(w io.Writer, o Options) error {
	r := report{Old: o.OldName, New: o.NewName, Differences: []difference{}}
	x := explainer{old: o.Old, new: o.New}
	for _, d := range diff.Compare(o.Old, o.New, o.Now) {
		r.Differences = append(r.Differences, x.explain(d))
	}
	r.Equal = len(r.Differences) == 0
	var err error
	if o.JSON {
		out := json.NewEncoder(w)
		out.SetEscapeHTML(false)
		err = out.Encode(r)
	} else {
		_, err = io.WriteString(w, visible.Lines(r.text()))
	}
	if err == nil && !r.Equal {
		return ErrDifferent
	}
	return err
}

func (r *report) text() string {
	if r.Equal {
		return fmt.Sprintf("no difference in decisions: %s and %s\n", r.Old, r.New)
	}
	var b strings.Builder
	for _, d := range r.Differences {
		fmt.Fprintf(&b, "%s\n", d.Text)
		for _, c := range d.Changes {
			fmt.Fprintf(&b, "  %s\n", c.text())
		}
		if d.Example != nil {
			fmt.Fprintf(&b, "  for example, %s\n", strings.Join(d.Example.lines, "\n    "))
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%s between %s and %s\n", prose.Count(len(r.Differences), "difference"), r.Old, r.New)
	return b.String()
}

func (c *change) text() string {
	name := c.Field
	if c.Limit != "" {
		name = c.Limit + " " + name
	}
	was, is := c.Old, c.New
	if was == "" {
		was = "none"
	}
	if is == "" {
		is = "none"
	}
	s := fmt.Sprintf("%s: %s → %s", name, was, is)
	if c.Meaning != "" {
		s += ": " + c.Meaning
	}
	return s
}
