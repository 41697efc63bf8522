// SPDX-License-Identifier: Apache-2.0

// Package convert converts the rate limits in a gateway's configuration to a policy and lists the differences.
//
// Each gateway has a [reader]. To add a gateway, write its detect and read functions in a new file and add a line
// to readers:
//
//   - read parses the configuration and returns a [Result] with rules, differences and the number of elements that it
//     recognized. It does not print anything.
//   - A setting that mete cannot express becomes a [Difference], not a rule. A reader never silently skips a rate limit.
//   - A configuration that cannot be parsed is an [*Error] with the line. The caller then writes nothing.
//
// [Convert] compiles the rules, so that 'mete check' accepts every policy.
package convert

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/metehq/mete/internal/prose"
	"github.com/metehq/mete/policyyaml"
)

// MaxBytes bounds the total size of the configuration files, including included files.
const MaxBytes = 8 << 20

type Result struct {
	From        string       // gateway, such as "nginx"
	File        string       // configuration file
	Rules       []Rule       // in the order of the policy file
	Differences []Difference // in the order of detection
	Recognized  []string     // such as "2 zones", "3 limits"
}

// A Difference describes a setting that mete handles differently from the gateway, or not at all.
type Difference struct {
	Where  string `json:"where"`            // FILE:LINE, or FILE
	What   string `json:"what"`             // the setting, and what the gateway does with it
	Effect string `json:"effect"`           // how the decisions of mete differ
	Remedy string `json:"remedy,omitempty"` // what the operator can do about it
}

// String returns the difference on one line.
func (d Difference) String() string {
	text := d.Where + ": " + d.What + " " + d.Effect
	if d.Remedy != "" {
		text += " " + d.Remedy
	}
	return text
}

// Differ adds a difference unless an equal one exists.
func (r *Result) Differ(where, what, effect, remedy string) {
	d := Difference{where, what, effect, remedy}
	if !slices.Contains(r.Differences, d) {
		r.Differences = append(r.Differences, d)
	}
}

// Recognize adds a count to Recognized, such as "2 zones", unless n is 0.
func (r *Result) Recognize(n int, singular string) {
	if n > 0 {
		r.Recognized = append(r.Recognized, prose.Count(n, singular))
	}
}

// An Error is the reason why a configuration cannot be converted.
type Error struct {
	File       string
	Line       int // 0 for errors about the whole file
	Reason     string
	Recognized []string // elements that were recognized before the error
}

func (e *Error) Error() string {
	recognized := "recognized nothing"
	if len(e.Recognized) > 0 {
		recognized = "recognized " + strings.Join(e.Recognized, ", ")
	}
	return fmt.Sprintf("convert: %s: %s; %s", place(e.File, e.Line), e.Reason, recognized)
}

type reader struct {
	name   string                                         // value of --from
	about  string                                         // description of FILE for the help
	detect func(data []byte) bool                         // reports whether data looks like its configuration
	read   func(file string, data []byte) (Result, error) // file is for positions and for locating included files
}

// readers are tried in order to detect a gateway, so distinctive formats precede general ones.
var readers = []reader{
	nginxReader, haproxyReader, caddyReader,
	envoyReader, kongReader, apisixReader, traefikReader,
}

func Names() []string {
	names := make([]string, len(readers))
	for i, r := range readers {
		names[i] = r.name
	}
	return names
}

// Descriptions returns one line per gateway with its name and the kind of file.
func Descriptions() (lines []string) {
	for _, r := range readers {
		lines = append(lines, fmt.Sprintf("%-8s  %s", r.name, r.about))
	}
	return lines
}

// Convert converts the configuration data of a gateway. If from is "", it detects the gateway. The resulting
// policy compiles and has at least one rule.
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
	separateRules(result.Rules)
	text, err := result.YAML()
	if err != nil {
		return Result{}, err
	}
	if _, err := policyyaml.Load(text, checkOptions); err != nil {
		return Result{}, &Error{File: file, Reason: "the policy does not compile: " + err.Error(), Recognized: result.Recognized}
	}
	return result, nil
}

// dropInvalid removes rules that the policy language rejects, such as rules with a path that no request has, and
// reports them as differences.
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

// findReader returns the reader named from. If from is "", it detects the reader.
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
