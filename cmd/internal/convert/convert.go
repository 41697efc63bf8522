// SPDX-License-Identifier: Apache-2.0

// Package convert turns the rate limits of a gateway's configuration into a policy of
// mete, and lists where the two differ.
//
// Each gateway has a [reader]. To add a gateway, write its detect and read functions in a
// file of their own and add a line to readers:
//
//   - read parses the configuration and returns a [Result]: rules, differences, and a
//     count of the elements that it recognized. It decides nothing about output.
//   - A setting that mete cannot express becomes a [Difference] and no rule. A reader
//     never skips a rate limit silently.
//   - A configuration that cannot be parsed is an [*Error] with the line. The caller then
//     writes nothing.
//
// [Convert] compiles the rules, so a reader cannot return a policy that 'mete check'
// rejects.
package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policyyaml"
)

// MaxBytes bounds the configuration files that are read, all included files together.
const MaxBytes = 8 << 20

// A Result is a converted configuration.
type Result struct {
	From        string       // the gateway, such as "nginx".
	File        string       // the configuration.
	Rules       []Rule       // in the order of the policy file.
	Differences []Difference // in the order in which the reader found them
	Recognized  []string     // such as "2 zones", "3 limits"
}

// A Difference is a place where mete and the gateway decide differently, or where the
// gateway does something that mete was not told to do.
type Difference struct {
	Where  string `json:"where"`            // FILE:LINE, or FILE
	What   string `json:"what"`             // the setting, and what the gateway does with it
	Effect string `json:"effect"`           // how the decisions of mete differ
	Remedy string `json:"remedy,omitempty"` // what the operator can do about it
}

// String returns the difference in one line.
func (d Difference) String() string {
	text := d.Where + ": " + d.What + " " + d.Effect
	if d.Remedy != "" {
		text += " " + d.Remedy
	}
	return text
}

// Differ adds a difference. Equal differences are listed once.
func (r *Result) Differ(where, what, effect, remedy string) {
	d := Difference{where, what, effect, remedy}
	if !slices.Contains(r.Differences, d) {
		r.Differences = append(r.Differences, d)
	}
}

// Recognize adds a number of elements to Recognized, such as "2 zones".
// It adds nothing if n is 0.
func (r *Result) Recognize(n int, singular string) {
	if n > 0 {
		r.Recognized = append(r.Recognized, prose.Count(n, singular))
	}
}

// An Error is why a configuration was not converted.
type Error struct {
	File       string
	Line       int // 0 if the error concerns the whole file
	Reason     string
	Recognized []string // the elements that were recognized before the error
}

// Error returns the reason with the place and the recognized elements.
func (e *Error) Error() string {
	recognized := "recognized nothing"
	if len(e.Recognized) > 0 {
		recognized = "recognized " + strings.Join(e.Recognized, ", ")
	}
	return fmt.Sprintf("convert: %s: %s; %s", place(e.File, e.Line), e.Reason, recognized)
}

// A reader converts the configuration of one gateway.
type reader struct {
	name   string                                         // the value of --from.
	about  string                                         // a description of FILE for the help.
	detect func(data []byte) bool                         // reports whether data looks like its configuration.
	read   func(file string, data []byte) (Result, error) // file names data in places, and locates included files
}

// readers are all gateways. The first one that detects a configuration reads it, so
// distinctive formats stand before general ones.
var readers = []reader{
	nginxReader, haproxyReader, caddyReader,
	envoyReader, kongReader, apisixReader, traefikReader,
}

// Names returns the values of --from.
func Names() []string {
	names := make([]string, len(readers))
	for i, r := range readers {
		names[i] = r.name
	}
	return names
}

// Abouts returns a line for each gateway: its name, and which file it reads.
func Abouts() (lines []string) {
	for _, r := range readers {
		lines = append(lines, fmt.Sprintf("%-8s  %s", r.name, r.about))
	}
	return lines
}

// Convert converts the configuration data of a gateway. If from is "", Convert detects
// the gateway. The policy in the result compiles and has at least one rule.
func Convert(from, file string, data []byte) (Result, error) {
	r, err := findReader(from, file, data)
	if err != nil {
		return Result{}, err
	}
	result, err := r.read(file, data)
	if err != nil {
		return Result{}, err
	}
	result.From, result.File = r.name, file
	result.dropInvalid()
	if len(result.Rules) == 0 {
		return Result{}, &Error{File: file, Reason: noRules(r.name, result.Differences), Recognized: result.Recognized}
	}
	separate(result.Rules)
	text, err := result.YAML()
	if err != nil {
		return Result{}, err
	}
	if _, err := policyyaml.Load(text, checkOptions); err != nil {
		return Result{}, &Error{File: file, Reason: "the policy does not compile: " + err.Error(), Recognized: result.Recognized}
	}
	return result, nil
}

// dropInvalid removes the rules that the policy language rejects, such as rules with a path
// that no request has, and lists them.
func (r *Result) dropInvalid() {
	r.Rules = slices.DeleteFunc(r.Rules, func(rule Rule) bool {
		alone := Result{Rules: []Rule{rule}}
		text, err := alone.YAML()
		if err == nil {
			_, err = policyyaml.Load(text, checkOptions)
		}
		if err == nil {
			return false
		}
		reason := err.Error()
		if mistakes, ok := errors.AsType[policyyaml.Errors](err); ok {
			reason = mistakes[0].Reason
		}
		r.Differ(r.File, fmt.Sprintf("The policy language rejects the rule %s: %s.", rule.Name, reason), "The policy has no rule for it.", "")
		return true
	})
}

// findReader returns the reader named from, or the one that detects data.
func findReader(from, file string, data []byte) (reader, error) {
	if len(data) > MaxBytes {
		return reader{}, &Error{File: file, Reason: fmt.Sprintf("the file has more than %d bytes", MaxBytes)}
	}
	for _, r := range readers {
		if from == r.name || from == "" && r.detect(data) {
			return r, nil
		}
	}
	if from != "" {
		return reader{}, fmt.Errorf("convert: unknown gateway %q: use one of %s", from, strings.Join(Names(), ", "))
	}
	return reader{}, &Error{File: file, Reason: "unknown format: name the gateway with --from " + strings.Join(Names(), "|")}
}

// noRules explains why a configuration gave no rules.
func noRules(from string, differences []Difference) string {
	reason := "no rate limit of " + from + " found that mete can express"
	for _, d := range differences {
		reason += "\n  " + d.String()
	}
	return reason
}

// place returns FILE:LINE, or FILE if line is 0.
func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}
