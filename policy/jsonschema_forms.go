// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"maps"
	"slices"
	"strings"
)

// reservedPattern is of names that begin with a reserved word.
func reservedPattern() string {
	var words []string
	for _, word := range slices.Sorted(maps.Keys(reserved)) {
		any := ""
		for _, c := range word {
			any += "[" + strings.ToUpper(string(c)) + string(c) + "]"
		}
		words = append(words, any)
	}
	return "^(" + strings.Join(words, "|") + ")(:|$)"
}

const (
	numberPattern   = `^\+?[0-9.]+([eE][+-]?[0-9]+)?$`
	templatePattern = `[{}<>]|/:[A-Za-z_]`
	durationPattern = `^([0-9.]+(ns|us|µs|μs|ms|s|m|h|d|w))+$`
)

// forms are those that values have in several places.
var forms = part{
	"attribute": part{
		"description": "A fact about a request: ip:address (or ip:address/56), header:NAME, query:NAME, cookie:NAME, jwt:CLAIM, method, path, host, " +
			"or a lower-case name that an embedding program supplies.",
		"type": "string", "maxLength": MaxAttributeBytes, "pattern": `^[A-Za-z][A-Za-z0-9._-]*(:.+)?$`, "not": part{"pattern": reservedPattern()},
		"examples": []string{"ip:address", "header:x-api-key", "jwt:sub", "path", "method", "host"},
	},
	"amount": part{
		"description": "A number of tokens above 0, exact to a thousandth.",
		"anyOf":       []part{{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": numberPattern}}, "examples": []any{20, 0.5},
	},
	"amountOrNone": part{
		"description": "A number of tokens, exact to a thousandth; 0 is none.",
		"anyOf":       []part{{"type": "number", "minimum": 0}, {"type": "string", "pattern": numberPattern}},
	},
	"duration": part{
		"description": "How long: numbers with units, which are ns, us, ms, s, m, h, d and w.",
		"type":        "string", "pattern": durationPattern, "examples": []string{"100ms", "90s", "1h", "1d"},
	},
	"extent": part{
		"description": "A number of tokens, or how long the rate takes to refill them.",
		"anyOf":       []part{{"type": "number", "minimum": 0}, {"type": "string", "pattern": numberPattern}, {"type": "string", "pattern": durationPattern}},
		"examples":    []any{20, "300s"},
	},
	"instant": part{"type": "string", "format": "date-time", "examples": []string{"2026-01-02T15:04:05Z"}},
	"mode": part{
		"anyOf":    []part{word("enforce", "shadow", "off"), {"type": "string", "pattern": `^\+?[0-9.]+([eE][+-]?[0-9]+)?%$`}},
		"examples": []string{"shadow", "25%"},
	},
	"dialects": either(word(dialectNames[:]...), listOf(word(dialectNames[:]...), 1, len(dialectNames))),
	"jitter": part{
		"anyOf":    []part{{"const": 0}, {"type": "string", "pattern": `^([0-9]+%|0)$`}},
		"examples": []any{"50%", 0},
	},
	"percent": part{
		"anyOf": []part{{"type": "number", "minimum": 0, "maximum": 100}, {"type": "string", "pattern": numberPattern}}, "examples": []any{80},
	},
	"path": part{
		"description": "A path, or how it begins and a *. Templates such as {id} and :id are not supported.",
		"type":        "string", "maxLength": maxMatchValueBytes, "not": part{"pattern": templatePattern},
	},
	"paths": either(ref("path"), listOf(ref("path"), 1, MaxMatchValues)),
	"pathValue": either(ref("paths"), part{
		"type": "object", "properties": part{"not": ref("paths")}, "required": []string{"not"}, "additionalProperties": false,
	}),
	"scalar": part{"type": []string{"string", "number", "boolean"}, "maxLength": maxMatchValueBytes},
	"values": either(ref("scalar"), listOf(ref("scalar"), 1, MaxMatchValues)),
	"value": either(ref("values"), part{
		"type": "object", "properties": part{"not": ref("values")}, "required": []string{"not"}, "additionalProperties": false,
	}),
	"match": part{
		"type": "object", "maxProperties": MaxMatchClauses, "propertyNames": ref("attribute"), "additionalProperties": ref("value"),
		"patternProperties": part{"^[Pp][Aa][Tt][Hh]$": ref("pathValue")},
		"examples":          []any{part{"jwt:plan": "enterprise"}, part{"path": "/v1/*", "method": []string{"GET", "HEAD"}}, part{"ip:address": part{"not": "10.0.0.0/8"}}},
	},
	"name": part{"type": "string", "minLength": 1, "maxLength": MaxNameBytes, "pattern": `^[ -~]+$`},
	"attributes": part{
		"type": "object", "propertyNames": ref("attribute"), "additionalProperties": part{"type": []string{"string", "number", "boolean"}},
		"examples": []any{part{"ip:address": "192.0.2.1", "path": "/v1/users"}},
	},
	"count":  either(part{"type": "boolean"}, part{"type": "integer", "minimum": 0}),
	"counts": either(part{"type": "boolean"}, part{"type": "integer", "minimum": 0}, part{"type": "string"}, part{"type": "array"}, part{"type": "object"}),
}
