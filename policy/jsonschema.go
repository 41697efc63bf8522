// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
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
	lone := ruleTable.Schema().With(append(limitSchemas(), parse.Either(parse.Having("name", "limit_keys"),
		parse.Schema{"not": parse.AnyHaving("name", "limit_keys")}))...)
	delete(lone, "required")
	selector := selectorTable.Schema()
	selector["minProperties"] = 1
	disabled := parse.Schema{"required": []string{"enabled"}, "properties": parse.Schema{"enabled": parse.Schema{"const": false}}}
	for name, o := range map[string]parse.Schema{
		"bundle": bundleTable.Schema(), "entry": entryTable.Schema(),
		"policy": policyTable.Schema().With(somePolicy), "file": fileTable.Schema().With(somePolicy),
		"rule": ruleTable.Schema().With(limitSchemas()...), "loneRule": lone, "fallback": fallbackTable.Schema().With(limitSchemas()...),
		"selector": selector,
		"stage": stageTable.Schema().With(parse.AnyHaving("threshold", "threshold_percent"),
			parse.If(parse.HavingValue("action", "throttle"), parse.AnyHaving("delay", "delay_ms"))),
		"override": overrideTable.Schema().With(parse.If(parse.HavingValue("action", string(ActionLimit)),
			parse.Schema{"allOf": append(limitSchemas(), parse.AnyHaving("rules", "key"))})),
		"killSwitch": switchTable.Schema(),
		"state":      stateTables["break_glass"].Schema().With(parse.If(parse.Schema{"not": disabled}, parse.Having("reason", "expires_at"))),
		"test":       testTable.Schema().With(parse.AnyHaving(append([]string{"steps"}, stepFields...)...)),
		"step":       stepTable.Schema(), "expectation": expectTable.Schema(),
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

// limitSchemas describes objects that have limits in either form.
func limitSchemas() schemas {
	return append(byAlgorithm(algorithms[0], func(a *algorithm) parse.Schema {
		return parse.Schema{"properties": parse.Schema{"algorithm_config": parse.Ref(a.name), "limits": parse.ListOf(parse.Ref(a.name+"_limits"), 1, maxLimits)}}
	}), parse.Schema{"oneOf": schemas{parse.Having("algorithm_config"), parse.Having("limits")}})
}
