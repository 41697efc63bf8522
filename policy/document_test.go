// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metehq/mete/internal/dialect"
	"github.com/metehq/mete/policy"
	"github.com/metehq/mete/policytest"
)

// Parts of doc/policy.md are made of what the code knows: fields, algorithms,
// warnings and bounds. They stand between <!-- generated: NAME --> and <!-- end -->.

const document = "../doc/policy.md"

var (
	update    = flag.Bool("update", false, "rewrite the generated parts of doc/policy.md, and the expected errors in testdata/bad")
	generated = regexp.MustCompile(`(?s)<!-- generated: (\w+) -->\n(.*?)<!-- end -->`)
)

func TestDocument_GeneratedParts(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	parts := documentParts(t)
	text := generated.ReplaceAllStringFunc(string(data), func(old string) string {
		name := generated.FindStringSubmatch(old)[1]
		part, ok := parts[name]
		if !ok {
			t.Errorf("nothing is generated as %q", name)
		}
		delete(parts, name)
		return fmt.Sprintf("<!-- generated: %s -->\n%s<!-- end -->", name, part)
	})
	for name := range parts {
		t.Errorf("doc/policy.md has no part %q", name)
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(document, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if text != string(data) {
		t.Error("doc/policy.md is not what the code says: run go test -run TestDocument -update in policy")
	}
}

// Every field of the language is in a table of the document.
func TestDocument_HasEveryField(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for name, object := range jsonSchema(t).Defs {
		for field := range object.Properties {
			if !regexp.MustCompile("(?m)^\\| `" + field + "` *\\|").Match(data) {
				t.Errorf("doc/policy.md: no table has the field %s of %s", field, name)
			}
		}
	}
}

// A schemaObject has the parts of a JSON Schema object that matter here.
type schemaObject struct {
	Properties map[string]schemaProperty
	Required   []string
	AllOf      []struct {
		Required []string
		AnyOf    []struct{ Required []string }
	}
}

type schemaProperty struct {
	Description string
	Ref         string `json:"$ref"`
	Type        string
	Enum        []string
	Items       *schemaProperty
}

// forms are words for the definitions of the JSON Schema with unclear names.
var forms = map[string]string{
	"amountOrNone": "amount", "extent": "amount or duration", "penalty": "duration or object", "values": "value, or a list of them", "scalar": "value", "percent": "percent",
	"dialects": "word, or a list of them", "jitter": "share, or 0", "policy": "policy", "fallback": "rule without match", "state": "state", "instant": "timestamp",
}

// form describes p in a word or two.
func (p *schemaProperty) form() string {
	name := p.Ref[strings.LastIndexByte(p.Ref, '/')+1:]
	switch {
	case p.Type == "array" && p.Items != nil && p.Items.Ref != "":
		return "list"
	case forms[name] != "":
		return forms[name]
	case name != "":
		return name
	case len(p.Enum) > 0:
		return "word"
	}
	return map[string]string{"string": "text", "boolean": "true or false", "integer": "whole number", "array": "list", "object": "object"}[p.Type]
}

type schemaFile struct {
	Defs map[string]schemaObject `json:"$defs"`
}

func jsonSchema(t *testing.T) (s schemaFile) {
	t.Helper()
	if err := json.Unmarshal(policy.JSONSchema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func documentParts(t *testing.T) map[string]string {
	defs := jsonSchema(t).Defs
	// A table refers to an earlier one instead of repeating its descriptions.
	for _, later := range []struct{ of, before, link string }{
		{"bundle", "rule", "As in a [rule](#the-fields-of-a-rule)."}, {"file", "rule", "As in a [rule](#the-fields-of-a-rule)."},
		{"override", "rule", "As in a [rule](#the-fields-of-a-rule)."}, {"bundle", "file", "As in a [policy](#the-fields-of-a-policy)."},
		{"killSwitch", "override", "As in an override."}, {"state", "override", "As in an override."},
	} {
		for name, p := range defs[later.of].Properties {
			if before, ok := defs[later.before].Properties[name]; ok && before.Description == p.Description {
				p.Description = later.link
				defs[later.of].Properties[name] = p
			}
		}
	}
	for _, of := range []string{"rule", "override"} {
		for _, name := range policy.LimitFields() {
			defs[of].Properties[name] = schemaProperty{Description: "As in its [algorithm](#algorithms)."}
		}
	}
	return map[string]string{
		"bundle": fieldTable(defs["bundle"]), "entry": fieldTable(defs["entry"]), "policy": fieldTable(defs["file"]), "selector": fieldTable(defs["selector"]),
		"rule": fieldTable(defs["rule"]), "override": fieldTable(defs["override"]), "state": fieldTable(defs["state"]),
		"denial":     fieldTable(defs["denial"]),
		"switch":     fieldTable(defs["killSwitch"]),
		"algorithms": algorithmTables(defs), "bounds": boundTable(t), "ai": aiTables(defs),
	}
}

// fieldTable lists the fields of an object, required fields first. After the table, it names the fields that an
// earlier table describes.
func fieldTable(o schemaObject) string {
	fields := slices.Sorted(maps.Keys(o.Properties))
	required := func(f string) bool { return slices.Contains(o.Required, f) }
	slices.SortStableFunc(fields, func(a, b string) int {
		switch {
		case required(a) == required(b):
			return 0
		case required(a):
			return -1
		}
		return 1
	})
	var b strings.Builder
	earlier := map[string][]string{}
	b.WriteString("| Field | Type | Description |\n|---|---|---|\n")
	for _, f := range fields {
		p := o.Properties[f]
		text := p.Description
		if strings.HasPrefix(text, "As in ") {
			name := "`" + f + "`"
			if required(f) {
				name += " (required)"
			}
			earlier[text] = append(earlier[text], name)
			continue
		}
		if required(f) {
			text = "**Required.** " + text
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f, p.form(), text)
	}
	for _, place := range slices.Sorted(maps.Keys(earlier)) {
		fmt.Fprintf(&b, "\n%s: %s.\n", strings.TrimSuffix(place, "."), strings.Join(earlier[place], ", "))
	}
	return b.String()
}

// algorithmNames are in the order of the document.
var algorithmNames = []string{"token_bucket", "fixed_window", "sliding_window", "sliding_log", "leaky_bucket", "cost_based"}

// algorithmTables list the fields of each algorithm, and describe each field.
func algorithmTables(defs map[string]schemaObject) string {
	var b strings.Builder
	b.WriteString("| `algorithm` | Required | Optional |\n|---|---|---|\n")
	property := map[string]schemaProperty{}
	for _, name := range algorithmNames {
		o := defs[name]
		var must []string
		needed := map[string]bool{}
		for _, a := range o.AllOf {
			var either []string
			for _, alternative := range a.AnyOf {
				either = append(either, quoted(alternative.Required)...)
				needed[alternative.Required[0]] = true
			}
			for _, f := range a.Required {
				needed[f] = true
			}
			if words := append(quoted(a.Required), strings.Join(either, " or ")); words[0] != "" {
				must = append(must, words[0])
			}
		}
		var can []string
		for _, f := range slices.Sorted(maps.Keys(o.Properties)) {
			property[f] = o.Properties[f]
			if slices.Contains(aiFields, f) {
				delete(property, f)
				continue
			}
			if !needed[f] && !strings.HasSuffix(f, "_cost") && f != "cost_source" {
				can = append(can, f)
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, strings.Join(must, ", "), strings.Join(quoted(can), ", "))
	}
	b.WriteString("\n| Field | Type | Description |\n|---|---|---|\n")
	for _, f := range slices.Sorted(maps.Keys(property)) {
		p := property[f]
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f, p.form(), p.Description)
	}
	b.WriteString("\n" + strings.Replace(fieldTable(defs["stage"]), "| Field |", "| Field of a stage |", 1))
	return b.String()
}

// aiFields are the fields of all charged limits for language models. They have tables of their own.
var aiFields = []string{"weights", "token_source", "default_max_completion", "max_completion_tokens", "streaming"}

// aiTables describe token_bucket_llm, and the objects of limits and policies for language models.
func aiTables(defs map[string]schemaObject) string {
	llm := defs["token_bucket_llm"]
	for _, f := range []string{"penalty", "charge_on", "algorithm"} {
		delete(llm.Properties, f)
	}
	var b strings.Builder
	for i, of := range []struct{ title, name string }{
		{"`token_bucket_llm`", "token_bucket_llm"}, {"`token_source`", "tokenSource"}, {"`weights`", "weights"}, {"`streaming`", "streaming"},
		{"`prices`", "priceList"}, {"`prices` with a file", "priceFile"}, {"`loop_detection`", "loop"}, {"`circuit_breaker`", "breaker"},
	} {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.Replace(fieldTable(defs[of.name]), "| Field |", "| Field of "+of.title+" |", 1))
	}
	return b.String()
}

func quoted(names []string) (all []string) {
	for _, n := range names {
		all = append(all, "`"+n+"`")
	}
	return all
}

// boundTable lists the constants of the package that bound something. One that is
// new has to be put in.
func boundTable(t *testing.T) string {
	rows := []struct {
		name  string
		value any
		of    string
	}{
		{"MaxFileBytes", policy.MaxFileBytes, "bytes of a file"},
		{"MaxPolicies", policy.MaxPolicies, "policies of a bundle"},
		{"MaxRules", policy.MaxRules, "rules of a file"},
		{"MaxLimitKeys", policy.MaxLimitKeys, "attributes in `limit_keys`"},
		{"MaxLimits", policy.MaxLimits, "limits of a rule"},
		{"MaxMatchClauses", policy.MaxMatchClauses, "clauses of a `match`"},
		{"MaxMatchValues", policy.MaxMatchValues, "values of a clause"},
		{"MaxMatches", policy.MaxMatches, "limits that can apply to one request; one less in a policy with shards"},
		{"MaxShards", policy.MaxShards, "shards of a bucket"},
		{"MaxStages", policy.MaxStages, "stages of a limit"},
		{"MaxStageDelay", policy.MaxStageDelay, "delay of a stage"},
		{"MinDeadline", policy.MinDeadline, "shortest deadline"},
		{"MaxDeadline", policy.MaxDeadline, "longest deadline"},
		{"DefaultDeadline", policy.DefaultDeadline, "default deadline"},
		{"MaxJitterPercent", dialect.MaxJitterPercent, "percent of a wait that `jitter` adds"},
		{"MaxNameBytes", policy.MaxNameBytes, "bytes of a name of a rule, group, policy or override"},
		{"MaxAttributeBytes", policy.MaxAttributeBytes, "bytes of an attribute's name"},
		{"MaxKeyBytes", policy.MaxKeyBytes, "bytes of a bucket's key, because values above 64 bytes are hashed"},
		{"MaxOverrides", policy.MaxOverrides, "overrides, including those added at run time"},
		{"MaxTests", policytest.MaxTests, "tests of a file"},
		{"MaxTestSteps", policytest.MaxTestSteps, "steps of a test"},
		{"MaxTestRequests", policytest.MaxTestRequests, "requests of a test"},
		{"MaxFileRequests", policytest.MaxFileRequests, "requests of all tests of a file"},
	}
	api, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| Constant | Value | Bounds |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.name, grouped(fmt.Sprint(r.value)), r.of)
	}
	for _, m := range regexp.MustCompile(`(?m)^const ((?:Max|Min|Default)\w+) `).FindAllStringSubmatch(string(api), -1) {
		if !strings.Contains(b.String(), "`"+m[1]+"`") {
			t.Errorf("policy.%s is in no row", m[1])
		}
	}
	return b.String()
}

// grouped puts commas into long numbers.
func grouped(number string) string {
	for i := len(number) - 3; i > 0 && !strings.ContainsAny(number, "ms"); i -= 3 {
		number = number[:i] + "," + number[i:]
	}
	return number
}
