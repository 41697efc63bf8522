// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/metehq/mete/internal/parse"
)

// The tables of the objects. init builds them from fields.
var (
	bundleTable, entryTable, policyTable, fileTable *parse.Table
	ruleTable, fallbackTable, overrideTable         *parse.Table // with the limits of all algorithms
	limitTable, nestedLimitTable                    *parse.Table
	selectorTable, stageTable, chargeOnTable        *parse.Table
	denialTable, activeTable                        *parse.Table
	weightsTable, tokenSourceTable, streamingTable  *parse.Table
	pricesTable, priceFileTable                     *parse.Table
	loopTable, breakerTable                         *parse.Table
	switchTable                                     *parse.Table
	stateTables                                     = map[string]*parse.Table{}
	testTable, stepTable, expectTable, penaltyTable *parse.Table
	usageTable                                      *parse.Table

	ruleFields, limitFields []*field // fields with a reader for rules, or for limits

	notTable = &parse.Table{What: "a match value", Fields: []parse.Field{{Name: "not"}, {Name: "has"}}}
)

// init is not an initializer of the variables, because functions in fields use the tables.
func init() {
	const rule = `{"name": "free", "limit_keys": ["ip:address"], "rate": "100/1m", "burst": 20}`
	const state = `{"reason": "incident 7", "expires_at": "2026-01-02T15:04:05Z"}`
	later := unsupportedFields(map[string]string{
		"defaults":             "",
		"kill_switch_override": ": use break_glass to admit all requests, or remove the switch",
		"signature":            ": the signature is in a separate file beside this one",
	})

	bundleTable = newTable("a bundle", "", inBundle|inFile, later)
	entryTable = newTable("a policy of a bundle", `{"id": "api", "spec": {"rules": […]}}`, inEntry, foreignEntry, misplacedFields("spec", inPolicy))
	policyTable = newTable("a policy", "", inPolicy, later, misplacedFields("the top of the file", inFile))
	bundled := foreignFields{}
	for _, name := range []string{"bundle_version", "issued_at", "expires_at"} {
		bundled[name] = parse.UnknownField{Hint: `only a bundle has it: {"bundle_version": 1, "policies": [{"id": "api", "spec": {"rules": […]}}]}`}
	}
	fileTable = newTable("a policy", "", inPolicy|inFile, later, bundled)
	owner := func(in, limit place, more ...foreignFields) *parse.Table {
		switch in {
		case inRule:
			return newTable("a rule", rule, in|limit, append(more, foreignRule, foreignLimit)...)
		case inFallback:
			return newTable("fallback_limit", `{"rate": "100/1m", "burst": 20}`, in|limit, append(more, foreignFallback, foreignLimit)...)
		}
		return newTable("an override", "", in|limit, append(more, foreignOverride, foreignLimit)...)
	}
	ruleTable, fallbackTable, overrideTable = owner(inRule, inLimits), owner(inFallback, inLimits), owner(inOverride, inLimits)
	limitTable = newTable("a limit", "", inLimits)
	nestedLimitTable = newTable("a limit that has an algorithm_config", "", inLimit)
	selectorTable = newTable("a selector", `{"pathPrefix": "/v1"}`, inSelector, foreignSelector)
	penaltyTable = newTable("penalty", penaltyExample, inPenalty)
	stageTable = newTable("a stage", "", inStage)
	chargeOnTable = newTable("charge_on", `{"status": [401, 403]}`, inChargeOn, foreignChargeOn)
	denialTable = newTable("denial", `{"format": "openai"}`, inDenial, foreignDenial)
	activeTable = newTable("active", `{"days": ["mon", "fri"], "hours": "09:00-17:00", "timezone": "Europe/Berlin"}`, inActive)
	weightsTable = newTable("weights", `{"input": 1, "output": 4}`, inWeights)
	tokenSourceTable = newTable("token_source", `{"estimator": "simple_word"}`, inTokenSource)
	streamingTable = newTable("streaming", `{"on_limit_exceeded": "graceful_close"}`, inStreaming)
	pricesTable = newTable("prices", `{"version": "2026-11-01", "models": {"gpt-4o": {"input": 250, "output": 1000}}}`, inPrices, foreignFields{"file": {Hint: "only the prices of a policy can name a file"}})
	priceFileTable = newTable("prices", `{"file": "prices.yaml"}`, inPriceFile, misplacedFields("the file with the prices", inPrices))
	loopTable = newTable(loopName, `{"enabled": true, "window_seconds": 60, "threshold_identical_requests": 10}`, inLoop)
	breakerTable = newTable(breakerName, `{"enabled": true, "spend_rate_threshold_per_minute": 1000}`, inBreaker)
	switchTable = newTable("a kill switch", `{"scope_key": "header:x-api-key", "scope_value": "k1", `+state[1:], inSwitch)
	for _, name := range []string{"global_shadow", "break_glass"} {
		stateTables[name] = newTable(name, state, inState)
	}
	testTable = newTable("a test", "", inTest)
	stepTable = newTable("a step", "", inStep, foreignFields{"request": {Hint: "it belongs in the test; a step changes it with the fields with and without"}})
	expectTable = newTable("an expectation", "", inExpect)
	usageTable = newTable("usage", `{"input": 812, "output": 208}`, inUsage)
	for i := range fields {
		f := &fields[i]
		if f.rule != nil {
			ruleFields = append(ruleFields, f)
		}
		if f.limit != nil {
			limitFields = append(limitFields, f)
		}
	}
	for _, a := range algorithms {
		a.reason = cmp.Or(a.reason, a.name+"_exceeded")
		others := a.otherFields()
		a.config = newTable("algorithm_config", a.example, a.in|a.inConfig, others, foreignLimit)
		a.limit = newTable("a limit", a.example, inLimit|a.in, others, foreignLimit)
		a.owners = map[place]*parse.Table{}
		for _, in := range []place{inRule, inFallback, inOverride} {
			a.owners[in] = owner(in, a.in, others)
		}
	}
}

type foreignFields = map[string]parse.UnknownField

func newTable(what, example string, in place, more ...foreignFields) *parse.Table {
	t := &parse.Table{What: what, Example: example, UnknownFields: foreignFields{}}
	for i := range fields {
		f := &fields[i]
		if f.in&in == 0 {
			continue
		}
		t.Fields = append(t.Fields, parse.Field{Name: f.name, Doc: f.doc, Form: f.form})
		if f.needed&in&^inLimits != 0 {
			t.Required = append(t.Required, f.name)
		}
	}
	for _, known := range slices.Backward(more) {
		for name, s := range known {
			t.UnknownFields[name] = s
		}
	}
	return t
}

func namesIn(in place) (names []string) {
	for i := range fields {
		if fields[i].in&in != 0 {
			names = append(names, fields[i].name)
		}
	}
	return names
}

// misplacedFields refers the fields of an object to the field that holds the object.
func misplacedFields(holder string, in place) foreignFields {
	all := foreignFields{}
	for _, name := range namesIn(in) {
		all[name] = parse.UnknownField{Hint: "it belongs in " + holder, Replaces: []string{holder}}
	}
	return all
}

// unsupportedFields rejects fields that are not supported. The values complete the messages.
func unsupportedFields(names map[string]string) foreignFields {
	all := foreignFields{}
	for name, why := range names {
		all[name] = parse.UnknownField{Reason: fmt.Sprintf("field %q is not supported yet%s", name, why), Hint: "remove it"}
	}
	return all
}

// readRuleFields reads the fields of a rule, or the fields that rules inherit from a policy or a bundle.
func (c *compiler) readRuleFields(d *draft, o *parse.Object, in place) {
	for _, f := range ruleFields {
		if f.in&in == 0 {
			continue
		}
		n := o.Field(f.name)
		switch {
		case n == nil && f.needed&in != 0 && !d.bare && (d.sharesWith == nil || f.name != "limit_keys"):
			o.Require(f.name, f.hint)
		case n == nil:
		case in&inRules != 0 || f.inherited:
			f.rule(c, d, n)
		default:
			f.rule(c, &draft{Rule: &Rule{}}, n) // only check it
		}
	}
}

// FieldOrder returns the names of all fields of policy files in the usual order.
func FieldOrder() []string {
	var first, then []string
	for i := range fields {
		switch f := &fields[i]; {
		case slices.Contains(first, f.name) || slices.Contains(then, f.name):
		case f.leads:
			first = append(first, f.name)
		default:
			then = append(then, f.name)
		}
	}
	return append(first, then...)
}
