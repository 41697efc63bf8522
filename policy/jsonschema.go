// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"slices"
	"sync"

	"github.com/metehq/mete/internal/parse"
)

// JSONSchema returns a JSON Schema (draft 2020-12) of policy files for editors. It describes the fields and the
// forms of their values. [Load] rejects everything that the schema rejects, and more: the schema does not relate
// fields to each other.
func JSONSchema() []byte { return bytes.Clone(jsonSchema()) }

var jsonSchema = sync.OnceValue(func() []byte { return wholeSchema().JSON() })

type schemas = []parse.Schema

// wholeSchema describes a file in any of its forms. It lists the top-level fields twice, because editors complete
// the names in properties.
func wholeSchema() parse.Schema {
	properties := parse.Schema{}
	for _, t := range []*parse.Table{ruleTable, entryTable, fileTable, bundleTable} {
		for _, f := range t.Fields {
			properties[f.Name] = parse.Schema{"description": f.Doc}
		}
	}
	return parse.Schema{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "mete policy",
		"description": "Rate limits: a bundle of policies, a policy with rules, or a single rule.",
		"type":        "object",
		"properties":  properties,
		"if":          parse.Having("policies"), "then": parse.Ref("bundle"),
		"else": parse.Schema{
			"if": parse.Having("spec"), "then": parse.Ref("entry"),
			"else": parse.Schema{"if": parse.AnyHaving("rules", "fallback_limit"), "then": parse.Ref("file"), "else": parse.Ref("loneRule")},
		},
		"$defs": definitions(),
	}
}

func definitions() parse.Schema {
	defs := parse.Schema{}
	for name, form := range forms {
		defs[name] = form
	}
	somePolicy := parse.AnyHaving("rules", "fallback_limit")
	lone := ruleTable.Schema().With(append(limitSchemas(inRule), parse.Either(parse.Having("name", "limit_keys"),
		parse.Schema{"not": parse.AnyHaving("name", "limit_keys")}))...)
	delete(lone, "required")
	rule := ruleTable.Schema().With(append(limitSchemas(inRule), parse.AnyHaving("limit_keys", "bucket"))...)
	rule["required"] = []string{"name"}
	selector, chargeOn := selectorTable.Schema(), chargeOnTable.Schema()
	selector["minProperties"], chargeOn["minProperties"] = 1, 1
	enabled := parse.Schema{"required": []string{"enabled"}, "properties": parse.Schema{"enabled": parse.Schema{"const": true}}}
	disabled := parse.Schema{"required": []string{"enabled"}, "properties": parse.Schema{"enabled": parse.Schema{"const": false}}}
	for name, o := range map[string]parse.Schema{
		"bundle": bundleTable.Schema(), "entry": entryTable.Schema(),
		"policy": policyTable.Schema().With(somePolicy), "file": fileTable.Schema().With(somePolicy),
		"rule": rule, "loneRule": lone, "fallback": fallbackTable.Schema().With(limitSchemas(inFallback)...),
		"selector": selector, "chargeOn": chargeOn,
		"active": activeTable.Schema().With(parse.AnyHaving("days", "hours")),
		"stage": stageTable.Schema().With(parse.AnyHaving("threshold", "threshold_percent"),
			parse.If(parse.HavingValue("action", "throttle"), parse.AnyHaving("delay", "delay_ms"))),
		"override": overrideTable.Schema().With(parse.If(parse.HavingValue("action", string(ActionLimit)),
			parse.Schema{"allOf": append(limitSchemas(inOverride), parse.AnyHaving("rules", "key"))})),
		"penalty": parse.Either(parse.Ref("duration"), penaltyTable.Schema()),
		"denial": denialTable.Schema().With(parse.Schema{"minProperties": 1}, parse.If(parse.Having("format"), parse.Schema{"not": parse.AnyHaving("body", "content_type")}),
			parse.If(parse.Having("content_type"), parse.Having("body"))),
		"killSwitch": switchTable.Schema(),
		"weights":    weightsTable.Schema(), "tokenSource": tokenSourceTable.Schema(), "streaming": streamingTable.Schema(), "prices": parse.Either(parse.Ref("priceFile"), parse.Ref("priceList")), "priceFile": priceFileTable.Schema(), "priceList": pricesTable.Schema(), "usage": usageTable.Schema(),
		"loop":    loopTable.Schema().With(parse.If(enabled, parse.Having("window_seconds", "threshold_identical_requests"))),
		"breaker": breakerTable.Schema().With(parse.If(enabled, parse.Having("spend_rate_threshold_per_minute"))),
		"state":   stateTables["break_glass"].Schema().With(parse.If(parse.Schema{"not": disabled}, parse.Having("reason", "expires_at"))),
		"test":    testTable.Schema().With(parse.AnyHaving(append([]string{"steps"}, stepFields...)...)),
		"step":    stepTable.Schema(), "expectation": expectTable.Schema(),
	} {
		defs[name] = o
	}
	for _, a := range algorithms {
		defs[a.name] = a.config.Schema().With(a.requiredSchemas()...)
		l := a.limit.Schema().With(parse.Schema{"if": parse.Having("algorithm_config"), "then": nestedLimitTable.Schema(),
			"else": parse.Schema{"allOf": a.requiredSchemas()}})
		l["properties"].(parse.Schema)["algorithm_config"] = parse.Ref(a.name)
		defs[a.name+"_limit"] = l
		defs[a.name+"_limits"] = parse.Schema{"type": "object", "allOf": byAlgorithm(a, func(a *algorithm) parse.Schema { return parse.Ref(a.name + "_limit") })}
	}
	return defs
}

func (a *algorithm) requiredSchemas() (all schemas) {
	for i := range fields {
		if fields[i].needed&a.in != 0 {
			all = append(all, parse.Having(fields[i].name))
		}
	}
	if a.config.Has("rate") {
		all = append(all, parse.AnyHaving("rate", "rps", "tokens_per_second"))
	}
	return all
}

func byAlgorithm(fallback *algorithm, then func(*algorithm) parse.Schema) schemas {
	all := schemas{parse.If(parse.Lacking("algorithm"), then(fallback))}
	for _, a := range algorithms {
		all = append(all, parse.If(parse.HavingValue("algorithm", a.name), then(a)))
	}
	return all
}

// limitSchemas describes objects that have limits in any form. An object in the short form has only fields of its
// algorithm, and an object in another form has none of them.
func limitSchemas(in place) schemas {
	long := parse.AnyHaving("algorithm_config", "limits")
	own := parse.AnyHaving(slices.DeleteFunc(LimitFields(), func(name string) bool { return isRuleField(name, in) })...)
	return append(byAlgorithm(algorithms[0], func(a *algorithm) parse.Schema {
		properties := parse.Schema{"algorithm_config": parse.Ref(a.name), "limits": parse.ListOf(parse.Ref(a.name+"_limits"), 1, maxLimits)}
		config := a.config.Schema()["properties"].(parse.Schema)
		for _, name := range LimitFields() {
			if form, ok := config[name]; !ok {
				properties[name] = false
			} else if formsDiffer(name) {
				properties[name] = form
			}
		}
		return parse.Schema{"properties": properties, "if": parse.Schema{"not": parse.AnyHaving("algorithm_config", "limits", "bucket")}, "then": parse.Schema{"allOf": a.requiredSchemas()}}
	}), parse.Schema{"not": parse.Having("algorithm_config", "limits")}, parse.If(long, parse.Schema{"not": own}))
}

// formsDiffer reports whether a field of limits has another form in some algorithms.
func formsDiffer(name string) bool {
	rows := 0
	for i := range fields {
		if fields[i].name == name && fields[i].in&inLimits != 0 {
			rows++
		}
	}
	return rows > 1
}
