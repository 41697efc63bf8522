// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// JSONSchema returns a JSON Schema (draft 2020-12) of policy files, for editors. It
// describes the fields that there are and the forms of their values: what it
// refuses, [Load] refuses; it knows nothing of what fields mean together.
func JSONSchema() []byte { return bytes.Clone(jsonSchema()) }

var jsonSchema = sync.OnceValue(func() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(wholeSchema()) // never fails
	return b.Bytes()
})

// A part of a JSON Schema.
type part = map[string]any

func ref(name string) part { return part{"$ref": "#/$defs/" + name} }

func listOf(items part, least, most int) part {
	list := part{"type": "array", "items": items, "maxItems": most}
	if least > 0 {
		list["minItems"] = least
	}
	return list
}

func either(parts ...part) part { return part{"anyOf": parts} }

func word(words ...string) part { return part{"enum": words} }

// having are the objects that have a field.
func having(name string) part { return part{"required": []string{name}} }

// saying are the objects whose field is that word.
func saying(name, word string) part {
	return part{"required": []string{name}, "properties": part{name: part{"const": word}}}
}

func lacking(name string) part { return part{"not": having(name)} }

// an object of the language, which the fields of s describe.
func objectOf(s schema, kind string, required ...string) part {
	properties := part{}
	for _, name := range s.fields {
		properties[name] = described(kind, name)
	}
	o := part{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// with adds to an object what must hold besides.
func with(o part, conditions ...part) part {
	o["allOf"] = conditions
	return o
}

// wholeSchema is of a file in any of its shapes. What may stand at its top is listed
// twice, as editors complete what they find in properties.
func wholeSchema() part {
	properties := part{}
	for _, of := range []struct {
		schema
		kind string
	}{{ruleSchema, "rule"}, {entrySchema, "entry"}, {fileSchema, "policy"}, {bundleSchema, "bundle"}} {
		for _, name := range of.fields {
			properties[name] = part{"description": fieldOf(of.kind, name).text}
		}
	}
	return part{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "a policy of mete",
		"description": "Who may spend how much: a bundle of policies, a policy with rules, or a single rule.",
		"type":        "object",
		"properties":  properties,
		"if":          having("policies"), "then": ref("bundle"),
		"else": part{
			"if": having("spec"), "then": ref("entry"),
			"else": part{"if": either(having("rules"), having("fallback_limit")), "then": ref("file"), "else": ref("loneRule")},
		},
		"$defs": definitions(),
	}
}

// definitions are the objects of the language, and the forms of values.
func definitions() part {
	defs := part{}
	for name, form := range forms {
		defs[name] = form
	}
	somePolicy := either(having("rules"), having("fallback_limit"))
	defs["bundle"] = objectOf(bundleSchema, "bundle", "policies")
	defs["entry"] = objectOf(entrySchema, "entry", "id", "spec")
	defs["policy"] = with(objectOf(policySchema, "policy"), somePolicy)
	defs["file"] = with(objectOf(fileSchema, "policy"), somePolicy)
	defs["rule"] = with(objectOf(ruleSchema, "rule", "name", "limit_keys"), limited()...)
	defs["loneRule"] = with(objectOf(ruleSchema, "rule"), append(limited(),
		either(part{"required": []string{"name", "limit_keys"}}, part{"not": either(having("name"), having("limit_keys"))}))...)
	defs["fallback"] = with(objectOf(fallbackSchema, "rule"), limited()...)
	defs["selector"] = objectOf(selectorSchema, "selector")
	defs["selector"].(part)["minProperties"] = 1
	defs["stage"] = with(objectOf(stageSchema, "stage", "action"), either(having("threshold"), having("threshold_percent")),
		part{"if": saying("action", "throttle"), "then": either(having("delay"), having("delay_ms"))})
	defs["override"] = with(objectOf(overrideSchema, "override", "id", "action", "reason", "author", "expires_at"),
		part{"if": saying("action", string(Another)), "then": part{"allOf": append(limited(), either(having("rules"), having("key")))}})
	defs["killSwitch"] = objectOf(switchSchema, "switch", "scope_key", "scope_value", "reason", "expires_at")
	defs["state"] = with(objectOf(stateSchema, "state"), part{"if": part{"not": part{
		"required": []string{"enabled"}, "properties": part{"enabled": part{"const": false}}}}, "then": part{"required": []string{"reason", "expires_at"}}})
	defs["test"] = with(objectOf(testSchema, "test", "name"), either(anyHaving("steps", stepFields)...))
	defs["step"] = objectOf(stepSchema, "step")
	defs["expectation"] = objectOf(expectSchema, "expect")
	for _, a := range algorithms {
		defs[a.name] = with(objectOf(a.config, "limit"), a.needs()...)
		l := with(objectOf(a.limit, "limit"), part{"if": having("algorithm_config"),
			"then": objectOf(nestedLimitSchema, "limit"), "else": part{"allOf": a.needs()}})
		l["properties"].(part)["algorithm_config"] = ref(a.name)
		defs[a.name+"_limit"] = l
	}
	for _, fallback := range algorithms {
		defs[fallback.name+"_limits"] = part{"type": "object", "allOf": byAlgorithm(fallback, func(a *algorithm) part { return ref(a.name + "_limit") })}
	}
	return defs
}

func anyHaving(name string, names []string) (parts []part) {
	for _, name := range append([]string{name}, names...) {
		parts = append(parts, having(name))
	}
	return parts
}

// needs are the fields that a limit of the algorithm must have.
func (a *algorithm) needs() []part {
	var all []part
	for _, name := range []string{"burst", "tokens", "window", "queue", "budget", "period"} {
		if slices.Contains(a.fields, name) {
			all = append(all, having(name))
		}
	}
	if slices.Contains(a.fields, "rate") {
		all = append(all, either(having("rate"), having("rps"), having("tokens_per_second")))
	}
	return all
}

// byAlgorithm makes what holds depend on the field algorithm.
func byAlgorithm(fallback *algorithm, then func(*algorithm) part) []part {
	all := []part{{"if": lacking("algorithm"), "then": then(fallback)}}
	for _, a := range algorithms {
		all = append(all, part{"if": saying("algorithm", a.name), "then": then(a)})
	}
	return all
}

// limited is what holds of an object that has limits in either form.
func limited() []part {
	return append(byAlgorithm(algorithms[0], func(a *algorithm) part {
		return part{"properties": part{"algorithm_config": ref(a.name), "limits": listOf(ref(a.name+"_limits"), 1, MaxLimits)}}
	}), part{"oneOf": []part{having("algorithm_config"), having("limits")}})
}

// described is the property of an object with its description.
func described(kind, name string) part {
	f := fieldOf(kind, name)
	p := part{"description": f.text}
	for key, value := range f.form {
		p[key] = value
	}
	return p
}

// fieldOf returns what is known of a field.
func fieldOf(kind, name string) fieldText {
	if f, ok := fieldTexts[kind+"."+name]; ok {
		return f
	}
	return fieldTexts[name]
}
